//! A scheduled job that is to run once for each firing of its rule, though the rule may fire twice.
//!
//! The second of these two events is a duplicate, which comes when the first one's work is done already, and is skipped:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example scheduled_job --event events/scheduled-report.json \
//!   --event events/scheduled-report.json
//! ```
//!
//! ```text
//! {"reported":"2026-03-14T09:00:00Z"}
//! {…"parked":true…"reason":"someone else is running","skipped":true}
//! ```

use std::time::Duration;

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::LeaseLayer;
use leasehold::layer::AnswerFor;
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let once = LeaseLayer::builder("reports:{resources[0]}") // the rule's ARN
        .reserve(Duration::from_secs(1))
        .hold_at_least(Duration::from_secs(10 * 60)) // less than the rule's period, more than a duplicate may be late
        .max_wait(Duration::ZERO) // who finds it busy is a duplicate, and has nothing to wait for
        .answer_for(AnswerFor::schedule())
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(once).service_fn(report)).await
}

async fn report(event: LambdaEvent<EventBridgeEvent>) -> Result<Value, Error> {
    tokio::time::sleep(Duration::from_millis(50)).await; // all that there is to do
    Ok(json!({ "reported": event.payload.time }))
}
