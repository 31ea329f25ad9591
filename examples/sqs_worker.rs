//! A worker that takes whole `SqsEvent`s and was there before the locks: each message is handed to it as a batch of one.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example sqs_worker --event events/sqs-standard.json
//! ```
//!
//! ```text
//! {"batchItemFailures":[]}
//! ```
//!
//! Its event source mapping needs `FunctionResponseTypes: [ReportBatchItemFailures]`. Somebody else holds one order:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example sqs_worker --event events/sqs-standard.json --held orders:A-1003
//! ```
//!
//! ```text
//! {"batchItemFailures":[{"itemIdentifier":"5a6f1d4e-0a5b-4b8e-9c0f-3f5a9a1f2b77"}]}
//! ```

use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::LeaseLayer;
use leasehold::layer::batch::ReportBatchItemFailures;

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let locked = LeaseLayer::builder("orders:{body.orderId}")
        .reserve(Duration::from_secs(2)) // for one message
        .max_wait(Duration::from_secs(1))
        .per_record(ReportBatchItemFailures)
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(one)).await
}

/// A batch of this one message, for the worker as it is.
async fn one(message: LambdaEvent<SqsMessage>) -> Result<(), Error> {
    let (message, context) = message.into_parts();
    let mut batch = SqsEvent::default();
    batch.records = vec![message];
    let failed = worker(LambdaEvent::new(batch, context)).await?.batch_item_failures;
    if failed.is_empty() { Ok(()) } else { Err("the worker reports this message".into()) }
}

/// The worker as it was.
async fn worker(batch: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
    let mut response = SqsBatchResponse::default();
    for message in batch.payload.records {
        match message.body {
            Some(body) => tracing::info!(body, "worked on"),
            None => response.add_failure(message.message_id.unwrap_or_default()),
        }
    }
    Ok(response)
}
