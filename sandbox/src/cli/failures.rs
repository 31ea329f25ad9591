//! Why an environment failed, for those who asked for no timeline: what its processes wrote.

use std::io::{self, Write};

use leasehold_sandbox::{Event, EventKind, Line, Log, Outcome};

/// More than this many lines of an environment's processes are not shown.
const MOST_LINES: usize = 20;

/// What the caller of a handler that failed by itself is told says enough. An environment that could not start, or that
/// ended under its handler, is only explained by what its processes wrote.
pub(super) fn explain(log: &Log, outcomes: &[Outcome], colour: bool) -> io::Result<()> {
    let by_itself = |outcome: &&Outcome| {
        let lambdas_own =
            |error_type: &str| ["Runtime.", "Extension.", "Sandbox."].iter().any(|o| error_type.starts_with(o));
        outcome.error_type().is_some_and(lambdas_own)
    };
    let mut environments: Vec<_> =
        outcomes.iter().filter(by_itself).filter_map(|outcome| outcome.environment).collect();
    environments.sort_unstable();
    environments.dedup();
    let events = log.events();
    for environment in environments {
        let is_telling = |event: &&Event| {
            event.environment == Some(environment)
                && matches!(
                    event.kind,
                    EventKind::Output { .. } | EventKind::InitFailed { .. } | EventKind::Exited { .. }
                )
        };
        let telling: Vec<_> = events.iter().filter(is_telling).collect();
        for event in &telling[telling.len().saturating_sub(MOST_LINES)..] {
            writeln!(io::stderr(), "{}", Line { event, colour })?;
        }
    }
    Ok(())
}
