//! The function of `verify.yaml`: `leaseholdctl verify` invokes it to see on Lambda itself what the demo shows.
//!
//! One program behind all functions of that stack; they differ in memory, timeout and lease. The event names the key and the
//! scene, which is what the handler does under the lock: see [`scene::Scene`].

mod answer;
mod scene;

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::{Lease, LeaseLayer};
use serde::Deserialize;
use uuid::Uuid;

use crate::answer::Answer;
use crate::scene::Scene;

/// An answer within 50 ms is a matter of luck on a small share of a processor.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);

/// What `leaseholdctl verify` sends.
#[derive(Clone, Debug, Deserialize)]
struct Event {
    scene: Scene,
    /// How long to hold the lock before what the scene is about, or for the scene's whole work.
    #[serde(default)]
    hold_ms: u64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    // Which environment answered is what tells a thaw from a start.
    let environment = Uuid::new_v4();
    let lease = LeaseLayer::builder("verify:{key}").reserve(Duration::from_millis(500)).build()?;
    let handler = |event: LambdaEvent<Event>| play(event, environment);
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

async fn play(event: LambdaEvent<Event>, environment: Uuid) -> Result<Answer, leasehold::Error> {
    let Event { scene, hold_ms } = event.payload;
    let lease = Lease::current()?;
    tracing::info!(request_id = event.context.request_id, key = %lease.key(), scene = %scene, "work began");
    scene.play(Duration::from_millis(hold_ms)).await;
    lease.ensure_held_within(CONFIRMED_WITHIN).await?;
    Ok(Answer::new(&lease, lease.metrics().await?, environment))
}
