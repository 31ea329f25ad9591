//! Batches, layers and a handler that does what its record tells it to, for these tests.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::layer::TemplateText;
use leasehold::layer::batch::{BatchLayerBuilder, BatchResponse, ReportBatchItemFailures};
use leasehold::session::ReleaseReason;
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Lease, LeaseLayer, LeaseLayerBuilder};
use serde_json::{Value, json};

pub(crate) const QUEUE: &str = "arn:aws:sqs:eu-central-1:123456789012:orders";

/// A message of a standard queue, with this body.
pub(crate) fn message(id: &str, body: &Value) -> Value {
    json!({
        "messageId": id, "receiptHandle": format!("receipt-{id}"), "body": body.to_string(),
        "attributes": { "ApproximateReceiveCount": "1" }, "eventSource": "aws:sqs", "eventSourceARN": QUEUE,
    })
}

/// A message of a FIFO queue's group.
pub(crate) fn in_group(group: &str, id: &str, body: &Value) -> Value {
    let mut message = message(id, body);
    message["attributes"]["MessageGroupId"] = group.into();
    message["eventSourceARN"] = format!("{QUEUE}.fifo").into();
    message
}

/// A record of a Kinesis shard.
pub(crate) fn kinesis(sequence_number: &str, data: &Value) -> Value {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(data.to_string());
    json!({
        "eventSource": "aws:kinesis", "eventID": format!("shardId-000000000000:{sequence_number}"),
        "kinesis": { "sequenceNumber": sequence_number, "partitionKey": "p", "data": data },
    })
}

/// A record of a DynamoDB stream's shard.
pub(crate) fn dynamodb(sequence_number: &str, id: &str) -> Value {
    json!({
        "eventSource": "aws:dynamodb", "eventName": "MODIFY",
        "dynamodb": { "SequenceNumber": sequence_number, "Keys": { "id": { "S": id } } },
    })
}

pub(crate) fn batch(records: impl IntoIterator<Item = Value>) -> Value {
    json!({ "Records": records.into_iter().collect::<Vec<_>>() })
}

/// A layer keyed by `id` in the message's body, whose handler needs a second.
pub(crate) fn per_message(keeper: &TestKeeper) -> BatchLayerBuilder<Value, TemplateText> {
    settings("{body.id}", keeper).per_record(ReportBatchItemFailures)
}

pub(crate) fn settings(template: &str, keeper: &TestKeeper) -> LeaseLayerBuilder<Value> {
    LeaseLayer::builder(template).reserve(Duration::from_secs(1)).test_keeper(keeper)
}

/// What handlers said, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// The name that a record goes by.
pub(crate) fn id_of(record: &Value) -> String {
    let id = [&record["messageId"], &record["kinesis"]["sequenceNumber"], &record["dynamodb"]["SequenceNumber"]];
    id.into_iter().find_map(Value::as_str).unwrap().to_owned()
}

/// A handler that says `+id` and `-id` around one turn of the executor, and in between does what the body's `do` says.
pub(crate) fn told(
    said: Said,
    keeper: TestKeeper,
) -> impl Service<LambdaEvent<Value>, Response = (), Error = Error, Future = impl Future<Output = Result<(), Error>>> + Clone
{
    service_fn(move |event: LambdaEvent<Value>| {
        let (said, keeper) = (said.clone(), keeper.clone());
        async move {
            let id = id_of(&event.payload);
            let body: Value = event.payload["body"].as_str().map_or(Ok(Value::Null), serde_json::from_str)?;
            said.say(format!("+{id}"));
            tokio::task::yield_now().await;
            match body["do"].as_str() {
                Some("fail") => return Err("told to fail".into()),
                Some("panic") => std::panic::resume_unwind(Box::new("told to panic")),
                Some("hang") => std::future::pending().await,
                Some("lose") => {
                    keeper.lose(Lease::current()?.key().as_str());
                    std::future::pending().await
                }
                Some("lose and end") => keeper.lose(Lease::current()?.key().as_str()),
                Some("take 2s") => keeper.advance(Duration::from_secs(2)),
                Some("take 10s") => keeper.advance(Duration::from_secs(10)),
                Some("ask") => Lease::current()?.ensure_held()?,
                _ => {}
            }
            said.say(format!("-{id}"));
            Ok(())
        }
    })
}

/// Runs a batch under the layer with such a handler; what is reported, and what was said.
pub(crate) async fn run<V: leasehold::layer::batch::Visibility>(
    keeper: &TestKeeper,
    layer: BatchLayerBuilder<Value, TemplateText, V>,
    records: impl IntoIterator<Item = Value>,
) -> (Vec<String>, Vec<String>) {
    let said = Said::default();
    let mut service = layer.build().unwrap().layer(told(said.clone(), keeper.clone()));
    let response = keeper.invoke(&mut service, batch(records)).await.unwrap();
    (reported(response), said.all())
}

pub(crate) fn reported(response: BatchResponse) -> Vec<String> {
    response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
}

/// How often this key was asked for.
pub(crate) fn asked(keeper: &TestKeeper, key: &str) -> usize {
    keeper
        .happened()
        .iter()
        .filter(|happened| matches!(happened, Happened::Asked { key: asked } if asked == key))
        .count()
}

/// Why leases on this key were given back.
pub(crate) fn releases(keeper: &TestKeeper, key: &str) -> Vec<ReleaseReason> {
    let reason = |happened| match happened {
        Happened::Released { key: released, reason } if released == key => Some(reason),
        _ => None,
    };
    keeper.happened().into_iter().filter_map(reason).collect()
}
