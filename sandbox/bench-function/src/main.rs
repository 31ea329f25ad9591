//! The bench's function: around the layer and in the handler it reads the clock, and answers with what it read.
//!
//! All times are readings of `CLOCK_MONOTONIC`, which every process of the machine shares. With `BENCH_LAYER=none` there is
//! no layer, to see what the invocation costs without one.

use std::time::Duration;

use lambda_runtime::{
    Error, LambdaEvent,
    tower::{ServiceBuilder, ServiceExt as _, service_fn},
};
use leasehold::{Lease, LeaseLayer};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// What the bench asks for.
#[derive(Debug, Deserialize)]
struct Job {
    /// How long the work takes.
    #[serde(default)]
    work_ms: u64,
    /// How many times the handler asks whether it holds its lease.
    #[serde(default)]
    checks: u32,
    /// Whether it writes a line when it begins.
    #[serde(default)]
    tell: bool,
    /// What it does in the end.
    #[serde(default)]
    then: Then,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Then {
    /// Answers.
    #[default]
    Answer,
    /// Aborts the process.
    Abort,
    /// Never ends.
    Hang,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    if std::env::var("BENCH_LAYER").is_ok_and(|value| value == "none") {
        return lambda_runtime::run(service_fn(unlocked)).await;
    }
    let lease = LeaseLayer::builder("bench:{id}").reserve(Duration::from_millis(500)).build()?;
    let locked = ServiceBuilder::new().layer(lease).service_fn(locked);
    let timed = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let locked = locked.clone();
        async move {
            let called = now();
            let answered = locked.oneshot(event).await;
            let returned = now();
            // An error passes as it is, and so keeps its type.
            answered.map(|mut answer: Value| {
                answer["called_ns"] = called.into();
                answer["returned_ns"] = returned.into();
                answer
            })
        }
    });
    lambda_runtime::run(timed).await
}

async fn locked(event: LambdaEvent<Job>) -> Result<Value, leasehold::Error> {
    let began = now();
    let Job { work_ms, checks, tell, then } = event.payload;
    if tell {
        tracing::info!(request = event.context.request_id, at_ns = began, "work began");
    }
    let mut took = Vec::new();
    if checks > 0 {
        let lease = Lease::current()?;
        for _ in 0..checks {
            let asked = now();
            lease.ensure_held()?;
            took.push(now() - asked);
        }
    }
    tokio::time::sleep(Duration::from_millis(work_ms)).await;
    match then {
        Then::Answer => {}
        Then::Abort => std::process::abort(),
        Then::Hang => std::future::pending().await,
    }
    Ok(json!({ "began_ns": began, "checks_ns": took, "ended_ns": now() }))
}

async fn unlocked(event: LambdaEvent<Value>) -> Result<Value, Error> {
    Ok(event.payload)
}

/// Nanoseconds of the machine's monotonic clock.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
