//! FIFO queues and streams: what is behind a failed record waits with it, and is not run.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::testing::{Happened, TestKeeper};
use serde_json::json;

use crate::stage::{Said, asked, batch, dynamodb, in_group, kinesis, per_message, reported, run, settings, told};

#[tokio::test]
async fn a_failed_message_takes_the_later_ones_of_its_group_along() {
    let keeper = TestKeeper::new();
    let records = [
        in_group("x", "1", &json!({ "id": "a" })),
        in_group("x", "2", &json!({ "id": "a", "do": "fail" })),
        in_group("y", "3", &json!({ "id": "b" })),
        in_group("x", "4", &json!({ "id": "a" })),
        in_group("y", "5", &json!({ "id": "b" })),
    ];
    let (reported, said) = run(&keeper, per_message(&keeper), records).await;
    assert_eq!(reported, ["2", "4"]);
    assert!(!said.contains(&"+4".to_owned()), "not run: {said:?}");
    assert!(said.contains(&"-5".to_owned()), "another group goes on: {said:?}");
}

#[tokio::test]
async fn a_busy_message_takes_along_also_those_of_its_group_with_other_keys() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere("a");
    let records = [
        in_group("x", "1", &json!({ "id": "b" })),
        in_group("x", "2", &json!({ "id": "a" })),
        in_group("x", "3", &json!({ "id": "b" })),
        in_group("y", "4", &json!({ "id": "b" })),
    ];
    let (reported, said) = run(&keeper, per_message(&keeper), records).await;
    assert_eq!(reported, ["2", "3"]);
    assert_eq!(said, ["+1", "-1", "+4", "-4"]);
}

#[tokio::test]
async fn a_group_through_two_keys_runs_in_order_and_holds_one_at_a_time() {
    let keeper = TestKeeper::new();
    let records = ["a", "b", "a"].into_iter().zip(["1", "2", "3"]);
    let records = records.map(|(key, id)| in_group("x", id, &json!({ "id": key, "do": "ask" })));
    let (reported, said) = run(&keeper, per_message(&keeper), records).await;
    assert!(reported.is_empty());
    assert_eq!(said, ["+1", "-1", "+2", "-2", "+3", "-3"]);
    // Given back in between: nobody holds one key while it waits for another.
    assert_eq!((asked(&keeper, "a"), asked(&keeper, "b")), (2, 1));
}

#[tokio::test]
async fn a_stream_reports_the_first_failed_number_and_runs_nothing_behind_it() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere("b");
    let by_data = || settings("{kinesis.data.id}", &keeper).per_record(ReportBatchItemFailures);
    let record = |n: &str, id: &str| kinesis(n, &json!({ "id": id }));
    let records = [record("495", "a"), record("496", "b"), record("497", "a"), record("498", "c")];
    let (reported, said) = run(&keeper, by_data(), records.clone()).await;
    assert_eq!(reported, ["496"]);
    assert_eq!(said, ["+495", "-495"]);

    // Lambda sends the rest again, from the reported one on: nothing is run twice.
    keeper.free_elsewhere("b");
    let (reported, said) = run(&keeper, by_data(), records.into_iter().skip(1)).await;
    assert!(reported.is_empty());
    assert_eq!(said, ["+496", "-496", "+497", "-497", "+498", "-498"]);
}

#[tokio::test]
async fn a_table_streams_records_with_one_key_in_a_row_share_one_acquisition() {
    let keeper = TestKeeper::new();
    let layer = settings("{dynamodb.Keys.id.S}", &keeper).per_record(ReportBatchItemFailures);
    let records = [dynamodb("1", "a"), dynamodb("2", "a"), dynamodb("3", "b"), dynamodb("4", "b")];
    let (reported, said) = run(&keeper, layer, records).await;
    assert!(reported.is_empty());
    assert_eq!(said, ["+1", "-1", "+2", "-2", "+3", "-3", "+4", "-4"]);
    assert_eq!((asked(&keeper, "a"), asked(&keeper, "b")), (1, 1));
}

#[tokio::test]
async fn a_key_that_is_needed_twice_is_given_back_before_it_is_asked_for_again() {
    let keeper = TestKeeper::new();
    let records = [
        in_group("y", "1", &json!({ "id": "a" })),
        in_group("y", "2", &json!({ "id": "a" })),
        in_group("x", "3", &json!({ "id": "b" })),
        in_group("x", "4", &json!({ "id": "a" })),
    ];
    let (reported, said) = run(&keeper, per_message(&keeper), records).await;
    assert!(reported.is_empty(), "{reported:?}");
    let at = |what: &str| said.iter().position(|said| said == what);
    assert!(at("-3") < at("-2") && at("-2") < at("+4"), "the last one may begin long before it can: {said:?}");
    let happened = keeper.happened();
    let asked = Happened::Asked { key: "a".to_owned() };
    let released = |happened: &Happened| matches!(happened, Happened::Released { key, .. } if key == "a");
    let asked_again = happened.iter().rposition(|happened| *happened == asked);
    assert!(happened.iter().position(released) < asked_again, "it was busy with itself: {happened:?}");
}

/// As many as a stream brings at most, each with a key of its own: one after the other.
#[tokio::test]
async fn a_stream_of_ten_thousand_keys_is_worked_through_in_its_order() {
    let keeper = TestKeeper::new();
    let layer = settings("{kinesis.data.id}", &keeper).per_record(ReportBatchItemFailures).build().unwrap();
    let name = |n: usize| format!("{n:05}");
    let records = (0..10_000).map(|n| kinesis(&name(n), &json!({ "id": name(n) })));
    let said = Said::default();
    let mut service = layer.layer(told(said.clone(), keeper.clone()));
    // Each has its share of the time that there is: more than Lambda gives, so that no share is too short on a busy machine.
    let event = keeper.event_within(batch(records), Duration::from_secs(1_000_000));
    let reported = reported(service.call(event).await.unwrap());
    assert!(reported.is_empty(), "{} were reported, {:?} first", reported.len(), reported.first());
    let expected: Vec<_> = (0..10_000).flat_map(|n| [format!("+{}", name(n)), format!("-{}", name(n))]).collect();
    assert!(said.all() == expected, "in their order");
}
