//! The sample function: one handler for any event, locked by a key template from its environment.
//!
//! `SAMPLE_KEY` is the key template (`orders:{detail.orderId}` unless set). What the handler does under the lock is
//! read from the event's `detail.work`, from the `work` of a JSON `body`, or from `SAMPLE_WORK`: see [`work::Work`].
//! With `SAMPLE_PER_RECORD` it is a function for a queue: the template and the work are looked for in each message, and its
//! event source mapping has to have `ReportBatchItemFailures`.

mod work;

use std::time::Duration;

use lambda_runtime::{Diagnostic, Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::{FencingToken, Lease, LeaseLayer};
use serde_json::{Value, json};

use crate::work::Work;

/// An answer within 50 ms is a matter of luck on a busy machine or a small share of a processor.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let template = std::env::var("SAMPLE_KEY").unwrap_or_else(|_| "orders:{detail.orderId}".to_owned());
    let lease = LeaseLayer::builder(template).reserve(Duration::from_millis(500));
    if std::env::var_os("SAMPLE_PER_RECORD").is_some() {
        let locked = lease.per_record(ReportBatchItemFailures).build()?;
        return lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(record)).await;
    }
    let lease = lease.build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

/// A message of a queue; whoever reads the queue wants no answer.
async fn record(message: LambdaEvent<Value>) -> Result<(), Diagnostic> {
    handler(message).await.map(drop)
}

/// A `Diagnostic` keeps the names of our errors; a boxed one would lose them.
async fn handler(event: LambdaEvent<Value>) -> Result<Value, Diagnostic> {
    let work = Work::of(&event.payload)
        .map_err(|error| Diagnostic { error_type: "UnknownWork".to_owned(), error_message: error.to_string() })?;
    let lease = Lease::current()?;
    let request = event.context.request_id;
    let (key, token) = (lease.key().as_str(), lease.token().map(FencingToken::get));
    tracing::info!(key, token, request, at_us = work::now_us(), %work, "work began");
    work.run().await;
    lease.ensure_held_within(CONFIRMED_WITHIN).await?;
    tracing::info!(key, token, request, at_us = work::now_us(), "work ended");
    Ok(json!({ "key": key, "token": token, "request": request }))
}
