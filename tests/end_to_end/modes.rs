//! The modes that an operator sets, and what runs without a lock.

use std::time::Duration;

use leasehold_sandbox::demo::Said;
use leasehold_sandbox::{DynamoDb, Sandbox};
use serde_json::json;

use crate::stage::{TABLE, function, said, says, start};

/// How often a process said this.
fn count(sandbox: &Sandbox, message: &str) -> usize {
    sandbox.log().count(|event| Said::in_event(event).is_some_and(|said| said.message == message))
}

#[tokio::test]
async fn observe_neither_delays_nor_refuses_and_tells_what_it_would_have() {
    let builder = function("careless").await.environments(2).env("LEASEHOLD_MODE", "observe");
    let builder = builder.env("LEASEHOLD_MAX_WAIT", "50s").timeout(Duration::from_secs(60));
    let sandbox = start(builder).await;
    let first = sandbox.environment(0).start_invocation(json!({ "id": "a", "sleep_ms": 20_000 }));
    let first_id = first.request_id().to_owned();
    said(&sandbox, "acquired", &first_id).await;
    // Neither delayed: it is done while the first one works.
    let second = sandbox.environment(1).invoke(json!({ "id": "a", "sleep_ms": 100 })).await;
    assert!(second.is_success(), "{second:?}");
    assert!(
        !sandbox.log().events().iter().any(says("work ended", &first_id)),
        "it waited\n{}",
        sandbox.log().timeline()
    );
    assert_eq!(count(&sandbox, "observed: the invocation would still have waited"), 1);
    // Nor refused: nothing is left for the work.
    let refused = sandbox.environment(1).invoke(json!({ "sleep_ms": 1 })).await;
    assert_eq!(refused.json().unwrap()["wouldHaveRefused"], 1, "{refused:?}");
    assert_eq!(count(&sandbox, "observed: the invocation would have been refused"), 1);
    assert!(first.outcome().await.is_success());
}

#[tokio::test]
async fn observe_runs_handlers_while_dynamodb_is_out_of_reach() {
    let builder = function("careless").await.env("LEASEHOLD_MODE", "observe").env("LEASEHOLD_MAX_WAIT", "100ms");
    let builder = builder.dynamodb(DynamoDb::Endpoint("http://127.0.0.1:1".to_owned()));
    let sandbox = builder.timeout(Duration::from_secs(60)).start().await.unwrap();
    let outcome = sandbox.invoke(json!({ "id": "a", "sleep_ms": 10_000 })).await;
    let answer = outcome.json().unwrap_or_else(|| panic!("{outcome:?}"));
    assert_eq!((&answer["wouldHaveRefused"], &answer["why"]), (&json!(1), &json!(null)), "{answer}");
}

#[tokio::test]
async fn off_does_nothing_at_all() {
    let builder = function("careless").await.env("LEASEHOLD_MODE", "off").fault_proxy(true);
    let sandbox = start(builder).await;
    let outcome = sandbox.invoke(json!({ "id": "a" })).await;
    assert_eq!(outcome.json().unwrap()["granted"], 0, "{outcome:?}");
    sandbox.environment(0).wait_until_idle().await.unwrap();
    assert!(sandbox.tables().rows(TABLE).await.unwrap().is_empty(), "a row was written");
    // The one read opens the extension's connection when the environment starts.
    let writes = sandbox.faults().unwrap().seen().iter().filter(|seen| seen.key.as_deref() == Some("jobs:a")).count();
    assert_eq!(writes, 0, "{:?}", sandbox.faults().unwrap().seen());
}

#[tokio::test]
async fn on_unavailable_a_handler_runs_unlocked_or_fails() {
    let unreachable = || DynamoDb::Endpoint("http://127.0.0.1:1".to_owned());
    for unlocked in [true, false] {
        let mut builder = function("careless").await.env("LEASEHOLD_MAX_WAIT", "100ms").dynamodb(unreachable());
        if unlocked {
            builder = builder.env("LEASEHOLD_ON_UNAVAILABLE", "unlocked");
        }
        let sandbox = builder.timeout(Duration::from_secs(60)).start().await.unwrap();
        let handle = sandbox.start_invocation(json!({ "id": "a" }));
        let request_id = handle.request_id().to_owned();
        let outcome = handle.outcome().await;
        if unlocked {
            let answer = outcome.json().unwrap_or_else(|| panic!("{outcome:?}"));
            assert_eq!(answer["unlocked"], 1, "{answer}");
            assert!(answer["why"].as_str().unwrap().contains("`on_unavailable`"), "{answer}");
            assert_eq!(count(&sandbox, "the handler runs unlocked"), 1);
        } else {
            assert_eq!(outcome.error_type(), Some("StoreUnavailable"), "{outcome:?}");
            assert!(!sandbox.log().events().iter().any(says("work began", &request_id)));
        }
    }
}
