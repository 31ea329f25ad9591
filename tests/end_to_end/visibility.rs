//! Busy messages are made visible by the real SQS client, whose requests a stand-in reads.

#[path = "../support/fault_server.rs"]
#[allow(dead_code, unreachable_pub, reason = "made for several tests")]
mod fault_server;

use leasehold_sandbox::{Sandbox, demo::Said};
use serde_json::{Value, json};

use self::fault_server::{Fault, FaultServer};
use crate::stage::{event_file, example, hold_elsewhere, start};

/// Delivers a batch with this order's key held, to a function whose SQS is this one; what is reported.
async fn deliver(sqs: &FaultServer, file: &str) -> (Sandbox, Vec<Value>) {
    let builder = example("sqs_records").await.env("LEASEHOLD_MAX_WAIT", "0s").env("AWS_ENDPOINT_URL_SQS", sqs.url());
    let sandbox = start(builder).await;
    hold_elsewhere(&sandbox, "orders:A-1003").await;
    let outcome = sandbox.invoke(&event_file(file)).await;
    let response = outcome.json().unwrap_or_else(|| panic!("{outcome:?}\n{}", sandbox.log().timeline()));
    let failures = response["batchItemFailures"].as_array().unwrap().clone();
    (sandbox, failures)
}

fn busy_one() -> Vec<Value> {
    vec![json!({ "itemIdentifier": "5a6f1d4e-0a5b-4b8e-9c0f-3f5a9a1f2b77" })]
}

/// How often the function said that a message was not made visible.
fn complaints(sandbox: &Sandbox) -> usize {
    let said = |event| Said::in_event(event).is_some_and(|said| said.message.contains("was not made visible"));
    sandbox.log().events().iter().filter(|event| said(event)).count()
}

#[tokio::test]
async fn the_busy_message_of_either_kind_of_queue_is_made_visible_when_its_holder_can_end() {
    for (file, queue, receipt) in [
        ("sqs-standard.json", "orders", "AQEBzWwaftRI0KuVm4tP2sT8rN4oY9xJkA"),
        ("sqs-fifo.json", "orders.fifo", "AQEBzWwaftRI0KuVm4tP2sT8rN4oY9xJk"),
    ] {
        let sqs = FaultServer::always(Fault::answer(200, "{}"));
        let (sandbox, reported) = deliver(&sqs, file).await;
        assert_eq!(reported, busy_one(), "{}", sandbox.log().timeline());
        let [change] = sqs.seen().try_into().unwrap();
        assert_eq!(change.operation, "ChangeMessageVisibility");
        let url = format!("https://sqs.eu-central-1.amazonaws.com/123456789012/{queue}");
        assert_eq!((&change.body["QueueUrl"], &change.body["ReceiptHandle"]), (&json!(url), &json!(receipt)));
        // The row is held for ten minutes; it was looked at within the last of them.
        let seconds = change.body["VisibilityTimeout"].as_u64().unwrap();
        assert!((540..=610).contains(&seconds), "{}", change.body);
        assert_eq!(complaints(&sandbox), 0);
    }
}

#[tokio::test]
async fn a_message_that_sqs_refuses_to_make_visible_is_reported_all_the_same() {
    let body = json!({ "__type": "com.amazonaws.sqs#MessageNotInflight", "message": "as injected" });
    let sqs = FaultServer::always(Fault::answer(400, body.to_string()));
    let (sandbox, reported) = deliver(&sqs, "sqs-standard.json").await;
    assert_eq!(reported, busy_one());
    assert_eq!(sqs.seen().len(), 1, "what SQS refuses is not sent again");
    assert_eq!(complaints(&sandbox), 1, "{}", sandbox.log().timeline());
}

#[tokio::test]
async fn an_sqs_that_never_answers_does_not_keep_the_response() {
    let sqs = FaultServer::always(Fault::Hang);
    let (sandbox, reported) = deliver(&sqs, "sqs-standard.json").await;
    assert_eq!(reported, busy_one());
    assert_eq!(sqs.seen().len(), 1);
    assert_eq!(complaints(&sandbox), 1, "{}", sandbox.log().timeline());
}
