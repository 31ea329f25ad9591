//! Functions whose leases have a shape of their own: silent handlers, a template that changes, keys of personal data.

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::{FencingToken, Lease, LeaseLayer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::work::{Done, Job, layer, now_us};

/// Work in steps, of which the handler tells, and then some of which it does not. It never yields.
#[derive(Debug, Deserialize)]
struct Steps {
    #[serde(rename = "id")]
    _id: String,
    #[serde(default)]
    steps: u32,
    #[serde(default)]
    silent_ms: u64,
}

/// A handler that blocks, and tells of its progress, or does not.
pub(crate) async fn blocking() -> Result<(), Error> {
    lambda_runtime::run(ServiceBuilder::new().layer(layer()?).service_fn(in_steps)).await
}

async fn in_steps(event: LambdaEvent<Steps>) -> Result<Done, leasehold::Error> {
    let (request, Steps { steps, silent_ms, .. }) = (event.context.request_id, event.payload);
    let lease = Lease::current()?;
    tracing::info!(request, at_us = now_us(), "work began");
    tokio::task::block_in_place(|| {
        for _ in 0..steps {
            std::thread::sleep(Duration::from_secs(1));
            lease.progress();
        }
        std::thread::sleep(Duration::from_millis(silent_ms));
    });
    lease.ensure_held()?;
    tracing::info!(request, at_us = now_us(), "work ended");
    Ok(Done { key: Some(lease.key().to_string()), token: lease.token().map(FencingToken::get) })
}

/// The next version of the function `locked`, with another template.
pub(crate) async fn changed() -> Result<(), Error> {
    let lease = LeaseLayer::builder("orders:{id}").also("jobs:{id}").reserve(Duration::from_millis(200)).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(work)).await
}

async fn work(event: LambdaEvent<Job>) -> Result<Done, leasehold::Error> {
    event.payload.run(&event.context.request_id).await
}

/// What becomes of an invocation for a customer.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Then {
    #[default]
    Answer,
    Abort,
    Fail,
}

#[derive(Debug, Deserialize)]
struct Customer {
    #[serde(rename = "email")]
    _email: String,
    #[serde(default)]
    sleep_ms: u64,
    #[serde(default)]
    then: Then,
}

/// Locks by personal data, and tells nobody of them itself.
pub(crate) async fn customers() -> Result<(), Error> {
    let lease = LeaseLayer::builder("customers:{email}").build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(of_customer)).await
}

async fn of_customer(event: LambdaEvent<Customer>) -> Result<Done, leasehold::Error> {
    let lease = Lease::current()?;
    tracing::info!(request = event.context.request_id, key = %lease.key(), "work began");
    tokio::time::sleep(Duration::from_millis(event.payload.sleep_ms)).await;
    match event.payload.then {
        Then::Answer => lease.ensure_held()?,
        Then::Abort => std::process::abort(),
        Then::Fail => drop(Lease::named("a layer that is not there")?),
    }
    Ok(Done { key: Some(lease.key().to_string()), token: lease.token().map(FencingToken::get) })
}

/// Works with a lock or without, and says which.
pub(crate) async fn careless() -> Result<(), Error> {
    lambda_runtime::run(ServiceBuilder::new().layer(layer()?).service_fn(async |event: LambdaEvent<Job>| {
        let request = event.context.request_id;
        tracing::info!(request, at_us = now_us(), "work began");
        tokio::time::sleep(Duration::from_millis(event.payload.sleep_ms)).await;
        let why = Lease::current().err().map(|error| error.to_string());
        tracing::info!(request, at_us = now_us(), "work ended");
        let counts = leasehold::metrics::counts();
        Ok::<Value, Error>(json!({
            "why": why,
            "unlocked": counts.unlocked_unavailable,
            "wouldHaveRefused": counts.would_have_refused,
            "granted": counts.granted,
        }))
    }))
    .await
}
