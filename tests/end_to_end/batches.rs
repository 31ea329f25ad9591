//! Batches of messages, each record under a lease of its own.

use std::time::Duration;

use leasehold_sandbox::{
    Event, Outcome,
    demo::Said,
    faults::{Fault, Step},
};
use serde_json::{Value, json};

use crate::stage::{SOON, function, is_held, start};

fn message(id: &str, body: &Value) -> Value {
    json!({
        "messageId": id, "receiptHandle": "r", "body": body.to_string(), "attributes": {}, "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:jobs",
    })
}

fn batch<const N: usize>(messages: [(&str, Value); N]) -> Value {
    json!({ "Records": messages.map(|(id, body)| message(id, &body)).to_vec() })
}

fn reported(outcome: &Outcome) -> Vec<String> {
    let response = outcome.json().unwrap_or_else(|| panic!("{outcome:?}"));
    let failures = response["batchItemFailures"].as_array().unwrap_or_else(|| panic!("{response}"));
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect()
}

/// That work under this key begins, whichever invocation's it is.
fn begins(id: &str) -> impl Fn(&Event) -> bool {
    let key = format!("jobs:{id}");
    move |event| {
        Said::in_event(event)
            .is_some_and(|said| said.message == "work began" && said.field("key").as_ref() == Some(&key))
    }
}

#[tokio::test]
async fn each_message_is_worked_on_under_a_lease_of_its_own_and_all_are_given_back() {
    let sandbox = start(function("batches").await.timeout(Duration::from_secs(20))).await;
    let environment = sandbox.environment(0);
    let slow = |id: &str| json!({ "id": id, "sleep_ms": 2_000 });
    let handle = environment.start_invocation(batch([("1", slow("a")), ("2", slow("b")), ("3", slow("a"))]));
    sandbox.log().wait_for(begins("a"), SOON).await.unwrap();
    sandbox.log().wait_for(begins("b"), SOON).await.unwrap();
    assert!(is_held(&sandbox, "jobs:a").await && is_held(&sandbox, "jobs:b").await);
    let outcome = handle.outcome().await;
    assert!(reported(&outcome).is_empty(), "{outcome:?}\n{}", sandbox.log().timeline());
    environment.wait_until_idle().await.unwrap();
    assert!(!is_held(&sandbox, "jobs:a").await && !is_held(&sandbox, "jobs:b").await);
    let acquired = |event: &&Event| Said::in_event(event).is_some_and(|said| said.message == "acquired");
    assert_eq!(sandbox.log().events().iter().filter(acquired).count(), 2, "one for each key");
}

#[tokio::test]
async fn a_message_whose_key_another_environment_holds_comes_back_and_the_others_are_done() {
    let builder = function("batches").await.env("LEASEHOLD_MAX_WAIT", "300ms").timeout(Duration::from_secs(60));
    let sandbox = start(builder.environments(2)).await;
    let holder = sandbox.environment(0).start_invocation(batch([("1", json!({ "id": "a", "sleep_ms": 10_000 }))]));
    sandbox.log().wait_for(begins("a"), SOON).await.unwrap();
    let messages = [("2", json!({ "id": "a" })), ("3", json!({ "id": "b" }))];
    let outcome = sandbox.environment(1).invoke(batch(messages)).await;
    assert_eq!(reported(&outcome), ["2"], "{}", sandbox.log().timeline());
    assert!(reported(&holder.outcome().await).is_empty());
}

#[tokio::test]
async fn a_message_that_takes_too_long_comes_back_before_lambda_ends_the_environment() {
    let sandbox = start(function("batches").await.timeout(Duration::from_secs(10))).await;
    let messages = [("1", json!({ "id": "a", "sleep_ms": 60_000 })), ("2", json!({ "id": "b" }))];
    let outcome = sandbox.environment(0).invoke(batch(messages)).await;
    assert_eq!(reported(&outcome), ["1"], "{outcome:?}\n{}", sandbox.log().timeline());
    sandbox.environment(0).wait_until_idle().await.unwrap();
    assert!(!is_held(&sandbox, "jobs:a").await);
}

#[tokio::test]
async fn a_key_that_is_taken_again_within_a_batch_is_never_busy_with_itself() {
    let builder = function("batches").await.env("LEASEHOLD_MAX_WAIT", "0s").timeout(Duration::from_secs(60));
    let sandbox = start(builder.fault_proxy(true)).await;
    sandbox.faults().unwrap().inject(Step::Release, usize::MAX, Fault::DelayRequest(Duration::from_millis(300)));
    // `x` goes from key to key and back, and `y` works on one of them for longer: as soon as it is given back, it is taken.
    let messages = (0..12).map(|n| {
        let id = ["a", "b", "a", "c"][n % 4];
        let mut message = message(&n.to_string(), &json!({ "id": id, "sleep_ms": if n % 4 == 0 { 100 } else { 0 } }));
        message["eventSourceARN"] = "arn:aws:sqs:eu-central-1:123456789012:jobs.fifo".into();
        message["attributes"]["MessageGroupId"] = if n % 4 == 0 { "y" } else { "x" }.into();
        message
    });
    let outcome = sandbox.environment(0).invoke(json!({ "Records": messages.collect::<Vec<_>>() })).await;
    assert!(reported(&outcome).is_empty(), "{outcome:?}\n{}", sandbox.log().timeline());
}
