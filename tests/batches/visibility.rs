//! Busy messages are made visible when their keys' holders can end.

use std::time::Duration;

use leasehold::layer::batch::BusyMessage;
use leasehold::metrics::counts;
use leasehold::testing::TestKeeper;
use serde_json::{Value, json};

use crate::stage::{Said, in_group, message, per_message, run};

#[tokio::test]
async fn a_busy_message_is_made_visible_when_its_holder_can_end_and_no_other_is() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere_for("b", Duration::from_millis(20_300));
    let changed = Said::default();
    let changes = changed.clone();
    let layer = per_message(&keeper).change_visibility(move |busy: BusyMessage| {
        changes.say(format!(
            "{} {} {} {} {}",
            busy.message_id,
            busy.receipt_handle,
            busy.queue_url,
            busy.receive_count,
            busy.visibility_timeout()
        ));
        std::future::ready(Ok::<_, &str>(()))
    });
    let mut busy = message("2", &json!({ "id": "b" }));
    busy["attributes"]["ApproximateReceiveCount"] = "4".into();
    let records = [message("1", &json!({ "id": "a" })), busy, message("3", &json!({ "id": "c", "do": "fail" }))];
    let (reported, _) = run(&keeper, layer, records).await;
    assert_eq!(reported, ["2", "3"]);
    // Two seconds were waited away.
    let url = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders";
    assert_eq!(changed.all(), [format!("2 receipt-2 {url} 4 19")]);
}

#[tokio::test]
async fn those_behind_a_busy_message_come_back_with_it() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere_for("a", Duration::from_secs(12));
    let changed = Said::default();
    let changes = changed.clone();
    let layer = per_message(&keeper).change_visibility(move |busy: BusyMessage| {
        changes.say(format!("{} {}", busy.message_id, busy.visibility_timeout()));
        std::future::ready(Ok::<_, &str>(()))
    });
    let records = [
        in_group("x", "1", &json!({ "id": "a" })),
        in_group("x", "2", &json!({ "id": "b" })),
        in_group("y", "3", &json!({ "id": "b" })),
    ];
    let (reported, _) = run(&keeper, layer, records).await;
    assert_eq!(reported, ["1", "2"]);
    assert_eq!(changed.all(), ["1 10", "2 10"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_fails_or_hangs_changes_nothing_else() {
    let keeper = TestKeeper::new();
    for key in ["a", "b"] {
        keeper.hold_elsewhere(key);
    }
    let before = counts().failed_visibility_changes;
    let layer = per_message(&keeper).change_visibility(|busy: BusyMessage| async move {
        if busy.message_id == "1" {
            return Err("throttled");
        }
        std::future::pending().await
    });
    let records = [("1", "a"), ("2", "b"), ("3", "c")].map(|(id, key)| message(id, &json!({ "id": key })));
    let start = tokio::time::Instant::now();
    let (reported, said) = run(&keeper, layer, records).await;
    assert_eq!(reported, ["1", "2"]);
    assert_eq!(said, ["+3", "-3"]);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(counts().failed_visibility_changes - before, 2);
}

#[tokio::test]
async fn a_change_that_panics_takes_no_answer_along() {
    let keeper = TestKeeper::new();
    for key in ["a", "b"] {
        keeper.hold_elsewhere(key);
    }
    let layer = per_message(&keeper).change_visibility(|busy: BusyMessage| {
        assert_ne!(busy.message_id, "1", "a closure that panics");
        async move {
            assert_ne!(busy.message_id, "2", "a request that panics");
            Ok::<_, &str>(())
        }
    });
    let records = [("1", "a"), ("2", "b"), ("3", "c")].map(|(id, key)| message(id, &json!({ "id": key })));
    let (reported, said) = run(&keeper, layer, records).await;
    assert_eq!(reported, ["1", "2"]);
    assert_eq!(said, ["+3", "-3"]);
}

#[tokio::test]
async fn a_streams_records_are_never_made_visible() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere("a");
    let changed = Said::default();
    let changes = changed.clone();
    let layer = crate::stage::settings("{kinesis.data.id}", &keeper)
        .per_record(leasehold::layer::batch::ReportBatchItemFailures)
        .change_visibility(move |busy: BusyMessage| {
            changes.say(busy.message_id);
            std::future::ready(Ok::<_, Value>(()))
        });
    let (reported, _) = run(&keeper, layer, [crate::stage::kinesis("1", &json!({ "id": "a" }))]).await;
    assert_eq!((reported, changed.all()), (vec!["1".to_owned()], vec![]));
}
