//! What each source of events is told while somebody else holds its key, and after: the examples, with the files of `events/`.

use leasehold_sandbox::Invocation;
use serde_json::{Value, json};

use crate::stage::{event_file, example, free_elsewhere, function, hold_elsewhere, is_held, start};

/// Lambda tries an asynchronous invocation again that failed, under the same request id.
async fn comes_again(example_name: &str, file: &str, key: &str, says: (&str, &str)) {
    let sandbox = start(example(example_name).await.env("LEASEHOLD_MAX_WAIT", "0s")).await;
    hold_elsewhere(&sandbox, key).await;
    let invocation = || Invocation::from(&event_file(file)).request_id("6a7e8feb-b491-4cf7-a9f1-bf3703467718");
    let refused = sandbox.invoke(invocation()).await;
    assert_eq!(refused.error_type(), Some("LeaseBusy"), "{refused:?}\n{}", sandbox.log().timeline());
    let message = &refused.error().unwrap().message;
    assert!(message.contains(key) && message.contains("somebody-else"), "{message}");
    free_elsewhere(&sandbox, key).await;
    let again = sandbox.invoke(invocation()).await;
    let response = again.json().unwrap_or_else(|| panic!("{again:?}\n{}", sandbox.log().timeline()));
    assert_eq!(response[says.0], says.1);
    assert!(response["token"].is_u64(), "{response}");
    sandbox.environment(0).wait_until_idle().await.unwrap();
    assert!(!is_held(&sandbox, key).await);
}

#[tokio::test]
async fn an_eventbridge_event_that_is_refused_is_an_error_and_succeeds_when_it_comes_again() {
    comes_again("eventbridge", "eventbridge-order.json", "orders:A-1001", ("order", "A-1001")).await;
}

#[tokio::test]
async fn an_upload_that_is_refused_is_an_error_and_succeeds_when_it_comes_again() {
    let key = "objects:16:example-invoices/26:2026/03/invoice-A-1004.pdf";
    comes_again("s3_upload", "s3-upload.json", key, ("object", "2026/03/invoice-A-1004.pdf")).await;
}

/// The error's message as the JSON that a program reads.
async fn refused(example_name: &str, file: &str, key: &str) -> Value {
    let sandbox = start(example(example_name).await).await;
    hold_elsewhere(&sandbox, key).await;
    let outcome = sandbox.invoke(&event_file(file)).await;
    assert_eq!(outcome.error_type(), Some("LeaseBusy"), "{outcome:?}\n{}", sandbox.log().timeline());
    let cause: Value = serde_json::from_str(&outcome.error().unwrap().message).unwrap();
    assert_eq!((&cause["key"], &cause["holder"]["function"]), (&json!(key), &json!("somebody-else")));
    assert!(cause["holder"]["requestId"].is_string() && cause["message"].is_string(), "{cause}");
    let retry_after = cause["retryAfterMs"].as_u64().unwrap();
    assert!((1..=610_000).contains(&retry_after), "{cause}");
    free_elsewhere(&sandbox, key).await;
    assert!(sandbox.invoke(&event_file(file)).await.is_success());
    cause
}

#[tokio::test]
async fn a_step_functions_task_that_does_not_wait_is_told_who_holds_the_key() {
    let cause = refused("step_functions", "step-functions-import.json", "imports:acme").await;
    assert_eq!(cause["attempts"], 1, "the state machine waits, not the function: {cause}");
}

#[tokio::test]
async fn a_caller_is_told_who_holds_the_key_and_how_long_was_waited() {
    let cause = refused("direct", "direct-import.json", "imports:2026-03").await;
    assert!(cause["waitedMs"].as_u64().unwrap() > 0, "{cause}");
}

#[tokio::test]
async fn a_state_machine_retries_on_the_names_that_the_layer_answers() {
    let machine = event_file("step-functions-import.asl.json");
    let task = &machine["States"]["Import"];
    let retried = task["Retry"][0]["ErrorEquals"].as_array().unwrap();
    assert_eq!(*retried, ["LeaseBusy", "DeadlineTooClose", "GrantTooLate"].map(Value::from));
    // Less time than the reserve: the function is told at once, and so is the state machine.
    let sandbox = start(example("step_functions").await.timeout(std::time::Duration::from_secs(5))).await;
    let outcome = sandbox.invoke(&event_file("step-functions-import.json")).await;
    assert_eq!(outcome.error_type(), Some("DeadlineTooClose"), "{outcome:?}");
    let cause: Value = serde_json::from_str(&outcome.error().unwrap().message).unwrap();
    assert_eq!(cause["reserveMs"], 10_000, "{cause}");
    assert!(cause["remainingMs"].as_u64().unwrap() < 10_000, "{cause}");
    assert!(sandbox.tables().rows("locks").await.unwrap().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_scheduled_job_is_skipped_while_another_one_runs_and_that_is_a_success() {
    let key = "nightly:arn:aws:events:eu-central-1:123456789012:rule/nightly-report";
    let sandbox = start(function("schedule").await.env("LEASEHOLD_MAX_WAIT", "0s")).await;
    hold_elsewhere(&sandbox, key).await;
    let skipped = sandbox.invoke(&event_file("scheduled-report.json")).await;
    let response = skipped.json().unwrap_or_else(|| panic!("{skipped:?}\n{}", sandbox.log().timeline()));
    assert_eq!(
        (&response["skipped"], &response["cause"]["holder"]["function"]),
        (&json!(true), &json!("somebody-else"))
    );
    free_elsewhere(&sandbox, key).await;
    let ran = sandbox.invoke(&event_file("scheduled-report.json")).await;
    assert_eq!(ran.json(), Some(json!({ "ran": "Scheduled Event", "key": key })), "{ran:?}");
}

#[tokio::test]
async fn a_whole_batch_comes_back_while_its_group_is_held() {
    let sandbox = start(example("sqs_whole_batch").await.env("LEASEHOLD_MAX_WAIT", "0s")).await;
    hold_elsewhere(&sandbox, "orders:order-A-1002").await;
    let refused = sandbox.invoke(&event_file("sqs-order.json")).await;
    let all = json!({ "batchItemFailures": [{ "itemIdentifier": "" }] });
    assert_eq!(refused.json(), Some(all), "{refused:?}");
    free_elsewhere(&sandbox, "orders:order-A-1002").await;
    let done = sandbox.invoke(&event_file("sqs-order.json")).await;
    assert_eq!(done.json(), Some(json!({ "batchItemFailures": [] })), "{done:?}");
}
