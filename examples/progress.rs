//! A function whose work goes on for long and may hang: it says when it gets on, and is renewed only while it does.
//!
//! A file is imported in three seconds, during which the lease of one second is renewed:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example progress --event events/s3-upload.json
//! ```
//!
//! ```text
//! 30
//! ```
//!
//! An import that hangs loses its lease after `max_silence`, and is ended:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example progress --event events/s3-upload.json --env IMPORT_HANGS=1
//! ```
//!
//! ```text
//! {"errorMessage":"…max_silence…","errorType":"LeaseLost"}
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
