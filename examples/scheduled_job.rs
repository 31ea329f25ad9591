//! A scheduled job that is to run once for each firing of its rule, though the rule may fire twice.
//!
//! Run it in the sandbox; the second of the two events is a duplicate, and is skipped:
//!
//! ```sh
//! cargo build -p leasehold-extension && cargo build --example scheduled_job
//! cargo run -p leasehold-sandbox -- invoke --function target/debug/examples/scheduled_job \
//!   --event events/scheduled-report.json --event events/scheduled-report.json --table locks
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
