//! A function with the layer and one without.

use lambda_runtime::{Error, LambdaEvent, service_fn, tower::ServiceBuilder};
use serde_json::Value;

use crate::work::{Done, Job, layer};

/// Locks by the event's `id`.
pub(crate) async fn locked() -> Result<(), Error> {
    lambda_runtime::run(ServiceBuilder::new().layer(layer()?).service_fn(work)).await
}

async fn work(event: LambdaEvent<Job>) -> Result<Done, leasehold::Error> {
    event.payload.run(&event.context.request_id).await
}

/// Answers with the event, and knows nothing of locks.
pub(crate) async fn without_layer() -> Result<(), Error> {
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move { Ok::<_, Error>(event.payload) })).await
}
