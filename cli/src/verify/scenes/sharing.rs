//! Scenes in which both finish: one after the other, and after a handler that never yields.

use std::time::Duration;

use super::Shown;
use crate::text::{cut, span};
use crate::verify::invoke::{Answer, Invocation};
use crate::verify::stack::Role;
use crate::verify::stage::{Failed, Handover, NEXT_HOLDS, Stage, broken};

/// How long the first of two works.
const WORK: Duration = Duration::from_millis(1_500);
/// More than three leases of the function's 2 s.
const SPIN: Duration = Duration::from_millis(6_500);

pub(in crate::verify) async fn contend(stage: &Stage<'_>) -> Result<Shown, Failed> {
    let (first, second) = stage.contended((Role::Worker, "contend", WORK * stage.slower), NEXT_HOLDS).await?;
    let (over, a, b) = in_turn(stage, &first, &second)?;
    Ok(Shown {
        told: format!("B had the key after {} ms, with the token {} after A's {}", b.waited_ms, token(b), token(a)),
        freed_ms: crate::lock::millis(over.freed),
        next_ms: crate::lock::millis(over.granted),
    })
}

pub(in crate::verify) async fn spin(stage: &Stage<'_>) -> Result<Shown, Failed> {
    let (first, second) = stage.contended((Role::Spinner, "spin", SPIN), NEXT_HOLDS).await?;
    let (over, a, _) = in_turn(stage, &first, &second)?;
    if over.holder.lease * 3 > SPIN {
        let lease = span(over.holder.lease);
        return Err(broken(format!("A's lease is {lease}, too long to spin for three of them in {}", span(SPIN))));
    }
    let renewals = a.renewals.max(over.holder.renewals);
    if renewals < 3 {
        return Err(broken(format!("A's lease of {} was renewed only {renewals} times", span(over.holder.lease))));
    }
    Ok(Shown {
        told: format!(
            "still held after {} of spinning on a lease of {}, renewed {renewals} times",
            span(SPIN),
            span(over.holder.lease)
        ),
        freed_ms: crate::lock::millis(over.freed),
        next_ms: crate::lock::millis(over.granted),
    })
}

/// Both succeeded, B once A had given the key back, with a higher token.
fn in_turn<'a>(
    stage: &Stage<'_>,
    first: &'a Invocation,
    second: &'a Invocation,
) -> Result<(Handover, &'a Answer, &'a Answer), Failed> {
    let a = match &first.result {
        Ok(answer) => answer,
        Err(error) => return Err(broken(format!("A failed: {}", cut(&error.told(), 400)))),
    };
    let over = stage.handed_over(first, second)?;
    let Ok(b) = &second.result else { return Err(broken("B failed")) };
    if b.token <= a.token {
        return Err(broken(format!("B's token {} is not higher than A's {}", token(b), token(a))));
    }
    Ok((over, a, b))
}

fn token(answer: &Answer) -> String {
    answer.token.map_or_else(|| "none".to_owned(), |token| token.to_string())
}
