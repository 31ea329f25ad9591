//! What can't work says what to change.

use std::time::Duration;

use lambda_runtime::tower::Layer as _;
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::session::FailKind;
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Error, LeaseLayer};
use serde_json::{Value, json};

use crate::stage::{Said, batch, message, per_message, reported, settings, told};

async fn refused(keeper: &TestKeeper, template: &str, event: Value) -> Error {
    let layer = settings(template, keeper).per_record(ReportBatchItemFailures).build().unwrap();
    let mut service = layer.layer(told(Said::default(), keeper.clone()));
    keeper.invoke(&mut service, event).await.unwrap_err()
}

#[tokio::test]
async fn a_key_that_no_record_has_is_an_error_that_names_its_path() {
    let keeper = TestKeeper::new();
    let records = ["1", "2"].map(|id| message(id, &json!({ "orderId": id })));
    let error = refused(&keeper, "{body.order_id}", batch(records)).await;
    assert_eq!(error.error_type(), "NoUsableRecord");
    let said = error.to_string();
    assert!(said.contains("records (2)") && said.contains("no `body.order_id`"), "{said}");
    assert!(said.contains("what it has there is `orderId`"), "{said}");
    assert!(!keeper.happened().iter().any(|happened| matches!(happened, Happened::Asked { .. })));
}

#[tokio::test]
async fn a_reserve_longer_than_the_invocation_is_one_error_and_nothing_is_asked() {
    let keeper = TestKeeper::new();
    let layer = settings("{body.id}", &keeper).reserve(Duration::from_secs(40)).per_record(ReportBatchItemFailures);
    let mut service = layer.build().unwrap().layer(told(Said::default(), keeper.clone()));
    let error = keeper.invoke(&mut service, batch([message("1", &json!({ "id": "a" }))])).await.unwrap_err();
    assert_eq!(error.error_type(), "DeadlineTooClose");
    let said = error.to_string();
    assert!(
        said.contains("the reserve of 40s is longer") && said.contains("every invocation will be refused"),
        "{said}"
    );
    assert!(!keeper.happened().iter().any(|happened| matches!(happened, Happened::Asked { .. })));
}

#[tokio::test]
async fn an_event_that_is_no_batch_says_what_it_is_instead() {
    let keeper = TestKeeper::new();
    for (event, said) in [
        (json!({ "detail": {}, "source": "orders" }), "missing field `Records`"),
        (json!({ "detail": {}, "source": "orders" }), "what it has is `detail`, `source`"),
        (json!({ "Records": [{ "eventSource": "aws:s3", "s3": {} }] }), "aws:s3"),
    ] {
        let error = refused(&keeper, "{body.id}", event).await;
        assert_eq!(error.error_type(), "NotABatch");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn all_that_is_wrong_with_the_settings_is_told_at_once() {
    let layer = LeaseLayer::<Value>::builder("orders:{body.id").environment([("LEASEHOLD_MAX_WAIT", "soon")]);
    let error = layer.per_record(ReportBatchItemFailures).concurrency(0).build().unwrap_err();
    assert_eq!(error.problems().len(), 4, "{error}");
    assert!(error.problems()[0].contains("`concurrency` is 0"), "{error}");
}

#[tokio::test]
async fn a_setup_that_serves_no_record_is_an_error_that_alarms_see() {
    let keeper = TestKeeper::new();
    keeper.fail(FailKind::AccessDenied);
    let error = refused(&keeper, "{body.id}", batch(["1", "2"].map(|id| message(id, &json!({ "id": id }))))).await;
    assert_eq!(error.error_type(), "AccessDenied");

    keeper.recover();
    keeper.vanish();
    let error = refused(&keeper, "{body.id}", batch([message("1", &json!({ "id": "a" }))])).await;
    assert_eq!(error.error_type(), "KeeperMissing");
}

#[tokio::test]
async fn a_dynamodb_out_of_reach_reports_each_record() {
    let keeper = TestKeeper::new();
    keeper.fail(FailKind::Connection);
    let records = ["1", "2"].map(|id| message(id, &json!({ "id": id })));
    let (reported, said) = crate::stage::run(&keeper, per_message(&keeper), records).await;
    assert_eq!((reported.len(), said.len()), (2, 0));
}

#[tokio::test]
async fn a_key_that_a_layer_around_the_batch_holds_fails_its_record() {
    let keeper = TestKeeper::new();
    let per_record = per_message(&keeper).build().unwrap().layer(told(Said::default(), keeper.clone()));
    let whole = LeaseLayer::builder("{Records[0].messageId}").reserve(Duration::from_secs(1)).test_keeper(&keeper);
    let mut service = whole.build().unwrap().layer(per_record);
    let records = ["1", "2"].map(|id| message(id, &json!({ "id": id })));
    let response = keeper.invoke(&mut service, batch(records)).await.unwrap();
    assert_eq!(reported(response), ["1"], "waiting for it would never end");
}
