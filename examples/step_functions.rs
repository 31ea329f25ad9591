//! A Step Functions task: a busy key is an error that the state machine knows how to retry.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example step_functions --event events/step-functions-import.json \
//!   --event events/step-functions-import.json
//! ```
//!
//! ```text
//! {"imported":"incoming/2026-03.csv","token":…}
//! {"imported":"incoming/2026-03.csv","token":…}
//! ```
//!
//! [`events/step-functions-import.asl.json`] is a state machine around it. `Retry` matches the `errorType`: `LeaseBusy`,
//! `DeadlineTooClose` and `GrantTooLate` did nothing yet and may always be tried again; `LeaseLost` may have done a part of
//! its work. When the tries are used up, `Catch` reads the holder out of the cause:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example step_functions --event events/step-functions-import.json \
//!   --held imports:acme
//! ```
//!
//! ```text
//! {"errorMessage":"{…\"holder\":{…\"function\":\"somebody-else\"…},…\"retryAfterMs\":…}","errorType":"LeaseBusy"}
//! ```
//!
//! [`events/step-functions-import.asl.json`]: ../events/step-functions-import.asl.json

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::layer::AnswerFor;
use leasehold::{Lease, LeaseLayer};
use serde::Deserialize;
use serde_json::{Value, json};

/// The task's `Payload`.
#[derive(Deserialize)]
struct Import {
    file: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("imports:{customer}")
        .reserve(Duration::from_secs(10))
        .max_wait(Duration::ZERO) // the state machine waits, and its waiting costs nothing
        .answer_for(AnswerFor::step_functions())
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(import)).await
}

async fn import(event: LambdaEvent<Import>) -> Result<Value, Error> {
    let lease = Lease::current()?;
    lease.ensure_held()?; // before a step that can't be taken back
    Ok(json!({ "imported": event.payload.file, "token": lease.token() }))
}
