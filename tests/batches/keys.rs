//! Where a record's key comes from.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::testing::TestKeeper;
use leasehold::{Lease, LeaseLayer, MissingPath};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stage::{Said, asked, batch, in_group, message, reported, run, settings};

#[tokio::test]
async fn a_template_reaches_into_bodies_and_takes_what_stands_beside_them() {
    for (template, key) in [
        ("orders:{body.id}", "orders:17"),
        ("{attributes.MessageGroupId}:{body.items[0].sku}", "1:g:3:abc"),
        ("{body.Message.id}", "inner"),
        ("{@request_id}/{messageId}", "14:test-request-1/1:1"),
    ] {
        let keeper = TestKeeper::new();
        let body = json!({ "id": 17, "items": [{ "sku": "abc" }], "Message": json!({ "id": "inner" }).to_string() });
        let layer = settings(template, &keeper).per_record(ReportBatchItemFailures);
        let (reported, _) = run(&keeper, layer, [in_group("g", "1", &body)]).await;
        assert!(reported.is_empty());
        assert_eq!(asked(&keeper, key), 1, "{template}: {:?}", keeper.happened());
    }
}

#[tokio::test]
async fn a_path_that_ends_at_the_body_takes_its_text() {
    let keeper = TestKeeper::new();
    let layer = settings("{body}", &keeper).per_record(ReportBatchItemFailures);
    let mut record = message("1", &Value::Null);
    record["body"] = "order-17".into();
    let mut service = layer.build().unwrap().layer(service_fn(async |_: LambdaEvent<Value>| Ok::<_, Error>(())));
    let response = keeper.invoke(&mut service, batch([record])).await.unwrap();
    assert_eq!(response.batch_item_failures, []);
    assert_eq!(asked(&keeper, "order-17"), 1);
}

#[tokio::test]
async fn a_closure_sees_the_handlers_own_type() {
    #[derive(Deserialize)]
    struct Message {
        body: String,
    }
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::keyed_by(|record: &LambdaEvent<Message>| {
        let first = record.payload.body.lines().next().map(|line| format!("first:{line}"));
        first.filter(|key| key != "first:panic").ok_or("no line in the body").inspect_err(|_| {
            assert!(!record.payload.body.starts_with("panic"), "a closure that panics");
        })
    });
    let layer = layer.reserve(Duration::from_secs(1)).test_keeper(&keeper).per_record(ReportBatchItemFailures);
    let said = Said::default();
    let says = said.clone();
    let handler = service_fn(move |event: LambdaEvent<Message>| {
        says.say(event.payload.body);
        async { Ok::<_, Error>(Lease::current()?.ensure_held()?) }
    });
    let mut service = layer.build().unwrap().layer(handler);
    let record = |id: &str, body: &str| {
        let mut record = message(id, &Value::Null);
        record["body"] = body.into();
        record
    };
    let event = batch([record("1", "a\nb"), record("2", ""), record("3", "panic")]);
    let response = keeper.invoke(&mut service, event).await.unwrap();
    assert_eq!(reported(response), ["2", "3"]);
    assert_eq!(said.all(), ["a\nb"]);
    assert_eq!(asked(&keeper, "first:a"), 1);
}

#[tokio::test]
async fn a_bad_record_fails_by_itself() {
    let keeper = TestKeeper::new();
    let layer = settings("{body.id}", &keeper).per_record(ReportBatchItemFailures);
    let mut no_json = message("3", &Value::Null);
    no_json["body"] = "not JSON".into();
    let records = [message("1", &json!({ "id": "a" })), message("2", &json!({})), no_json];
    let (reported, said) = run(&keeper, layer, records).await;
    assert_eq!(reported, ["2", "3"]);
    assert_eq!(said, ["+1", "-1"]);

    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "messageId")]
        id: u64,
    }
    let layer = LeaseLayer::builder("{body.id}").reserve(Duration::from_secs(1)).test_keeper(&keeper);
    let handler = async |event: LambdaEvent<Typed>| Ok::<_, Error>(event.payload.id);
    let mut service = layer.per_record(ReportBatchItemFailures).build().unwrap().layer(service_fn(handler));
    let mut typed = message("2", &json!({ "id": "b" }));
    typed["messageId"] = "3".into();
    let error = keeper.invoke(&mut service, batch([typed])).await.unwrap_err();
    assert_eq!(error.error_type(), "NoUsableRecord");
    assert!(error.to_string().contains("`messageId`"), "{error}");
}

#[tokio::test]
async fn records_that_may_lack_a_key_run_unlocked() {
    let keeper = TestKeeper::new();
    let layer = settings("{body.id}", &keeper).missing_path(MissingPath::RunUnlocked);
    let records =
        [message("1", &json!({})), message("2", &json!({ "do": "ask" })), message("3", &json!({ "id": "a" }))];
    let (reported, mut said) = run(&keeper, layer.per_record(ReportBatchItemFailures), records).await;
    assert_eq!(reported, ["2"], "there is no lease to ask");
    said.sort();
    assert_eq!(said, ["+1", "+2", "+3", "-1", "-3"]);
    assert_eq!(asked(&keeper, "a"), 1);
}

#[tokio::test]
async fn a_namespace_stands_before_each_records_key() {
    let keeper = TestKeeper::new();
    let layer = settings("{body.id}", &keeper).namespace("billing").per_record(ReportBatchItemFailures);
    run(&keeper, layer, [message("1", &json!({ "id": "a" }))]).await;
    assert_eq!(asked(&keeper, "billing/a"), 1);
}
