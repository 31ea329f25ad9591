//! What the sandbox itself adds: the way through its proxy, and an invocation of a function that has no layer.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    BenchPrograms, Plan, Row, Section,
    floor::pair,
    ground::{Ground, client},
    report::Unit,
    statistics::{Times, millis},
};
use crate::{Error, Sandbox};

pub(super) async fn measure(plan: &Plan, programs: &BenchPrograms) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let mut row = |id: &str, what: &str, times: &Times| {
        let note = format!("p90 {:.2} ms of {}", millis(times.percentile(0.9)), times.len());
        let what = format!("{what}, p50");
        rows.push(Row::new(Section::Sandbox, id, what, millis(times.median()), Unit::Millis).note(note));
    };

    let undelayed = Ground::start(Duration::ZERO).await?;
    let pairs = plan.times(200, 20);
    row("emulator", "a request to the emulator itself", &requests(undelayed.url(true), pairs).await?);
    row("proxy", "a request through the proxy, nothing added", &requests(undelayed.url(false), pairs).await?);
    let delayed = Ground::start(plan.latency).await?;
    row("delayed", "a request through the proxy, with the delay", &requests(delayed.url(false), pairs).await?);

    let calls = plan.times(100, 10);
    let without = delayed.bare(programs).env("BENCH_LAYER", "none").start().await?;
    row("plain", "an invocation without layer and extension", &invocations(&without, calls).await?);
    let extension = delayed.sandbox(programs).env("BENCH_LAYER", "none").start().await?;
    row("extension", "an invocation with the extension alone", &invocations(&extension, calls).await?);
    let both = delayed.sandbox(programs).start().await?;
    row("layer", "an invocation with layer and extension", &invocations(&both, calls).await?);
    Ok(rows)
}

/// What single requests of a bare client take.
async fn requests(url: &str, pairs: usize) -> Result<Times, Error> {
    let client = client(url).await?;
    let mut times = Vec::with_capacity(2 * pairs);
    for _ in 0..pairs {
        let (take, free) = pair(&client).await?;
        times.extend([take, free]);
    }
    Ok(times.into_iter().collect())
}

/// What a caller waits for an answer of an environment that is there.
async fn invocations(sandbox: &Sandbox, calls: usize) -> Result<Times, Error> {
    let environment = sandbox.environment(0);
    environment.start().await?;
    let mut times = Vec::with_capacity(calls);
    for number in 0..=calls {
        let began = Instant::now();
        let outcome = environment.invoke(json!({ "id": number.to_string() })).await;
        times.push(began.elapsed());
        if let Some(error) = outcome.error() {
            return Err(Error::Init(error.clone()));
        }
        environment.wait_until_idle().await?;
    }
    sandbox.shutdown().await;
    // The first is another matter.
    Ok(times.into_iter().skip(1).collect())
}
