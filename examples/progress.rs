//! A function whose work goes on for long and may hang: it says when it gets on, and is renewed only while it does.
//!
//! Run it in the sandbox. The first file is imported in three seconds, during which the lease of one second is renewed; the
//! second one hangs, and loses its lease with a reason that names `max_silence`:
//!
//! ```sh
//! cargo build -p leasehold-extension && cargo build --example progress
//! cargo run -p leasehold-sandbox -- invoke --function target/debug/examples/progress --timeout 30s \
//!   --event events/s3-upload.json --table locks
//! cargo run -p leasehold-sandbox -- invoke --function target/debug/examples/progress --timeout 30s \
//!   --env IMPORT_HANGS=1 --event events/s3-upload.json --table locks
//! ```

use std::time::Duration;

use aws_lambda_events::event::s3::S3Event;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::{Lease, LeaseLayer};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("imports:{Records[0].s3.object.key}")
        .reserve(Duration::from_secs(5))
        .lease_duration(Duration::from_secs(1))
        .max_silence(Duration::from_secs(2))
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

async fn handler(_: LambdaEvent<S3Event>) -> Result<u32, Error> {
    let lease = Lease::current()?;
    let mut imported = 0;
    for part in 0..30 {
        import(part).await;
        imported += 1;
        lease.progress(); // as often as you like: it costs next to nothing
    }
    Ok(imported)
}

/// Stands for a part of the work.
async fn import(part: u32) {
    if part == 10 && std::env::var_os("IMPORT_HANGS").is_some() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
}
