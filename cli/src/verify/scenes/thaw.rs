//! The scene in which an environment is frozen for longer than connections are trusted.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Shown;
use crate::text::{cut, span};
use crate::verify::invoke::{Answer, Invocation};
use crate::verify::row::{self, Holder, Seen};
use crate::verify::stack::Role;
use crate::verify::stage::{Failed, Stage, broken};

/// How long each of the two works.
const WORK: Duration = Duration::from_millis(200);
/// How long the release behind the response may take until it is seen.
const RELEASED_WITHIN: Duration = Duration::from_secs(10);

pub(in crate::verify) async fn thaw(stage: &Stage<'_>) -> Result<Shown, Failed> {
    let first = stage.invoke('A', Role::Idle, "thaw", WORK).await?;
    let before = answer("A", &first)?;
    let freed = |seen: &[Seen]| row::given_back(seen, Holder::first(seen)?.owner);
    let freed = tokio::time::timeout(RELEASED_WITHIN, stage.watch.until(freed)).await.map_err(|_| {
        broken(format!("A's key was not seen to be held and then free within {}", span(RELEASED_WITHIN)))
    })?;
    let freed = freed.saturating_duration_since(first.answered);
    stage.watch.seldom(true);
    let idle = Instant::now();
    sleep(stage.thaw_after).await;
    let idle = idle.elapsed();
    stage.watch.seldom(false);
    let second = stage.invoke('B', Role::Idle, "thaw", WORK).await?;
    let after = answer("B", &second)?;
    if before.environment != after.environment {
        return Err(Failed::NotShown("Lambda ran B in another environment than A".to_owned()));
    }
    let whole = second.report.as_ref().map(|report| Duration::from_secs_f64(report.duration_ms.max(0.0) / 1_000.0));
    let Some(whole) = whole else {
        return Err(Failed::NotShown("Lambda's report of B did not come with it".to_owned()));
    };
    let around = whole.saturating_sub(WORK);
    Ok(Shown {
        told: format!(
            "A's key was free {} after its response, at most; after {} of frozen idleness B took {} around its work, {} of its \
             requests failed on the way",
            span(freed),
            span(idle),
            span(around),
            after.request_failures
        ),
        freed_ms: crate::lock::millis(freed),
        next_ms: crate::lock::millis(around),
    })
}

fn answer<'a>(who: &str, invocation: &'a Invocation) -> Result<&'a Answer, Failed> {
    invocation.result.as_ref().map_err(|error| {
        let told = crate::verify::stage::advised(error);
        broken(format!("{who} failed: {}", cut(&told, 500)))
    })
}
