//! Batches as their sources deliver them, again and again: what is done is never run twice, what failed comes back.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_sandbox::{Sandbox, demo::Said};
use serde_json::{Value, json};

use crate::stage::{event_file, example, free_elsewhere, function, hold_elsewhere, is_held, start};

/// Delivers these records and takes those away that are done: what comes back, by the names that were reported.
async fn deliver(sandbox: &Sandbox, records: &[Value]) -> Vec<String> {
    let outcome = sandbox.environment(0).invoke(json!({ "Records": records })).await;
    let response = outcome.json().unwrap_or_else(|| panic!("{outcome:?}\n{}", sandbox.log().timeline()));
    let failures = response["batchItemFailures"].as_array().unwrap_or_else(|| panic!("{response}"));
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect()
}

fn records_of(file: &str) -> Vec<Value> {
    event_file(file)["Records"].as_array().unwrap().clone()
}

fn name_of(record: &Value) -> &str {
    let names = [&record["messageId"], &record["kinesis"]["sequenceNumber"], &record["dynamodb"]["SequenceNumber"]];
    names.into_iter().find_map(Value::as_str).unwrap()
}

/// What an example says it worked on, by one of the fields that it names, and how often.
fn worked_on(sandbox: &Sandbox, field: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in sandbox.log().events() {
        let said = Said::in_event(&event).filter(|said| said.message == "worked on");
        if let Some(what) = said.and_then(|said| said.field(field)) {
            *counts.entry(what).or_default() += 1;
        }
    }
    counts
}

fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected.map(|(what, count)| (what.to_owned(), count)).into()
}

#[tokio::test]
async fn a_standard_queues_busy_messages_alone_come_back() {
    let sandbox = start(example("sqs_records").await.env("LEASEHOLD_MAX_WAIT", "0s")).await;
    hold_elsewhere(&sandbox, "orders:A-1002").await;
    let records = records_of("sqs-standard.json");
    let back = deliver(&sandbox, &records).await;
    assert_eq!(back, [name_of(&records[0]), name_of(&records[2])], "{}", sandbox.log().timeline());
    free_elsewhere(&sandbox, "orders:A-1002").await;
    let left: Vec<_> = records.into_iter().filter(|record| back.contains(&name_of(record).to_owned())).collect();
    assert!(deliver(&sandbox, &left).await.is_empty());
    assert_eq!(worked_on(&sandbox, "order_id"), counts([("A-1002", 2), ("A-1003", 1)]));
    assert!(!is_held(&sandbox, "orders:A-1002").await && !is_held(&sandbox, "orders:A-1003").await);
}

#[tokio::test]
async fn a_fifo_groups_later_messages_come_back_with_the_busy_one_and_then_run_in_order() {
    let sandbox = start(example("sqs_records").await.env("LEASEHOLD_MAX_WAIT", "0s")).await;
    hold_elsewhere(&sandbox, "orders:A-1002").await;
    let mut records = records_of("sqs-fifo.json");
    // Of the same group, but on an order that is free: it may not overtake.
    let mut behind = records[2].clone();
    behind["messageId"] = "9f8e7d6c-5b4a-4392-8170-6f5e4d3c2b1a".into();
    behind["body"] = json!({ "orderId": "A-1009", "action": "pack" }).to_string().into();
    records.push(behind);
    let back = deliver(&sandbox, &records).await;
    assert_eq!(back, [0, 2, 3].map(|n| name_of(&records[n])), "{}", sandbox.log().timeline());
    assert_eq!(worked_on(&sandbox, "action"), counts([("pay", 1)]));
    free_elsewhere(&sandbox, "orders:A-1002").await;
    let left = [0, 2, 3].map(|n| records[n].clone());
    assert!(deliver(&sandbox, &left).await.is_empty());
    let said = |event| Said::in_event(&event).filter(|said| said.message == "worked on")?.field("action");
    // One process wrote these lines, so they are in its order.
    let actions: Vec<_> = sandbox.log().events().into_iter().filter_map(said).collect();
    assert_eq!(actions, ["pay", "pay", "ship", "pack"]);
}

/// Lambda goes on from the lowest sequence number that was reported.
async fn a_shard_goes_on_where_it_stopped(name: &str, file: &str, busy: &str, stops_at: usize, field: &str) {
    let sandbox = start(example(name).await).await;
    hold_elsewhere(&sandbox, busy).await;
    let records = records_of(file);
    let back = deliver(&sandbox, &records).await;
    assert_eq!(back, [name_of(&records[stops_at])], "{}", sandbox.log().timeline());
    assert_eq!(worked_on(&sandbox, field).values().sum::<usize>(), stops_at, "nothing behind it was run");
    free_elsewhere(&sandbox, busy).await;
    assert!(deliver(&sandbox, &records[stops_at..]).await.is_empty());
    assert_eq!(worked_on(&sandbox, field).values().sum::<usize>(), records.len(), "each was run once");
}

#[tokio::test]
async fn a_kinesis_shard_goes_on_from_its_busy_record() {
    a_shard_goes_on_where_it_stopped("kinesis_records", "kinesis.json", "orders:A-1003", 1, "order_id").await;
}

#[tokio::test]
async fn a_tables_stream_goes_on_from_its_busy_record() {
    a_shard_goes_on_where_it_stopped("dynamodb_stream_records", "dynamodb-streams.json", "orders:A-1003", 2, "key")
        .await;
}

#[tokio::test]
async fn a_worker_of_whole_events_is_handed_each_message_under_its_own_lock() {
    let sandbox = start(example("sqs_worker").await.env("LEASEHOLD_MAX_WAIT", "0s")).await;
    hold_elsewhere(&sandbox, "orders:A-1003").await;
    let records = records_of("sqs-standard.json");
    assert_eq!(deliver(&sandbox, &records).await, [name_of(&records[1])], "{}", sandbox.log().timeline());
    free_elsewhere(&sandbox, "orders:A-1003").await;
    assert!(deliver(&sandbox, &records[1..2]).await.is_empty());
    let bodies = worked_on(&sandbox, "body");
    assert!(bodies.len() == 3 && bodies.values().all(|times| *times == 1), "{bodies:?}");
}

/// How often SQS lets a message be received.
const MAX_RECEIVE_COUNT: &str = "3";

#[tokio::test]
async fn a_message_that_always_panics_ends_in_the_dead_letter_queue_alone() {
    let sandbox = start(function("batches").await.timeout(Duration::from_secs(60))).await;
    let message = |id: &str, job: Value| {
        json!({
            "messageId": id, "receiptHandle": format!("receipt-{id}"), "body": job.to_string(),
            "attributes": { "ApproximateReceiveCount": "0" }, "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:jobs",
        })
    };
    let mut queue = vec![
        message("1", json!({ "id": "a" })),
        message("2", json!({ "id": "a", "panics": true })),
        message("3", json!({ "id": "a" })),
        message("4", json!({ "id": "b" })),
    ];
    let mut dead = Vec::new();
    while !queue.is_empty() {
        for message in &mut queue {
            let received = message["attributes"]["ApproximateReceiveCount"].as_str().unwrap();
            let received = received.parse::<u64>().unwrap() + 1;
            message["attributes"]["ApproximateReceiveCount"] = received.to_string().into();
        }
        let back = deliver(&sandbox, &queue).await;
        assert_eq!(back, ["2"], "{}", sandbox.log().timeline());
        queue.retain(|message| back.contains(&name_of(message).to_owned()));
        let used_up = |message: &Value| message["attributes"]["ApproximateReceiveCount"] == MAX_RECEIVE_COUNT;
        let (gone, left) = queue.into_iter().partition(used_up);
        dead.extend::<Vec<Value>>(gone);
        queue = left;
    }
    assert_eq!(dead.iter().map(name_of).collect::<Vec<_>>(), ["2"]);
    let ended = |event| Said::in_event(&event).filter(|said| said.message == "work ended")?.field("id");
    let mut done: Vec<_> = sandbox.log().events().into_iter().filter_map(ended).collect();
    done.sort_unstable();
    assert_eq!(done, ["a", "a", "b"], "the others were run once each");
    sandbox.environment(0).wait_until_idle().await.unwrap();
    assert!(!is_held(&sandbox, "jobs:a").await);
}
