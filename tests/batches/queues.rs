//! Standard queues: what is done is not reported, what is not is, and nobody else suffers.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _};
use leasehold::OnCrash;
use leasehold::session::ReleaseReason;
use leasehold::testing::{Happened, TestKeeper};
use serde_json::json;

use crate::stage::{Said, asked, batch, message, per_message, releases, run, told};

#[tokio::test]
async fn what_all_is_done_reports_nothing() {
    let keeper = TestKeeper::new();
    let records = ["1", "2"].map(|id| message(id, &json!({ "id": id, "do": "ask" })));
    let (reported, said) = run(&keeper, per_message(&keeper), records).await;
    assert!(reported.is_empty());
    assert_eq!(said, ["+1", "+2", "-1", "-2"], "different keys overlap");
    assert!(!keeper.is_held("1") && !keeper.is_held("2"));
}

#[tokio::test]
async fn an_empty_batch_is_done() {
    let keeper = TestKeeper::new();
    assert_eq!(run(&keeper, per_message(&keeper), []).await, (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn only_the_records_that_failed_are_reported() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere("b");
    let records = [
        message("1", &json!({ "id": "a" })),
        message("2", &json!({ "id": "a", "do": "fail" })),
        message("3", &json!({ "id": "a" })),
        message("4", &json!({ "id": "b" })),
        message("5", &json!({ "id": "c", "do": "panic" })),
        message("6", &json!({ "id": "d" })),
    ];
    let (reported, said) = run(&keeper, per_message(&keeper), records).await;
    assert_eq!(reported, ["2", "4", "5"]);
    for done in ["-1", "-3", "-6"] {
        assert!(said.contains(&done.to_owned()), "{said:?}");
    }
}

#[tokio::test]
async fn records_with_one_key_run_in_order_and_share_one_acquisition() {
    let keeper = TestKeeper::new();
    let records = ["1", "2", "3"].map(|id| message(id, &json!({ "id": "a", "do": "ask" })));
    let (reported, said) = run(&keeper, per_message(&keeper), records).await;
    assert!(reported.is_empty());
    assert_eq!(said, ["+1", "-1", "+2", "-2", "+3", "-3"]);
    assert_eq!(asked(&keeper, "a"), 1);
    assert_eq!(releases(&keeper, "a"), [ReleaseReason::Finished]);
}

#[tokio::test]
async fn no_more_keys_are_worked_on_at_a_time_than_the_limit_says() {
    let keeper = TestKeeper::new();
    let records = ["1", "2", "3"].map(|id| message(id, &json!({ "id": id })));
    let (_, said) = run(&keeper, per_message(&keeper).concurrency(2), records.clone()).await;
    assert_eq!(said, ["+1", "+2", "-1", "-2", "+3", "-3"]);
    let (_, said) = run(&keeper, per_message(&keeper).concurrency(1), records).await;
    assert_eq!(said, ["+1", "-1", "+2", "-2", "+3", "-3"]);
}

#[tokio::test]
async fn a_panic_fails_its_record_only_and_the_lease_goes_back_as_on_crash_says() {
    let records = || {
        [
            message("1", &json!({ "id": "a", "do": "panic" })),
            message("2", &json!({ "id": "a" })),
            message("3", &json!({ "id": "b" })),
        ]
    };
    let keeper = TestKeeper::new();
    let (reported, said) = run(&keeper, per_message(&keeper), records()).await;
    assert_eq!(reported, ["1"]);
    assert!(said.contains(&"-2".to_owned()) && said.contains(&"-3".to_owned()), "{said:?}");
    assert_eq!(releases(&keeper, "a"), [ReleaseReason::Dropped]);

    // What the panic left half done may still be under way: nothing else runs on its key before the lease has ended.
    let keeper = TestKeeper::new();
    let expires = crate::stage::settings("{body.id}", &keeper).on_crash(OnCrash::Expire);
    let layer = expires.per_record(leasehold::layer::batch::ReportBatchItemFailures);
    let (reported, said) = run(&keeper, layer, records()).await;
    assert_eq!(reported, ["1", "2"]);
    assert_eq!(said, ["+1", "+3", "-3"]);
    let (reported, _) = run(&keeper, per_message(&keeper), [message("1", &json!({ "id": "a" }))]).await;
    assert_eq!(reported, ["1"], "left to end by itself");
    keeper.advance(Duration::from_secs(30));
    let (reported, _) = run(&keeper, per_message(&keeper), [message("1", &json!({ "id": "a" }))]).await;
    assert!(reported.is_empty());
}

#[tokio::test]
async fn the_invocation_begins_first_and_each_key_has_a_session_of_its_own() {
    let keeper = TestKeeper::new();
    let records = ["1", "2"].map(|id| message(id, &json!({ "id": id })));
    run(&keeper, per_message(&keeper), records).await;
    let happened = keeper.happened();
    let Happened::Began { request_id } = &happened[0] else { panic!("{happened:?}") };
    let began = |happened: &&Happened| matches!(happened, Happened::Began { request_id: other } if other == request_id);
    assert_eq!(happened.iter().filter(began).count(), 3);
}

#[tokio::test]
async fn a_dropped_batch_gives_back_all_that_it_holds_as_after_a_crash() {
    let keeper = TestKeeper::new();
    let mut service = per_message(&keeper).build().unwrap().layer(told(Said::default(), keeper.clone()));
    let records = ["1", "2"].map(|id| message(id, &json!({ "id": id, "do": "hang" })));
    let mut invocation = tokio_test::task::spawn(service.call(keeper.event(batch(records))));
    assert!(invocation.poll().is_pending());
    assert!(keeper.is_held("1") && keeper.is_held("2"));
    drop(invocation);
    assert!(!keeper.is_held("1") && !keeper.is_held("2"));
    assert_eq!(releases(&keeper, "1"), [ReleaseReason::Dropped]);
}
