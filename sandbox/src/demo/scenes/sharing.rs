//! Scenes in which everybody finishes: one key in turn, two keys at once, and a handler that never yields.

use std::time::Duration;

use serde_json::json;

use crate::{
    Outcome,
    demo::{
        Failed, Shown,
        stage::{LEASE_LATER, SOON, Stage},
    },
};

/// Two invocations on one key.
pub(super) async fn one_key(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(2).await?;
    let first = stage.begin(0, stage.event_with(json!({ "sleep_ms": 400 })));
    let second = stage.begin(1, stage.event_with(json!({ "sleep_ms": 400 })));
    let (first, second) = tokio::join!(first.outcome(), second.outcome());
    let (earlier, later) = in_turn(stage, &first, &second).await?;
    Ok(format!("tokens {} and then {}", token(earlier)?, token(later)?))
}

/// Two invocations on two keys.
pub(super) async fn two_keys(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(2).await?;
    let mut other = stage.event();
    other["Records"][0]["s3"]["object"]["key"] = json!("2026/03/invoice-A-1005.pdf");
    let first = stage.begin(0, stage.event());
    let second = stage.begin(1, other);
    let (first, second) = tokio::join!(first.outcome(), second.outcome());
    success(&first)?;
    success(&second)?;
    let (a, b) = (stage.work(&first.request_id).await?, stage.work(&second.request_id).await?);
    let Some(both_us) = a.1.min(b.1).checked_sub(a.0.max(b.0)) else {
        return Err(Failed::because("one of them only began when the other was done"));
    };
    Ok(format!("both at work for {:.1} s at once", Duration::from_micros(both_us).as_secs_f64()))
}

/// A handler that blocks its thread for three leases while another one waits.
pub(super) async fn spin(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(2).await?;
    let first = stage.begin(0, stage.event_with(json!({ "spin_ms": 3200 })));
    stage.at_work(&first, SOON).await?;
    let second = stage.begin(1, stage.event_with(json!({ "sleep_ms": 100 })));
    let (first, second) = tokio::join!(first.outcome(), second.outcome());
    let (_, later) = in_turn(stage, &first, &second).await?;
    let (_, said) = stage.acquired(&later.request_id, LEASE_LATER).await?;
    if said.took_over() {
        return Err(Failed::because("the second one took the lock over while the first one worked"));
    }
    Ok("still held after 3.2 s of spinning on leases of 1 s".to_owned())
}

/// Both succeeded and their work did not overlap: the earlier one and the later one.
async fn in_turn<'a>(
    stage: &Stage,
    first: &'a Outcome,
    second: &'a Outcome,
) -> Result<(&'a Outcome, &'a Outcome), Failed> {
    success(first)?;
    success(second)?;
    let (a, b) = (stage.work(&first.request_id).await?, stage.work(&second.request_id).await?);
    let (earlier, later) = if a.0 < b.0 { ((first, a), (second, b)) } else { ((second, b), (first, a)) };
    if later.1.0 < earlier.1.1 {
        return Err(Failed::because("both worked at the same time"));
    }
    if token(later.0)? <= token(earlier.0)? {
        return Err(Failed::because("the later one's fencing token is not higher"));
    }
    Ok((earlier.0, later.0))
}

fn token(outcome: &Outcome) -> Result<u64, Failed> {
    let token = outcome.json().and_then(|answer| answer["token"].as_u64());
    token.ok_or_else(|| Failed::because("an answer names no token"))
}

fn success(outcome: &Outcome) -> Result<(), Failed> {
    match outcome.error() {
        None => Ok(()),
        Some(error) => Err(Failed::because(format!("an invocation failed: {error}"))),
    }
}
