//! Both sides at work on the same keys: each excludes the other, and each waits for the other.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Lease;
use leasehold::error::Error;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::ours::Ours;
use crate::python::Python;
use crate::support::embedded_dynamodb::EmbeddedDynamoDb;
use crate::witness::{Witness, history};

/// Long enough for pydynox's renewals on a busy machine; it looks at a held row every sixth of that.
const LEASE: f64 = 3.0;
/// Longer than anything here takes.
const PATIENT: Duration = Duration::from_secs(60);
const KEYS: usize = 10;

/// A round's third parties: our keeper, a pydynox, and what they share.
async fn both(witnesses: &Path) -> (EmbeddedDynamoDb, Ours, Arc<Python>) {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let python = Python::start(dynamodb.url(), witnesses).await;
    let ours = Ours::over(dynamodb.url());
    (dynamodb, ours, Arc::new(python))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn no_two_ever_work_at_once_however_they_contend() {
    const EACH: usize = 20;
    let witnesses = tempfile::tempdir().unwrap();
    let (dynamodb, ours, python) = both(witnesses.path()).await;
    let mut theirs = Vec::new();
    let mut tasks = JoinSet::new();
    for key in (0..KEYS).map(|number| format!("key-{number}")) {
        theirs.extend([python.rounds(&key, LEASE, EACH / 2), python.rounds(&key, LEASE, EACH / 2)]);
        for _ in 0..2 {
            let (ours, key, witnesses) = (ours.clone(), key.clone(), witnesses.path().to_owned());
            tasks.spawn(async move {
                for _ in 0..EACH / 2 {
                    let work = async {
                        let _witness = Witness::take(&witnesses, &key);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    };
                    ours.under(&key, PATIENT, work).await.unwrap();
                }
            });
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    for asked in &mut theirs {
        let done = asked.expect("done").await;
        assert_eq!(done["overlaps"], json!(0));
    }
    for key in (0..KEYS).map(|number| format!("key-{number}")) {
        let history = history(witnesses.path(), &key);
        let count = |side| history.chars().filter(|who| *who == side).count();
        assert_eq!((count('p'), count('r')), (EACH, EACH), "{history}");
    }
    assert_eq!(dynamodb.items("locks").await, Vec::new(), "a release deletes the row");
}

/// One round: pydynox holds and we wait, then we hold and pydynox waits; whoever does not wait is turned away.
async fn hand_over_and_back(ours: &Ours, python: &Arc<Python>, witnesses: &Path, key: &str) {
    let mut held = python.acquire(key, LEASE, 0.0);
    held.expect("held").await;
    let busy = ours.under(key, Duration::ZERO, async {}).await.unwrap_err();
    assert_eq!(busy.error_type, "LeaseBusy", "{}", busy.error_message);

    let sent = ours.counts().requests;
    let (granted, we_hold) = oneshot::channel();
    let (done, go_on) = oneshot::channel::<()>();
    let waiting = tokio::spawn({
        let (ours, key, witnesses) = (ours.clone(), key.to_owned(), witnesses.to_owned());
        async move {
            let work = async {
                let _witness = Witness::take(&witnesses, &key);
                granted.send(Lease::current().unwrap().fencing_token().map(drop)).unwrap();
                go_on.await.unwrap();
            };
            ours.under(&key, PATIENT, work).await.unwrap();
        }
    });
    ours.until_requests(sent + 2).await;
    python.free(&held);
    held.expect("freed").await;
    // The format has no fencing token, and says so to who asks.
    assert!(matches!(we_hold.await.unwrap(), Err(Error::NoFencingToken(_))));

    python.acquire(key, LEASE, 0.0).expect("LockNotAcquired").await;
    let mut patient = python.acquire(key, LEASE, 60.0);
    patient.expect("waiting").await;
    done.send(()).unwrap();
    waiting.await.unwrap();
    patient.expect("held").await;
    python.free(&patient);
    patient.expect("freed").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn each_turns_the_other_away_and_each_waits_for_the_other() {
    const ROUNDS: usize = 20;
    let witnesses = tempfile::tempdir().unwrap();
    let (dynamodb, _, python) = both(witnesses.path()).await;
    let mut tasks = JoinSet::new();
    for key in (0..KEYS).map(|number| format!("key-{number}")) {
        // A keeper for each key, so that what it counts is about that one.
        let ours = Ours::over(dynamodb.url());
        let (python, witnesses) = (Arc::clone(&python), witnesses.path().to_owned());
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                hand_over_and_back(&ours, &python, &witnesses, &key).await;
            }
            assert_eq!(history(&witnesses, &key), "prp".repeat(ROUNDS));
            let counts = ours.counts();
            assert_eq!((counts.granted, counts.busy), (ROUNDS as u64, ROUNDS as u64), "{counts:?}");
            assert_eq!((counts.takeovers, counts.lost, counts.failed), (0, 0, 0), "{counts:?}");
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!(dynamodb.items("locks").await, Vec::new(), "a release deletes the row");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn renewed_leases_outlast_their_length_on_either_side() {
    let witnesses = tempfile::tempdir().unwrap();
    let (_dynamodb, ours, python) = both(witnesses.path()).await;
    // A row that did not change for so long would count as abandoned twice over.
    let long = Duration::from_secs(9);
    let mut held = python.acquire("theirs", LEASE, 0.0);
    held.expect("held").await;
    let waits_for_theirs = tokio::spawn({
        let (ours, witnesses) = (ours.clone(), witnesses.path().to_owned());
        async move { ours.under("theirs", PATIENT, async { drop(Witness::take(&witnesses, "theirs")) }).await.unwrap() }
    });
    let work = async {
        let witness = Witness::take(witnesses.path(), "ours");
        let mut waits_for_ours = python.acquire("ours", LEASE, 60.0);
        waits_for_ours.expect("waiting").await;
        tokio::time::sleep(long).await;
        Lease::current().unwrap().ensure_held().unwrap();
        drop(witness);
        waits_for_ours
    };
    let mut waits_for_ours = ours.under("ours", PATIENT, work).await.unwrap();
    assert!(!waits_for_theirs.is_finished());
    python.free(&held);
    held.expect("freed").await;
    waits_for_theirs.await.unwrap();
    waits_for_ours.expect("held").await;
    assert_eq!(ours.counts().takeovers, 0);
}
