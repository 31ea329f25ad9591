//! Each side takes over from the other, killed while it holds: nobody frees the rows then, they only stop to change.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::ours::Ours;
use crate::python::Python;
use crate::support::embedded_dynamodb::EmbeddedDynamoDb;
use crate::witness::{Witness, history};

/// How often a process is killed, and how many keys it holds each time.
const KILLS: usize = 4;
const KEYS: usize = 50;
/// How long pydynox's leases are.
const LEASE: f64 = 4.0;
/// Longer than anything here takes.
const PATIENT: Duration = Duration::from_secs(60);

fn keys(kill: usize) -> impl Iterator<Item = String> {
    (0..KEYS).map(move |number| format!("key-{kill}-{number}"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn we_take_over_from_pydynox_killed() {
    let witnesses = tempfile::tempdir().unwrap();
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let ours = Ours::over(dynamodb.url());
    for kill in 0..KILLS {
        let python = Python::start(dynamodb.url(), witnesses.path()).await;
        let mut held: Vec<_> = keys(kill).map(|key| python.acquire(&key, LEASE, 0.0)).collect();
        for asked in &mut held {
            asked.expect("held").await;
        }
        let sent = ours.counts().requests;
        let mut waiting = JoinSet::new();
        for key in keys(kill) {
            let (ours, witnesses) = (ours.clone(), witnesses.path().to_owned());
            waiting.spawn(async move {
                ours.under(&key, PATIENT, async { drop(Witness::take(&witnesses, &key)) }).await.unwrap();
            });
        }
        // Each has been refused and has looked again, by and large: they wait.
        ours.until_requests(sent + 2 * KEYS as u64).await;
        python.kill();
        while let Some(task) = waiting.join_next().await {
            task.unwrap();
        }
        for key in keys(kill) {
            assert_eq!(history(witnesses.path(), &key), "pr");
        }
    }
    let counts = ours.counts();
    let all = (KILLS * KEYS) as u64;
    assert_eq!((counts.granted, counts.takeovers, counts.released, counts.lost), (all, all, all, 0), "{counts:?}");
    assert_eq!(dynamodb.items("locks").await, Vec::new());
}

/// Tells a run of this test that it is the process to be killed: the DynamoDB, the witnesses' folder, and which kill.
const TO_BE_KILLED: &str = "LEASEHOLD_TEST_TO_BE_KILLED";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn pydynox_takes_over_from_us_killed() {
    if let Ok(order) = std::env::var(TO_BE_KILLED) {
        return hold_until_killed(&order).await;
    }
    let witnesses = tempfile::tempdir().unwrap();
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let python = Python::start(dynamodb.url(), witnesses.path()).await;
    for kill in 0..KILLS {
        let order = format!("{} {} {kill}", dynamodb.url(), witnesses.path().display());
        let mut holder = spawn_holder(&order).await;
        let mut waiting: Vec<_> = keys(kill).map(|key| python.acquire(&key, LEASE, 60.0)).collect();
        for asked in &mut waiting {
            asked.expect("waiting").await;
        }
        assert_eq!(dynamodb.items("locks").await.len(), KEYS, "all are held, by us alone");
        holder.kill().unwrap();
        holder.wait().unwrap();
        for asked in &mut waiting {
            asked.expect("held").await;
            python.free(asked);
            asked.expect("freed").await;
        }
        for key in keys(kill) {
            assert_eq!(history(witnesses.path(), &key), "rp");
        }
    }
    assert_eq!(dynamodb.items("locks").await, Vec::new());
}

/// Runs this test in a process of its own, as the one to be killed; returns once it holds every key.
async fn spawn_holder(order: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["killed::pydynox_takes_over_from_us_killed", "--exact", "--ignored", "--nocapture"]);
    let mut holder = command.env(TO_BE_KILLED, order).stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(holder.stdout.take().unwrap()).lines();
    let held = tokio::task::spawn_blocking(move || {
        said.map_while(Result::ok).filter(|line| line.ends_with(HELD)).take(KEYS).count()
    });
    assert_eq!(held.await.unwrap(), KEYS, "the holder is gone early");
    holder
}

/// What the process to be killed says for each key that it holds.
const HELD: &str = "is held";

#[allow(clippy::print_stdout, reason = "it is how the parent hears of it")]
async fn hold_until_killed(order: &str) {
    let [url, witnesses, kill] = order.split(' ').collect::<Vec<_>>().try_into().expect("three words");
    let ours = Ours::over(url);
    let mut holding = JoinSet::new();
    for key in keys(kill.parse().unwrap()) {
        let (ours, witnesses) = (ours.clone(), std::path::PathBuf::from(witnesses));
        holding.spawn(async move {
            let work = async {
                let _witness = Witness::take(&witnesses, &key);
                println!("{key} {HELD}");
                std::future::pending::<()>().await;
            };
            ours.under(&key, Duration::ZERO, work).await.unwrap();
        });
    }
    while let Some(task) = holding.join_next().await {
        task.unwrap();
    }
}
