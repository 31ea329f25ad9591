//! AWS's own events, and handlers of the records' types of `aws_lambda_events`.

use std::fs::read_to_string;

use aws_lambda_events::event::dynamodb::EventRecord;
use aws_lambda_events::event::kinesis::KinesisEventRecord;
use aws_lambda_events::event::sqs::SqsMessage;
use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::testing::TestKeeper;
use leasehold::{Lease, LeaseLayer};
use serde_json::{Value, json};

use crate::stage::{Said, asked};

fn event(name: &str) -> Value {
    let path = format!("{}/events/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&read_to_string(path).unwrap()).unwrap()
}

/// Runs a source's event through a handler of its records that says the record's name and key, and fails where told.
macro_rules! records_of {
    ($record:ty, $file:literal, $template:literal, $name:expr, fails: $fails:expr) => {{
        let keeper = TestKeeper::new();
        let said = Said::default();
        let says = said.clone();
        let handler = service_fn(move |event: LambdaEvent<$record>| {
            let says = says.clone();
            async move {
                let name: String = $name(&event.payload);
                says.say(format!("{name} {}", Lease::current()?.key()));
                if name == $fails { Err(Error::from("told to fail")) } else { Ok(()) }
            }
        });
        let layer = LeaseLayer::builder($template).reserve(std::time::Duration::from_secs(1)).test_keeper(&keeper);
        let mut service = layer.per_record(ReportBatchItemFailures).build().unwrap().layer(handler);
        let response = keeper.invoke(&mut service, event($file)).await.unwrap();
        (keeper, said.all(), serde_json::to_value(response).unwrap())
    }};
}

#[tokio::test]
async fn sqs_messages_by_the_order_in_their_bodies() {
    let name = |message: &SqsMessage| message.message_id.clone().unwrap()[..2].to_owned();
    let (keeper, said, response) = records_of!(SqsMessage, "sqs-fifo.json", "orders:{body.orderId}", name, fails: "11");
    assert_eq!(said, ["11 orders:A-1002", "5a orders:A-1003"]);
    let failed = ["11d6ee51-4cc7-4302-9e22-7cd8afdaadf5", "c2c1f4aa-97d0-4d3c-8a1e-60b3c5a7d811"];
    assert_eq!(response, json!({ "batchItemFailures": failed.map(|id| json!({ "itemIdentifier": id })) }));
    assert_eq!(asked(&keeper, "orders:A-1002"), 1);
}

#[tokio::test]
async fn kinesis_records_by_the_order_in_their_data() {
    let name = |record: &KinesisEventRecord| record.kinesis.sequence_number[47..].to_owned();
    let (_, said, response) =
        records_of!(KinesisEventRecord, "kinesis.json", "orders:{kinesis.data.orderId}", name, fails: "137515618");
    assert_eq!(said, ["136588898 orders:A-1002", "137515618 orders:A-1003"]);
    let failed = "49590338271490256608559692540925702759324208523137515618";
    assert_eq!(response, json!({ "batchItemFailures": [{ "itemIdentifier": failed }] }));
}

#[tokio::test]
async fn table_stream_records_by_the_items_key() {
    let name = |record: &EventRecord| record.event_name.clone();
    let (keeper, said, response) =
        records_of!(EventRecord, "dynamodb-streams.json", "orders:{dynamodb.Keys.orderId.S}", name, fails: "");
    assert_eq!(said, ["INSERT orders:A-1002", "MODIFY orders:A-1002", "REMOVE orders:A-1003"]);
    assert_eq!(response, json!({ "batchItemFailures": [] }));
    assert_eq!(asked(&keeper, "orders:A-1002"), 1);
}
