//! A function whose key template changes: while the old version still runs, the new one takes the old key as well.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example template_change --event events/eventbridge-order.json
//! ```
//!
//! ```text
//! {"key":"orders:12:123456789012:6:A-1001","order":"A-1001"}
//! ```
//!
//! While an invocation of the old version is at work on the order, which holds the old key only, the new one stays out:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example template_change --event events/eventbridge-order.json --held orders:A-1001
//! ```
//!
//! ```text
//! {"errorMessage":"…somebody-else…","errorType":"LeaseBusy"}
//! ```
//!
//! Once no invocation of the old version runs any more, deploy it without `also`.

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::{Lease, LeaseLayer};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("orders:{account}:{detail.orderId}")
        .also("orders:{detail.orderId}") // the template of the version that is being replaced
        .reserve(Duration::from_secs(1))
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

async fn handler(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let lease = Lease::current()?;
    // … work on the order: neither the old version nor the new one does at the same time …
    lease.ensure_held()?; // both keys are
    Ok(json!({ "order": event.payload["detail"]["orderId"], "key": lease.key() }))
}
