//! Scheduled jobs whose duplicates come when the work is long done.

use std::time::Duration;

use leasehold_sandbox::Sandbox;
use leasehold_sandbox::faults::{Fault, Step};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::stage::{SOON, TABLE, function, said, start};

/// The rule's key in `events/scheduled-report.json`.
const KEY: &str = "reports:arn:aws:events:eu-central-1:123456789012:rule/nightly-report";

fn event() -> Value {
    let path = format!("{}/events/scheduled-report.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

async fn scheduled(minimum: &str, max_wait: &str) -> Sandbox {
    let function = function("scheduled").await.env("LEASEHOLD_HOLD_AT_LEAST", minimum);
    start(function.env("LEASEHOLD_MAX_WAIT", max_wait).timeout(4 * SOON).fault_proxy(true)).await
}

/// Whether the row is parked: held by nobody, and marked so for people.
async fn is_parked(sandbox: &Sandbox) -> bool {
    let row = sandbox.tables().row(TABLE, KEY).await.unwrap().unwrap();
    let holder = row.get("holder").and_then(|holder| holder.as_m().ok());
    holder.is_some_and(|holder| holder.get("parked").is_some_and(|parked| *parked.as_bool().unwrap()))
}

#[tokio::test]
async fn the_duplicate_of_an_event_is_skipped_though_the_first_is_done() {
    let sandbox = scheduled("1h", "0s").await;
    let first = sandbox.invoke(event()).await;
    assert_eq!(first.json(), Some(json!({ "reported": event()["id"] })), "{first:?}\n{}", sandbox.log().timeline());
    sandbox.environment(0).wait_until_idle().await.unwrap();
    assert!(is_parked(&sandbox).await);

    let second = sandbox.invoke(event()).await;
    let answer = second.json().unwrap_or_else(|| panic!("{second:?}\n{}", sandbox.log().timeline()));
    assert_eq!(answer["skipped"], true, "{answer}");
    assert_eq!(answer["cause"]["holder"]["parked"], true, "{answer}");
    assert!(answer["cause"]["retryAfterMs"].as_u64().unwrap() > 3_500_000, "{answer}");
}

#[tokio::test]
async fn a_run_that_failed_is_repeated_at_once() {
    let sandbox = scheduled("1h", "0s").await;
    let mut failing = event();
    failing["detail"] = json!({ "fail": true });
    assert!(!sandbox.invoke(failing).await.is_success());
    sandbox.environment(0).wait_until_idle().await.unwrap();
    let again = sandbox.invoke(event()).await;
    assert_eq!(again.json(), Some(json!({ "reported": event()["id"] })), "{again:?}\n{}", sandbox.log().timeline());
}

#[tokio::test]
async fn after_its_minimum_the_job_runs_again() {
    let sandbox = scheduled("1s", "60s").await;
    for _ in 0..2 {
        let handle = sandbox.start_invocation(event());
        let id = handle.request_id().to_owned();
        let outcome = handle.outcome().await;
        assert_eq!(outcome.json(), Some(json!({ "reported": event()["id"] })), "{}", sandbox.log().timeline());
        let (_, parked) = said(&sandbox, "parked", &id).await;
        assert!(parked.field("owner").is_some());
    }
}

#[tokio::test]
async fn an_extension_killed_behind_the_write_frees_nothing_at_its_next_start() {
    let sandbox = scheduled("1h", "0s").await;
    let environment = sandbox.environment(0);
    // The row is parked, and the extension does not hear of it: its note is still there.
    let held = sandbox.faults().unwrap().inject(Step::Park, 1, Fault::HoldReply);
    let first = environment.start_invocation(event());
    held.reached(SOON).await.unwrap();
    let landed = async {
        while !is_parked(&sandbox).await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, landed).await.unwrap();
    assert!(first.outcome().await.is_success());
    environment.kill_extension().await.unwrap();
    held.open();
    // Two invocations: the crash may cost the one that meets it.
    let mut last = environment.invoke(event()).await;
    if !last.is_success() {
        last = environment.invoke(event()).await;
    }
    assert_eq!(last.json().unwrap_or_else(|| panic!("{}", sandbox.log().timeline()))["skipped"], true);
    assert!(is_parked(&sandbox).await);
}
