//! Functions whose payloads are the types of `aws_lambda_events`.

use std::time::Duration;

use aws_lambda_events::event::{eventbridge::EventBridgeEvent, sqs::SqsEvent};
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::layer::AnswerFor;
use leasehold::{Lease, LeaseLayer};
use serde_json::{Value, json};

/// Locks by the message group of the first record.
pub(crate) async fn sqs() -> Result<(), Error> {
    let template = "orders:{Records[0].attributes.MessageGroupId}";
    let lease = LeaseLayer::builder(template).reserve(Duration::from_millis(200)).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(async |event: LambdaEvent<SqsEvent>| {
        Ok::<Value, Error>(json!({ "records": event.payload.records.len(), "key": Lease::current()?.key() }))
    }))
    .await
}

/// Locks by the order in the event's detail.
pub(crate) async fn eventbridge() -> Result<(), Error> {
    let lease = LeaseLayer::builder("orders:{detail.orderId}").reserve(Duration::from_millis(200)).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(async |event: LambdaEvent<EventBridgeEvent>| {
        Ok::<Value, Error>(json!({ "type": event.payload.detail_type, "key": Lease::current()?.key() }))
    }))
    .await
}

/// Skips where another one runs: locked by the rule that invokes it.
pub(crate) async fn schedule() -> Result<(), Error> {
    let lease = LeaseLayer::builder("nightly:{resources[0]}").reserve(Duration::from_millis(200));
    let lease = lease.answer_for(AnswerFor::schedule()).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(async |event: LambdaEvent<EventBridgeEvent>| {
        Ok::<Value, Error>(json!({ "ran": event.payload.detail_type, "key": Lease::current()?.key() }))
    }))
    .await
}

/// Locks by the rule that fired. `detail.fail` lets a run fail, and how long its key stays held is a variable's to say.
pub(crate) async fn scheduled() -> Result<(), Error> {
    let layer = LeaseLayer::builder("reports:{resources[0]}").reserve(Duration::from_millis(200));
    let layer = layer.answer_for(AnswerFor::schedule()).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(layer).service_fn(async |event: LambdaEvent<EventBridgeEvent>| {
        match event.payload.detail["fail"].as_bool() {
            Some(true) => Err::<Value, Error>("the report failed".into()),
            _ => Ok(json!({ "reported": event.payload.id })),
        }
    }))
    .await
}
