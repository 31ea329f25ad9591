//! A function for an SQS queue, standard or FIFO: each message is locked by the order in its body.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example sqs_records --event events/sqs-fifo.json --event events/sqs-standard.json
//! ```
//!
//! ```text
//! {"batchItemFailures":[]}
//! {"batchItemFailures":[]}
//! ```
//!
//! Its event source mapping needs `ReportBatchItemFailures`, its role `sqs:ChangeMessageVisibility`. Somebody else holds an order: what is behind it in its message group comes back as well. (The sandbox has no SQS.)
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example sqs_records --event events/sqs-fifo.json --held orders:A-1002 \
//!   --env AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9
//! ```
//!
//! ```text
//! {"batchItemFailures":[{"itemIdentifier":"11d6ee51-…"},{"itemIdentifier":"c2c1f4aa-…"}]}
//! ```

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_lambda_events::event::sqs::SqsMessageObj;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::layer::batch::{BusyMessage, ReportBatchItemFailures};
use leasehold::{Lease, LeaseLayer};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
    action: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let sqs = aws_sdk_sqs::Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
    let locked = LeaseLayer::builder("orders:{body.orderId}")
        .reserve(Duration::from_millis(500)) // for one message
        .per_record(ReportBatchItemFailures)
        .change_visibility(move |busy: BusyMessage| {
            let seconds = busy.visibility_timeout(); // until the holder can end
            let change = sqs.change_message_visibility().queue_url(busy.queue_url).receipt_handle(busy.receipt_handle);
            async move { change.visibility_timeout(seconds).send().await.map(drop) }
        })
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(work)).await
}

async fn work(message: LambdaEvent<SqsMessageObj<Order>>) -> Result<(), Error> {
    let Order { order_id, action } = &message.payload.body;
    Lease::current()?.ensure_held()?; // before a step that can't be taken back
    tracing::info!(order_id, action, "worked on");
    Ok(())
}
