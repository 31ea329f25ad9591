//! Many invocations at once in one environment, under `run_concurrent`.

use std::time::Duration;

use serde_json::json;

use crate::metrics::{lines, sum};
use crate::stage::{function, is_held, said, start};

#[tokio::test]
async fn eight_at_once_on_one_key_run_one_after_the_other() {
    let builder = function("concurrent").await.managed_instances(8).timeout(Duration::from_secs(60));
    let sandbox = start(builder.env("LEASEHOLD_MAX_WAIT", "50s")).await;
    let environment = sandbox.environment(0);
    environment.start().await.unwrap();
    let handles: Vec<_> = (0..8).map(|_| environment.start_invocation(json!({ "id": "a", "sleep_ms": 30 }))).collect();
    let mut spans = Vec::new();
    for handle in handles {
        let id = handle.request_id().to_owned();
        let outcome = handle.outcome().await;
        assert!(outcome.is_success(), "{outcome:?}\n{}", sandbox.log().timeline());
        let (began, _) = said(&sandbox, "work began", &id).await;
        let (ended, _) = said(&sandbox, "work ended", &id).await;
        spans.push((began.index, ended.index, outcome.json().unwrap()["token"].as_u64().unwrap()));
    }
    spans.sort_unstable();
    for pair in spans.windows(2) {
        assert!(pair[0].1 < pair[1].0, "two worked at once: {spans:?}");
        assert!(pair[0].2 < pair[1].2, "a token did not grow: {spans:?}");
    }
    // Nothing freezes there, so the last release may still be on its way behind its response.
    sandbox.shutdown().await;
    assert!(!is_held(&sandbox, "jobs:a").await);
}

#[tokio::test]
async fn twenty_that_wait_for_one_key_ask_dynamodb_in_turn_and_never_in_vain() {
    let builder = function("concurrent").await.managed_instances(20).timeout(Duration::from_secs(60));
    let sandbox = start(builder.env("LEASEHOLD_MAX_WAIT", "50s")).await;
    let environment = sandbox.environment(0);
    environment.start().await.unwrap();
    let first = environment.start_invocation(json!({ "id": "a", "sleep_ms": 3000 }));
    said(&sandbox, "work began", first.request_id()).await;
    let waiting: Vec<_> = (1..20).map(|_| environment.start_invocation(json!({ "id": "a", "sleep_ms": 10 }))).collect();
    assert!(first.outcome().await.is_success(), "{}", sandbox.log().timeline());
    let mut order = Vec::new();
    for handle in waiting {
        let id = handle.request_id().to_owned();
        let outcome = handle.outcome().await;
        assert!(outcome.is_success(), "{outcome:?}\n{}", sandbox.log().timeline());
        // Both lines are the extension's own, and so in the order in which they were written.
        let (came, _) = said(&sandbox, "waiting", &id).await;
        let (taken, acquired) = said(&sandbox, "acquired", &id).await;
        assert_eq!(acquired.field("attempts").as_deref(), Some("1"), "{}", sandbox.log().timeline());
        order.push((came.index, taken.index));
    }
    order.sort_unstable();
    assert!(order.windows(2).all(|pair| pair[0].1 < pair[1].1), "not in the order they came: {order:?}");
    sandbox.shutdown().await;
    let lines = lines(&sandbox);
    let sums = ["Requests", "Attempts", "AttemptsRefused", "Contended", "Acquired"].map(|name| sum(&lines, name));
    assert_eq!(sums, [40, 20, 0, 19, 20], "{lines:#?}");
    assert!(!is_held(&sandbox, "jobs:a").await);
}
