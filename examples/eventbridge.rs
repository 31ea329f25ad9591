//! A function for an EventBridge rule: each event is locked by the order in its detail.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example eventbridge --event events/eventbridge-order.json
//! ```
//!
//! ```text
//! {"order":"A-1001","token":…}
//! ```
//!
//! EventBridge invokes functions asynchronously, and Lambda tries an event again that failed: twice, a minute and two
//! minutes later, unless `MaximumRetryAttempts` says otherwise; then it goes to the function's dead-letter queue or
//! on-failure destination. So a busy key is an error, which is what a layer answers by itself:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example eventbridge --event events/eventbridge-order.json \
//!   --held orders:A-1001
//! ```
//!
//! ```text
//! {"errorMessage":"…somebody-else…","errorType":"LeaseBusy"}
//! ```

use std::time::Duration;

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::{Lease, LeaseLayer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The event's `detail`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("orders:{detail.orderId}").reserve(Duration::from_secs(5)).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

async fn handler(event: LambdaEvent<EventBridgeEvent<Order>>) -> Result<Value, Error> {
    let lease = Lease::current()?;
    lease.ensure_held()?; // before a step that can't be taken back
    Ok(json!({ "order": event.payload.detail.order_id, "token": lease.token() }))
}
