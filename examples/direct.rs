//! A function that a program invokes directly: one import of a month's file at a time.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example direct --event events/direct-import.json
//! ```
//!
//! answers
//!
//! ```text
//! {"month":"2026-03","token":…}
//! ```
//!
//! While somebody else imports the same month,
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example direct --event events/direct-import.json --held imports:2026-03
//! ```
//!
//! the caller gets an `errorType` to tell by, and a message that is JSON: who holds the key, and when to come again.
//!
//! ```text
//! {"errorMessage":"{\"attempts\":…,\"holder\":{…\"function\":\"somebody-else\"…},\"key\":\"imports:2026-03\",…\"retryAfterMs\":…,\"waitedMs\":…}","errorType":"LeaseBusy"}
//! ```

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::layer::AnswerFor;
use leasehold::{Lease, LeaseLayer};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the caller asks for.
#[derive(Deserialize)]
struct Import {
    month: String,
    file: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("imports:{month}")
        .reserve(Duration::from_secs(10))
        .max_wait(Duration::from_secs(1)) // the caller waits along
        .answer_for(AnswerFor::direct())
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(import)).await
}

async fn import(event: LambdaEvent<Import>) -> Result<Value, Error> {
    let Import { month, file } = event.payload;
    let lease = Lease::current()?;
    tracing::info!(month, file, "importing");
    lease.ensure_held()?; // before a step that can't be taken back
    Ok(json!({ "month": month, "token": lease.token() }))
}
