//! A function that S3 invokes when an object was put: one upload of a key is worked on at a time.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example s3_upload --event events/s3-upload.json
//! ```
//!
//! ```text
//! {"object":"2026/03/invoice-A-1004.pdf","token":…}
//! ```
//!
//! S3 invokes functions asynchronously: an error makes Lambda try again later, so a busy object is one. The key has two
//! parts, the bucket and the object, each framed by its length, so that no two objects share a lock by accident.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example s3_upload --event events/s3-upload.json \
//!   --held objects:16:example-invoices/26:2026/03/invoice-A-1004.pdf
//! ```
//!
//! ```text
//! {"errorMessage":"…somebody-else…","errorType":"LeaseBusy"}
//! ```

use std::time::Duration;

use aws_lambda_events::event::s3::S3Event;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::{Lease, LeaseLayer};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    // The notifications of S3 have one record each.
    let object = "objects:{Records[0].s3.bucket.name}/{Records[0].s3.object.key}";
    let lease = LeaseLayer::builder(object).reserve(Duration::from_secs(5)).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

async fn handler(event: LambdaEvent<S3Event>) -> Result<Value, Error> {
    let lease = Lease::current()?;
    let object = event.payload.records.first().and_then(|record| record.s3.object.key.clone());
    // Two uploads of one object may be told in any order: read the object itself, now that nobody else works on it.
    lease.ensure_held()?; // before a step that can't be taken back
    Ok(json!({ "object": object, "token": lease.token() }))
}
