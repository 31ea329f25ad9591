//! One lock for a whole batch: the plain layer, and what it answers when it does not run the handler.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::LeaseLayer;
use leasehold::layer::AnswerFor;
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::testing::TestKeeper;
use serde_json::{Value, json};

use crate::stage::{batch, in_group, message, per_message, told};

const KEY: &str = "groups:x";

async fn nothing_failed(_: LambdaEvent<Value>) -> Result<Value, Error> {
    Ok(json!({ "batchItemFailures": [] }))
}

#[tokio::test]
async fn a_whole_batch_comes_back_where_its_handler_did_not_run() {
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::builder("groups:{Records[0].attributes.MessageGroupId}").test_keeper(&keeper);
    let layer = layer.reserve(Duration::from_secs(5)).answer_for(AnswerFor::whole_batch(ReportBatchItemFailures));
    let mut service = layer.build().unwrap().layer(service_fn(nothing_failed));
    let event = || batch([in_group("x", "1", &json!({})), in_group("x", "2", &json!({}))]);

    let done = keeper.invoke(&mut service, event()).await.unwrap();
    assert_eq!(serde_json::to_value(done).unwrap(), json!({ "batchItemFailures": [] }));

    // An empty name is what Lambda takes for a failure of everything.
    let all_failed = json!({ "batchItemFailures": [{ "itemIdentifier": "" }] });
    let too_close = service.call(keeper.event_within(event(), Duration::from_secs(4))).await.unwrap();
    assert_eq!(serde_json::to_value(too_close).unwrap(), all_failed);
    keeper.hold_elsewhere(KEY);
    let busy = keeper.invoke(&mut service, event()).await.unwrap();
    assert_eq!(serde_json::to_value(busy).unwrap(), all_failed);
}

#[tokio::test]
async fn a_whole_batchs_layer_goes_around_one_of_records() {
    let keeper = TestKeeper::new();
    let said = crate::stage::Said::default();
    let per_record = per_message(&keeper).build().unwrap().layer(told(said.clone(), keeper.clone()));
    let whole = LeaseLayer::builder("queue:{Records[0].eventSourceARN}").reserve(Duration::from_secs(1));
    let whole = whole.answer_for(AnswerFor::whole_batch(ReportBatchItemFailures)).test_keeper(&keeper);
    let mut service = whole.build().unwrap().layer(per_record);
    let event =
        batch([message("1", &json!({ "id": "a", "do": "ask" })), message("2", &json!({ "id": "b", "do": "fail" }))]);
    let response = keeper.invoke(&mut service, event).await.unwrap();
    let expected = json!({ "batchItemFailures": [{ "itemIdentifier": "2" }] });
    assert_eq!(serde_json::to_value(response).unwrap(), expected);
}
