//! Leases taken by hand and by scripts, and keys that are looked at, with a keeper on a thread of this process over an
//! embedded DynamoDB.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::{Command, Output};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::keeper::InProcess;
use leasehold::store::DynamoDb;
use leasehold::{KeeperChoice, KeyState, Leasehold};
use support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use tokio::runtime::Runtime;
use tokio::time::timeout;

mod support;

const WAIT: Duration = Duration::from_secs(30);

/// The embedded DynamoDB of this process, and an executor for the tests' own questions.
fn dynamodb() -> &'static (EmbeddedDynamoDb, Runtime) {
    static DYNAMODB: OnceLock<(EmbeddedDynamoDb, Runtime)> = OnceLock::new();
    DYNAMODB.get_or_init(|| {
        let runtime = Runtime::new().unwrap();
        let dynamodb = runtime.block_on(EmbeddedDynamoDb::with_locks());
        let config = support::sdk_config(dynamodb.url());
        InProcess::shared_with(|| async { Ok(DynamoDb::with_config(config)) }).unwrap();
        (dynamodb, runtime)
    })
}

fn locks(format: &str, lease: Duration) -> Leasehold {
    dynamodb();
    let table = if format == "pydynox/1" { "pydynox" } else { "locks" };
    let builder = Leasehold::builder().table(table).format(format).lease_duration(lease);
    builder.keeper(KeeperChoice::InProcess).environment::<String, String>([]).build().unwrap()
}

fn row(key: &str) -> Option<Item> {
    let (dynamodb, runtime) = dynamodb();
    let rows = runtime.block_on(dynamodb.items("locks"));
    rows.into_iter().find(|row| row.get("key") == Some(&AttributeValue::S(key.to_owned())))
}

fn put(key: &str, attributes: &[(&str, AttributeValue)]) {
    let (dynamodb, runtime) = dynamodb();
    let mut row: Item = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    row.insert("key".to_owned(), AttributeValue::S(key.to_owned()));
    runtime.block_on(dynamodb.put("locks", row));
}

fn is_held(key: &str) -> bool {
    row(key).is_some_and(|row| row.contains_key("owner"))
}

#[test]
fn a_script_that_blocks_keeps_its_lease_and_the_row_is_free_behind_its_release_and_its_drop() {
    let locks = locks("leasehold/1", Duration::from_secs(1));
    let lease = locks.acquire_blocking("scripts", WAIT).unwrap();
    assert!(is_held("scripts"));
    // Longer than the lease: only renewals keep it.
    std::thread::sleep(Duration::from_millis(2_500));
    lease.ensure_held().unwrap();
    let metrics = lease.metrics().unwrap();
    assert!(metrics.renewals >= 2, "{metrics:?}");
    lease.release().unwrap();
    assert!(!is_held("scripts"));
    drop(locks.acquire_blocking("scripts", WAIT).unwrap());
    assert!(!is_held("scripts"), "a program may end with this drop, and its keeper with it");
}

/// An executor notices nothing while nobody waits with it: whoever waits elsewhere is to be woken there.
#[test]
fn a_lease_that_was_taken_with_one_executor_is_asked_and_released_with_another() {
    let locks = locks("leasehold/1", Duration::from_secs(30));
    let executor = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for first_is_gone in [false, true] {
        let first = executor();
        let lease = first.block_on(locks.acquire("moved", WAIT)).unwrap();
        let first = Some(first).filter(|_| !first_is_gone);
        executor().block_on(async {
            timeout(WAIT, lease.save_state(&7_u64)).await.expect("it is told that it is saved").unwrap();
            assert_eq!(lease.metrics().await.unwrap().attempts, 1);
        });
        executor().block_on(lease.release()).unwrap();
        assert!(!is_held("moved"));
        drop(first);
    }
}

#[test]
fn a_script_leaves_a_state_and_reads_it() {
    let locks = locks("leasehold/1", Duration::from_secs(30));
    let lease = locks.acquire_blocking("cursors", WAIT).unwrap();
    assert_eq!(lease.state::<u64>().unwrap(), None);
    lease.save_state(&1_u64).unwrap();
    assert_eq!(lease.state::<u64>().unwrap(), Some(1));
    lease.save_state_on_release(&2_u64).unwrap();
    lease.release().unwrap();
    let lease = locks.acquire_blocking("cursors", WAIT).unwrap();
    assert_eq!(lease.state::<u64>().unwrap(), Some(2));
    lease.clear_state().unwrap();
    assert_eq!(lease.state::<u64>().unwrap(), None);
    let within = Runtime::new().unwrap().block_on(async { lease.save_state(&3_u64) });
    assert_eq!(within.unwrap_err().error_type(), "BlockingInAsync");
}

#[test]
fn a_lease_that_was_waited_for_and_taken_over_counts_what_that_took() {
    let locks = locks("leasehold/1", Duration::from_secs(30));
    // Abandoned: nobody renews it, and it does not say when it ends.
    put(
        "counted",
        &[
            ("format", AttributeValue::S("leasehold/1".to_owned())),
            ("version", AttributeValue::N("1900000000000".to_owned())),
            ("owner", AttributeValue::S("00000000-0000-4000-8000-000000000001".to_owned())),
            ("lease_ms", AttributeValue::N("600".to_owned())),
        ],
    );
    let lease = locks.acquire_blocking("counted", WAIT).unwrap();
    let metrics = lease.metrics().unwrap();
    assert_eq!((metrics.attempts, metrics.attempts_refused, metrics.takeovers), (2, 1, 1), "{metrics:?}");
    assert_eq!((metrics.conditional_failures, metrics.request_failures), (1, 0), "{metrics:?}");
    assert!(metrics.read_requests >= 1 && metrics.read_capacity_units.is_some_and(|units| units > 0.0), "{metrics:?}");
    // A ticket and the takeover; nothing is told for the write that was refused.
    assert_eq!(metrics.write_capacity_units, Some(2.0), "{metrics:?}");
    assert!(metrics.waited >= Duration::from_millis(600), "{metrics:?}");
}

#[test]
fn parts_of_a_program_that_want_one_key_take_it_one_after_the_other_without_a_request_in_vain() {
    let locks = locks("leasehold/1", Duration::from_secs(30));
    let first = locks.acquire_blocking("queued", WAIT).unwrap();
    let all_are_there = Arc::new(Barrier::new(13));
    let parts: Vec<_> = (0..12)
        .map(|_| {
            let (locks, all_are_there) = (locks.clone(), all_are_there.clone());
            std::thread::spawn(move || {
                all_are_there.wait();
                let lease = locks.acquire_blocking("queued", WAIT).unwrap();
                let metrics = lease.metrics().unwrap();
                let token = lease.token().unwrap();
                lease.release().unwrap();
                (token, metrics)
            })
        })
        .collect();
    all_are_there.wait();
    let mut tokens = vec![first.token().unwrap()];
    first.release().unwrap();
    for part in parts {
        let (token, metrics) = part.join().unwrap();
        assert_eq!((metrics.attempts, metrics.write_requests, metrics.read_requests), (1, 1, 0), "{metrics:?}");
        tokens.push(token);
    }
    tokens.sort_unstable();
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
    assert!(!is_held("queued"));
}

#[test]
fn a_look_tells_what_the_row_says_and_leaves_it_as_it_is() {
    let locks = locks("leasehold/1", Duration::from_secs(20));
    assert_eq!(locks.inspect_blocking("looked-at").unwrap(), KeyState::Absent);
    assert_eq!(row("looked-at"), None);
    let lease = locks.acquire_blocking("looked-at", WAIT).unwrap();
    let before = row("looked-at");
    let KeyState::Held { owner, version, holder, lease: length, unchanged_for, retry_after, .. } =
        locks.inspect_blocking("looked-at").unwrap()
    else {
        panic!("not held")
    };
    assert_eq!((Some(owner), version), (lease.owner(), lease.token().map(|token| token.get())));
    assert_eq!((length, unchanged_for), (Duration::from_secs(20), Duration::ZERO));
    assert!(retry_after <= length, "{retry_after:?}");
    let holder = holder.unwrap();
    assert_eq!(holder.template, "by hand");
    assert!(holder.acquired_at.is_some());
    assert_eq!(row("looked-at"), before);
    let token = lease.token().unwrap().get();
    lease.release().unwrap();
    let KeyState::Free { version, .. } = locks.inspect_blocking("looked-at").unwrap() else { panic!("not free") };
    assert!(version >= token);
}

#[test]
fn a_look_at_a_row_of_another_program_is_an_error_that_names_it() {
    let locks = locks("leasehold/1", Duration::from_secs(20));
    put("foreign", &[("leaseOwner", AttributeValue::S("somebody".to_owned()))]);
    let error = locks.inspect_blocking("foreign").unwrap_err();
    assert_eq!(error.error_type(), "ForeignRow");
    put(
        "broken",
        &[("format", AttributeValue::S("leasehold/1".to_owned())), ("version", AttributeValue::S("seven".to_owned()))],
    );
    let error = locks.inspect_blocking("broken").unwrap_err();
    assert_eq!(error.error_type(), "MalformedRow");
    assert!(error.to_string().contains("`version`"), "{error}");
}

#[test]
fn the_other_row_format_is_looked_at_as_well() {
    let (dynamodb, runtime) = dynamodb();
    runtime.block_on(dynamodb.create_table("pydynox", "key", None));
    let locks = locks("pydynox/1", Duration::from_secs(20));
    assert_eq!(locks.inspect_blocking("k").unwrap(), KeyState::Absent);
    let lease = locks.acquire_blocking("k", WAIT).unwrap();
    let state = locks.inspect_blocking("k").unwrap();
    let KeyState::Held { owner, version, holder, .. } = state else { panic!("{state:?}") };
    assert_eq!((Some(owner), version, holder), (lease.owner(), None, None));
    lease.release().unwrap();
    assert_eq!(locks.inspect_blocking("k").unwrap(), KeyState::Absent, "it keeps no free rows");
}

#[test]
fn a_table_that_is_not_there_is_told() {
    dynamodb();
    let builder = Leasehold::builder().table("elsewhere").keeper(KeeperChoice::InProcess);
    let locks = builder.environment::<String, String>([]).build().unwrap();
    assert_eq!(locks.inspect_blocking("k").unwrap_err().error_type(), "TableNotFound");
    assert_eq!(locks.acquire_blocking("k", WAIT).unwrap_err().error_type(), "TableNotFound");
}

/// `examples/script.rs`, as a process of its own.
fn script(key: &str, program: &[&str]) -> Output {
    let (dynamodb, _) = dynamodb();
    let mut cargo = Command::new(env!("CARGO"));
    // What Cargo tells this test of its package; build scripts that look at it would run anew.
    let is_of_this_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_of_this_package)) {
        cargo.env_remove(name);
    }
    cargo.args(["run", "--quiet", "--all-features", "--example", "script", "--", key]).args(program);
    let variables = [
        ("LEASEHOLD_TABLE", "locks"),
        ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url()),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).envs(variables).output().unwrap()
}

#[test]
fn the_script_of_the_examples_runs_a_program_under_a_lease_and_leaves_a_free_row() {
    let output = script("exports", &["/bin/sh", "-c", "sleep 0.2"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("exports: waited"), "{said}");
    assert!(row("exports").is_some() && !is_held("exports"));
    let output = script("exports", &["/bin/sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!is_held("exports"));
}
