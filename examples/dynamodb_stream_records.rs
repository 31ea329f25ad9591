//! A function for a table's stream: each record is locked by the key of the item that changed.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example dynamodb_stream_records --event events/dynamodb-streams.json
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
//! cargo run -p leasehold-sandbox -- invoke --example dynamodb_stream_records --event events/dynamodb-streams.json --held orders:A-1002
//! ```
//!
//! ```text
//! {"batchItemFailures":[{"itemIdentifier":"4421584500000000017450439091"}]}
//! ```

use std::time::Duration;

use aws_lambda_events::event::dynamodb::EventRecord;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::{Lease, LeaseLayer};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let locked = LeaseLayer::builder("orders:{dynamodb.Keys.orderId.S}")
        .reserve(Duration::from_millis(500))
        .max_wait(Duration::from_secs(1)) // a busy record is a retry of all behind it: rather wait
        .per_record(ReportBatchItemFailures)
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(work)).await
}

async fn work(record: LambdaEvent<EventRecord>) -> Result<(), Error> {
    let lease = Lease::current()?;
    lease.ensure_held()?; // before a step that can't be taken back
    tracing::info!(change = record.payload.event_name, key = %lease.key(), token = ?lease.token(), "worked on");
    Ok(())
}
