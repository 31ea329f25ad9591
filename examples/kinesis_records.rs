//! A function for a Kinesis stream: each record is locked by the order in its data.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example kinesis_records --event events/kinesis.json
//! ```
//!
//! ```text
//! {"batchItemFailures":[]}
//! ```
//!
//! Its event source mapping needs `FunctionResponseTypes: [ReportBatchItemFailures]`. Somebody else holds an order: the shard
//! goes on from there later.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example kinesis_records --event events/kinesis.json --held orders:A-1003
//! ```
//!
//! ```text
//! {"batchItemFailures":[{"itemIdentifier":"49590338271490256608559692540925702759324208523137515618"}]}
//! ```

use std::time::Duration;

use aws_lambda_events::event::kinesis::KinesisEventRecord;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::{Lease, LeaseLayer};
use serde::Deserialize;

/// What a record's data say.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
    action: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let locked = LeaseLayer::builder("orders:{kinesis.data.orderId}")
        .reserve(Duration::from_millis(500))
        .max_wait(Duration::from_secs(1)) // a busy record is a retry of all behind it: rather wait
        .per_record(ReportBatchItemFailures)
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(work)).await
}

async fn work(record: LambdaEvent<KinesisEventRecord>) -> Result<(), Error> {
    let Order { order_id, action } = serde_json::from_slice(&record.payload.kinesis.data)?;
    let lease = Lease::current()?;
    lease.ensure_held()?; // before a step that can't be taken back
    tracing::info!(order_id, action, token = ?lease.token(), "worked on");
    Ok(())
}
