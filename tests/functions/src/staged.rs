//! A function that a test can hold at every step of its invocation and whose end it chooses.

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::Lease;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::gates::Gate;
use crate::stops::both;
use crate::work::{Done, layer, now_us};

/// A test's event. Where to stop is read by [`stops`](crate::stops).
#[derive(Clone, Debug, Deserialize)]
struct Staged {
    /// What is locked.
    id: String,
    /// What the test calls this invocation; its gates are named after it.
    name: String,
    /// What the handler does when its gate `work` is open.
    #[serde(default)]
    then: Then,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Then {
    /// Looks whether it still holds the lease, and answers.
    #[default]
    Answer,
    /// Answers, and leaves a task behind that guards the lease until the gate `guard` is open.
    KeepGuard,
    /// Fails, with `NoLease`.
    Fail,
    /// Panics.
    Panic,
    /// Blocks without yielding until the gate `blocked` is open, then answers.
    Block,
}

/// One invocation at a time.
pub(crate) async fn run() -> Result<(), Error> {
    heed_sigterm()?;
    let (outside, inside) = both();
    let service = ServiceBuilder::new().layer(outside).layer(layer()?).layer(inside).service_fn(work);
    lambda_runtime::run(service).await
}

/// Many at once, without stops.
pub(crate) async fn run_concurrent() -> Result<(), Error> {
    lambda_runtime::run_concurrent(ServiceBuilder::new().layer(layer()?).service_fn(work)).await
}

/// With `TEST_SIGTERM=ignore` a SIGTERM does not end this process.
fn heed_sigterm() -> Result<(), Error> {
    if std::env::var("TEST_SIGTERM").is_ok_and(|what| what == "ignore") {
        let mut terms = signal(SignalKind::terminate())?;
        tokio::spawn(async move {
            while terms.recv().await.is_some() {
                tracing::info!(at_us = now_us(), "SIGTERM ignored");
            }
        });
    }
    Ok(())
}

async fn work(event: LambdaEvent<Staged>) -> Result<Done, leasehold::Error> {
    let (request, Staged { id, name, then }) = (event.context.request_id, event.payload);
    let lease = Lease::current()?;
    let (key, token) = (lease.key().to_string(), lease.token().map(leasehold::FencingToken::get));
    tracing::info!(id, token, request, at_us = now_us(), "work began");
    Gate::new(&name, "work").passed().await;
    match then {
        Then::Answer => {}
        Then::KeepGuard => {
            let guard = lease.guard()?;
            let request = request.clone();
            tokio::spawn(async move {
                Gate::new(&name, "guard").passed().await;
                tracing::info!(request, at_us = now_us(), "guard dropped");
                drop(guard);
            });
        }
        Then::Fail => drop(Lease::named("a layer that is not there")?),
        #[allow(clippy::panic, reason = "a handler that panics is what is tested")]
        Then::Panic => panic!("the test asked for it"),
        Then::Block => Gate::new(&name, "blocked").passed_without_yielding(),
    }
    // An answer of the keeper within 50 ms is a matter of luck on a machine that compiles.
    lease.ensure_held_within(Duration::from_secs(2)).await?;
    tracing::info!(id, token, request, at_us = now_us(), "work ended");
    Ok(Done { key: Some(key), token })
}
