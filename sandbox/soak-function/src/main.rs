//! The soak's function: works on a key in slices and, around each, writes down until when it believed to hold the key.
//!
//! `SOAK_WITNESS` names the file that all functions of a soak append to. With `SOAK_OVERSTAY=1` it is broken on purpose:
//! it goes on working, and believing, after its lease was lost.

mod claim;
mod job;

use std::{path::PathBuf, time::Duration};

use lambda_runtime::{Diagnostic, Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::{Lease, LeaseLayer, OnLoss};
use serde_json::{Value, json};

use crate::{claim::Witness, job::Job};

/// What an invocation fails with.
#[derive(Debug)]
enum Failure {
    /// There is no lease, or no more.
    Lease(leasehold::Error),
    /// The witness could not be told.
    Witness(std::io::Error),
    /// The event asked for an error.
    Asked,
}

impl From<leasehold::Error> for Failure {
    fn from(error: leasehold::Error) -> Self {
        Self::Lease(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Witness(error)
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        let (error_type, error_message) = match failure {
            Failure::Lease(error) => return error.into(),
            Failure::Witness(error) => ("WitnessGone", error.to_string()),
            Failure::Asked => ("AskedToFail", "the event asked for an error".to_owned()),
        };
        Self { error_type: error_type.to_owned(), error_message }
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let overstay = std::env::var("SOAK_OVERSTAY").is_ok_and(|value| value == "1");
    let witness = Witness::open(&PathBuf::from(std::env::var("SOAK_WITNESS")?), overstay)?;
    let mut lease = LeaseLayer::builder("soak:{id}").reserve(Duration::from_secs(1));
    if overstay {
        lease = lease.on_loss(OnLoss::Signal);
    }
    let (lease, witness) = (lease.build()?, &witness);
    let handler = async |event: LambdaEvent<Job>| -> Result<Value, Failure> {
        let lease = Lease::current()?;
        let mut claim = witness.claim(&lease, &event.context.request_id);
        claim.look()?;
        for _ in 0..event.payload.slices {
            event.payload.work().await;
            claim.look()?;
        }
        event.payload.end().await?;
        Ok(json!({ "owner": lease.owner(), "token": lease.token() }))
    };
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}
