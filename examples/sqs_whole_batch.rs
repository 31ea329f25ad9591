//! A function that works on an SQS batch as a whole, under one lock: a FIFO queue's with a batch size of 1, or one in which
//! the messages have to be seen together.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example sqs_whole_batch --event events/sqs-order.json
//! ```
//!
//! ```text
//! {"batchItemFailures":[]}
//! ```
//!
//! Its event source mapping needs `FunctionResponseTypes: [ReportBatchItemFailures]`. Where the group is busy the whole batch
//! comes back, without an error for alarms to count:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example sqs_whole_batch --event events/sqs-order.json \
//!   --held orders:order-A-1002
//! ```
//!
//! ```text
//! {"batchItemFailures":[{"itemIdentifier":""}]}
//! ```

use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::layer::AnswerFor;
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::{Lease, LeaseLayer};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("orders:{Records[0].attributes.MessageGroupId}")
        .reserve(Duration::from_secs(5)) // for the whole batch
        .answer_for(AnswerFor::whole_batch(ReportBatchItemFailures))
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

async fn handler(event: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
    let mut failed = SqsBatchResponse::default();
    for message in event.payload.records {
        Lease::current()?.ensure_held()?; // before a step that can't be taken back
        let Some(order) = message.body else {
            failed.add_failure(message.message_id.unwrap_or_default());
            continue;
        };
        tracing::info!(order, "worked on");
    }
    Ok(failed)
}
