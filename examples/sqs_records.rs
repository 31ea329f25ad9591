//! A function for an SQS queue, standard or FIFO: each message is locked by the order in its body.
//!
//! Run it in the sandbox:
//!
//! ```sh
//! cargo build -p leasehold-extension && cargo build --example sqs_records
//! cargo run -p leasehold-sandbox -- invoke --function target/debug/examples/sqs_records \
//!   --event events/sqs-fifo.json --table locks
//! ```
//!
//! Its event source mapping needs `FunctionResponseTypes: [ReportBatchItemFailures]`.

use std::time::Duration;

use aws_lambda_events::event::sqs::SqsMessageObj;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::{Lease, LeaseLayer};
use serde::{Deserialize, Serialize};

/// What a message's body says. The handler takes the message with its body read already.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
    action: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let locked = LeaseLayer::builder("orders:{body.orderId}")
        .reserve(Duration::from_millis(500))
        .per_record(ReportBatchItemFailures)
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(work)).await
}

async fn work(message: LambdaEvent<SqsMessageObj<Order>>) -> Result<(), Error> {
    let Order { order_id, action } = &message.payload.body;
    let lease = Lease::current()?;
    lease.ensure_held()?; // before a step that can't be taken back
    tracing::info!(order_id, action, token = ?lease.token(), "worked on");
    Ok(())
}
