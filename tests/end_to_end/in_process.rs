//! The keeper on a thread of the handler's own process, where there is no extension.

use std::time::Duration;

use serde_json::json;

use crate::stage::{is_held, said, start, without_extension};

#[tokio::test]
async fn a_blocked_handler_keeps_its_lock_there_too() {
    let builder = without_extension("locked").await.environments(2).env("LEASEHOLD_KEEPER", "in-process");
    let builder = builder.env("LEASEHOLD_LEASE_DURATION", "1s").env("LEASEHOLD_MAX_WAIT", "30s");
    let sandbox = start(builder.timeout(Duration::from_secs(60))).await;
    let first = sandbox.environment(0).start_invocation(json!({ "id": "a", "spin_ms": 3200 }));
    let first_id = first.request_id().to_owned();
    said(&sandbox, "work began", &first_id).await;
    let second = sandbox.environment(1).start_invocation(json!({ "id": "a" }));
    let second_id = second.request_id().to_owned();
    let (first, second) = tokio::join!(first.outcome(), second.outcome());
    assert!(first.is_success() && second.is_success(), "{first:?} {second:?}\n{}", sandbox.log().timeline());
    let (_, ended) = said(&sandbox, "work ended", &first_id).await;
    let (_, began) = said(&sandbox, "work began", &second_id).await;
    let (_, taken) = said(&sandbox, "acquired", &second_id).await;
    assert!(ended.at_us().unwrap() < began.at_us().unwrap(), "both worked at once");
    assert!(!taken.took_over(), "the lock was taken from a working holder");
    assert!(!is_held(&sandbox, "jobs:a").await);
}

#[tokio::test]
async fn on_lambda_a_missing_extension_is_noticed() {
    let sandbox = start(without_extension("locked").await).await;
    let outcome = sandbox.invoke(json!({ "id": "a" })).await;
    assert_eq!(outcome.error_type(), Some("KeeperMissing"), "{outcome:?}");
}
