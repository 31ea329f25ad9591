//! Scenes in which the holder does not finish: it aborts, is killed for memory, or times out.

use std::time::Duration;

use super::Shown;
use crate::text::{cut, span};
use crate::verify::invoke::FunctionError;
use crate::verify::stack::Role;
use crate::verify::stage::{Failed, NEXT_HOLDS, Stage, broken};

/// How long the holder works before its end, for the next one to come and wait.
const BEFORE_THE_END: Duration = Duration::from_secs(3);

pub(in crate::verify) async fn abort(stage: &Stage<'_>) -> Result<Shown, Failed> {
    freed_by_the_end(stage, Role::Worker, "abort", "Runtime.ExitError", |error| error.error_type == "Runtime.ExitError")
        .await
}

/// Lambda has called it both, the second where the kernel's kill is all that is known.
pub(in crate::verify) async fn out_of_memory(stage: &Stage<'_>) -> Result<Shown, Failed> {
    let expected = |error: &FunctionError| ["Runtime.OutOfMemory", "Runtime.ExitError"].contains(&&*error.error_type);
    freed_by_the_end(stage, Role::Small, "out-of-memory", "Runtime.OutOfMemory", expected).await
}

pub(in crate::verify) async fn timeout(stage: &Stage<'_>) -> Result<Shown, Failed> {
    freed_by_the_end(stage, Role::Short, "timeout", "a timeout", FunctionError::is_timeout).await
}

pub(in crate::verify) async fn sigterm_ignored(stage: &Stage<'_>) -> Result<Shown, Failed> {
    freed_by_the_end(stage, Role::Short, "sigterm-ignored", "a timeout", FunctionError::is_timeout).await
}

async fn freed_by_the_end(
    stage: &Stage<'_>,
    role: Role,
    scene: &str,
    expected: &str,
    is_expected: impl Fn(&FunctionError) -> bool,
) -> Result<Shown, Failed> {
    let (first, second) = stage.contended((role, scene, BEFORE_THE_END * stage.slower), NEXT_HOLDS).await?;
    match &first.result {
        Ok(_) => return Err(broken(format!("A came to its end; {expected} was expected"))),
        Err(error) if !is_expected(error) => {
            return Err(broken(format!("A failed otherwise than by {expected}: {}", cut(&error.told(), 400))));
        }
        Err(_) => {}
    }
    let over = stage.handed_over(&first, &second)?;
    Ok(Shown {
        told: format!(
            "freed {} and granted to B {} after A's end was told here, both at most; at least {} of the lease of {} were left",
            span(over.freed),
            span(over.granted),
            span(over.left),
            span(over.holder.lease)
        ),
        freed_ms: crate::lock::millis(over.freed),
        next_ms: crate::lock::millis(over.granted),
    })
}
