//! A function whose key template changes: while the old version still runs, the new one takes the old key as well.
//!
//! Run it in the sandbox, and look for two `acquired` and the order of the two `released`:
//!
//! ```sh
//! cargo build -p leasehold-extension && cargo build --example template_change
//! cargo run -p leasehold-sandbox -- invoke --function target/debug/examples/template_change \
//!   --event events/eventbridge-order.json --table locks --rows
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
