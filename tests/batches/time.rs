//! A record's own time: a share of what is left, what its work needs, and an end before the invocation's.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::testing::TestKeeper;
use leasehold::{LeaseLayer, OnCrash};
use serde_json::{Value, json};

use crate::stage::{Said, batch, message, per_message, reported, run, settings, told};

/// What each record's context says is left, in milliseconds.
async fn lefts(keeper: &TestKeeper, reserve: Option<Duration>, at_a_time: usize, records: usize) -> Vec<u64> {
    let mut layer = LeaseLayer::builder("{body.id}").test_keeper(keeper);
    if let Some(reserve) = reserve {
        layer = layer.reserve(reserve);
    }
    let said = Said::default();
    let (says, time) = (said.clone(), keeper.clone());
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        says.say((event.context.deadline + 30_000 - time.event(()).context.deadline).to_string());
        time.advance(Duration::from_secs(1));
        async { Ok::<_, Error>(()) }
    });
    let layer = layer.per_record(ReportBatchItemFailures).concurrency(at_a_time).build().unwrap();
    let records = (0..records).map(|id| message(&format!("m{id}"), &json!({ "id": id })));
    let response = keeper.invoke(&mut layer.layer(handler), batch(records)).await.unwrap();
    assert_eq!(response.batch_item_failures, []);
    said.all().into_iter().map(|left| left.parse().unwrap()).collect()
}

#[tokio::test]
async fn what_is_left_is_shared_by_the_records_that_are_still_to_come() {
    let keeper = TestKeeper::new();
    // Of 30 s half a second is kept; each takes one.
    assert_eq!(lefts(&keeper, None, 1, 5).await, [5_900, 7_125, 9_166, 13_250, 25_500]);
}

#[tokio::test]
async fn a_record_has_what_its_work_needs_however_many_there_are() {
    let keeper = TestKeeper::new();
    let lefts = lefts(&keeper, Some(Duration::from_secs(10)), 1, 20).await;
    assert_eq!(lefts.len(), 20);
    assert!(lefts[..19].iter().all(|left| (9_500..=12_000).contains(left)), "{lefts:?}");
}

#[tokio::test]
async fn without_a_deadline_nothing_is_shared_out() {
    let keeper = TestKeeper::new();
    let mut service = per_message(&keeper).build().unwrap().layer(told(Said::default(), keeper.clone()));
    let mut event = keeper.event(batch([message("1", &json!({ "id": "a", "do": "take 10s" }))]));
    event.context.deadline = 0;
    assert_eq!(service.call(event).await.unwrap().batch_item_failures, []);
}

#[tokio::test]
async fn records_for_which_too_little_is_left_are_reported_and_not_run() {
    let keeper = TestKeeper::new();
    let records = ["1", "2", "3", "4"].map(|id| message(id, &json!({ "id": id, "do": "take 10s" })));
    let layer = settings("{body.id}", &keeper).reserve(Duration::from_secs(10)).per_record(ReportBatchItemFailures);
    let (reported, said) = run(&keeper, layer.concurrency(1), records).await;
    assert_eq!(said, ["+1", "-1", "+2", "-2"], "9.5 s were left then");
    assert_eq!(reported, ["3", "4"]);

    // The same within one key's lease.
    let records = ["1", "2", "3", "4"].map(|id| message(id, &json!({ "id": "a", "do": "take 10s" })));
    let layer = settings("{body.id}", &keeper).reserve(Duration::from_secs(10)).per_record(ReportBatchItemFailures);
    let (reported, said) = run(&keeper, layer, records).await;
    assert_eq!((reported.join(" "), said.join(" ")), ("3 4".to_owned(), "+1 -1 +2 -2".to_owned()));
}

#[tokio::test]
async fn a_busy_key_waits_away_only_its_own_time() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere("a");
    let layer = settings("{body.id}", &keeper).max_wait(Duration::from_secs(60)).per_record(ReportBatchItemFailures);
    let before = keeper.event(()).context.deadline;
    let records = ["a", "b", "c"].map(|id| message(id, &json!({ "id": id })));
    let (reported, said) = run(&keeper, layer.concurrency(1), records).await;
    let waited = keeper.event(()).context.deadline - before;
    assert_eq!(reported, ["a"]);
    assert_eq!(said, ["+b", "-b", "+c", "-c"]);
    // A third of 29.5 s, less what the work would have needed.
    assert_eq!(waited, 8_833);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_end_is_ended_and_what_others_did_is_reported_as_done() {
    let keeper = TestKeeper::new();
    let records = [
        message("1", &json!({ "id": "a", "do": "hang" })),
        message("2", &json!({ "id": "b" })),
        message("3", &json!({ "id": "a" })),
    ];
    let start = tokio::time::Instant::now();
    let (reported, said) = run(&keeper, per_message(&keeper), records.clone()).await;
    assert_eq!(reported, ["1"]);
    assert!(said.contains(&"-2".to_owned()) && said.contains(&"-3".to_owned()), "{said:?}");
    assert!(start.elapsed() < Duration::from_millis(29_500), "before Lambda ends it: {:?}", start.elapsed());

    let expires = settings("{body.id}", &keeper).on_crash(OnCrash::Expire).per_record(ReportBatchItemFailures);
    let (reported, _) = run(&keeper, expires, records).await;
    assert_eq!(reported, ["1", "3"], "what was ended in the middle may still be under way");
}

#[tokio::test(start_paused = true)]
async fn the_margin_before_the_deadline_is_kept_free_of_records() {
    let keeper = TestKeeper::new();
    let margin = Duration::from_secs(4);
    let layer = settings("{body.id}", &keeper).reserve(Duration::from_secs(5)).end_before_deadline(margin);
    let start = tokio::time::Instant::now();
    let mut service =
        layer.per_record(ReportBatchItemFailures).build().unwrap().layer(told(Said::default(), keeper.clone()));
    let event = batch([message("1", &json!({ "id": "a", "do": "hang" }))]);
    assert_eq!(reported(keeper.invoke(&mut service, event).await.unwrap()), ["1"]);
    // A timer of whole milliseconds.
    let ended = start.elapsed().as_millis();
    assert!((26_000..26_010).contains(&ended), "{ended}");
}
