//! Handlers of all kinds under the layer.

use leasehold_sandbox::{Event, EventKind};
use serde_json::json;

use crate::stage::{SOON, event_file, function, is_held, said, start};

#[tokio::test]
async fn a_streaming_response_keeps_the_lease_with_its_guard() {
    let sandbox = start(function("streaming").await).await;
    let environment = sandbox.environment(0);
    let handle = environment.start_invocation(json!({ "id": "a", "sleep_ms": 1500 }));
    said(&sandbox, "handler returns", handle.request_id()).await;
    let began = |event: &Event| matches!(event.kind, EventKind::ResponseStarted { .. });
    sandbox.log().wait_for(began, SOON).await.unwrap();
    assert!(is_held(&sandbox, "jobs:a").await, "the handler has returned, but its stream goes on");
    let outcome = handle.outcome().await;
    let response = outcome.response().unwrap();
    // The body stands behind the prelude of Lambda's streaming format.
    assert!(response.is_streamed() && response.text().ends_with("onetwothree"), "{outcome:?}");
    environment.wait_until_idle().await.unwrap();
    assert!(!is_held(&sandbox, "jobs:a").await);
}

#[tokio::test]
async fn a_handler_may_borrow_from_main() {
    let sandbox = start(function("borrowing").await).await;
    let outcome = sandbox.invoke(json!({ "id": "a" })).await;
    let expected = json!({ "greeting": "hello from main", "key": "jobs:a", "held": true });
    assert_eq!(outcome.json(), Some(expected), "{outcome:?}\n{}", sandbox.log().timeline());
}

#[tokio::test]
async fn an_sqs_event_is_locked_by_its_message_group() {
    let sandbox = start(function("sqs").await).await;
    let outcome = sandbox.invoke(&event_file("sqs-order.json")).await;
    assert_eq!(outcome.json(), Some(json!({ "records": 1, "key": "orders:order-A-1002" })), "{outcome:?}");
}

#[tokio::test]
async fn an_eventbridge_event_is_locked_by_its_detail() {
    let sandbox = start(function("eventbridge").await).await;
    let outcome = sandbox.invoke(&event_file("eventbridge-order.json")).await;
    assert_eq!(outcome.json(), Some(json!({ "type": "OrderPlaced", "key": "orders:A-1001" })), "{outcome:?}");
}

#[tokio::test]
async fn the_row_says_who_holds_it() {
    let sandbox = start(function("locked").await).await;
    let handle = sandbox.start_invocation(json!({ "id": "a", "sleep_ms": 1500 }));
    let (_, acquired) = said(&sandbox, "acquired", handle.request_id()).await;
    let row = sandbox.tables().row("locks", "jobs:a").await.unwrap().unwrap();
    let holder = row["holder"].as_m().unwrap();
    assert_eq!(holder["function"].as_s().unwrap(), "tested");
    assert_eq!(holder["request_id"].as_s().unwrap(), handle.request_id());
    assert_eq!(holder["template"].as_s().unwrap(), "jobs:{id}");
    assert_eq!(row["owner"].as_s().ok(), acquired.field("owner").as_ref());
    assert!(!row.contains_key("ttl"), "a held row is never swept");
    assert!(handle.outcome().await.is_success());
}
