//! One binary for all end-to-end tests: `TEST_FUNCTION` says which function it is.

mod batches;
mod borrowing;
mod concurrent;
mod events;
mod gates;
mod holds;
mod plain;
mod staged;
mod stops;
mod streaming;
mod work;

use lambda_runtime::Error;

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    match std::env::var("TEST_FUNCTION")?.as_str() {
        "locked" => plain::locked().await,
        "without-layer" => plain::without_layer().await,
        "streaming" => streaming::run().await,
        "staged" => staged::run().await,
        "staged-concurrent" => staged::run_concurrent().await,
        "concurrent" => concurrent::run().await,
        "borrowing" => borrowing::run().await,
        "batches" => batches::run().await,
        "blocking" => holds::blocking().await,
        "changed" => holds::changed().await,
        "customers" => holds::customers().await,
        "careless" => holds::careless().await,
        "sqs" => events::sqs().await,
        "eventbridge" => events::eventbridge().await,
        "schedule" => events::schedule().await,
        "scheduled" => events::scheduled().await,
        other => Err(format!("TEST_FUNCTION={other} is no function of these tests").into()),
    }
}
