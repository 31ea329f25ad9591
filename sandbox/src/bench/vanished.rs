//! From the end of a whole environment, as when its host is lost, to the grant in a fresh one.

use std::time::Duration;

use serde_json::json;

use super::{
    BenchPrograms, Plan, Row, Section,
    answer::{Answer, work_began},
    ground::{Ground, now_ns},
    report::Unit,
};
use crate::{Error, Invocation};

/// How much longer than its lease an abandoned lock may keep its key.
const BEYOND: Duration = Duration::from_secs(6);
/// How long each of the others waits before it gives up and a fresh one takes its place.
const WAIT: Duration = Duration::from_secs(2);

pub(super) async fn measure(plan: &Plan, programs: &BenchPrograms) -> Result<Vec<Row>, Error> {
    let lease = Duration::from_secs(if plan.quick { 3 } else { 30 });
    let limit = lease + BEYOND + Duration::from_secs(20);
    let ground = Ground::start(plan.latency).await?;
    let sandbox = ground
        .sandbox(programs)
        .environments(1_000)
        .timeout(Duration::from_secs(90))
        .env("LEASEHOLD_LEASE_DURATION", format!("{}s", lease.as_secs()))
        .env("LEASEHOLD_MAX_WAIT", format!("{}s", WAIT.as_secs()))
        .start()
        .await?;
    let holder = sandbox.environment(0);
    let held = holder.start_invocation(json!({ "id": "abandoned", "then": "hang", "tell": true }));
    work_began(&sandbox, held.request_id()).await?;
    holder.vanish().await?;
    let vanished = now_ns();
    let mut tries = 0;
    let answer = loop {
        tries += 1;
        let fresh = sandbox.environment(tries);
        let outcome = fresh.invoke(Invocation::from(json!({ "id": "abandoned" }))).await;
        if outcome.error_type() == Some("LeaseBusy") && Duration::from_nanos(now_ns() - vanished) < limit {
            fresh.vanish().await?;
            continue;
        }
        break Answer::of(&outcome)?;
    };
    let took = Duration::from_nanos(answer.began_ns.saturating_sub(vanished));
    sandbox.shutdown().await;
    let what = format!("to a fresh environment's grant, with a lease of {} s", lease.as_secs());
    let note = format!("{tries} fresh environments, one after the other, that wait {} s each", WAIT.as_secs());
    let row = Row::new(Section::Vanished, "grant", what, took.as_secs_f64(), Unit::Seconds);
    Ok(vec![row.at_most((lease + BEYOND).as_secs_f64()).note(note)])
}
