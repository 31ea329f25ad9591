//! Why an environment failed: what its processes wrote, as a whole for those who asked for no timeline, and their last words
//! for the others, who would have to look for them.

use std::io::{self, Write};

use leasehold_sandbox::{EnvironmentId, Event, EventKind, Line, Log, Outcome, Process, Stream};

/// More than this many lines of an environment's processes are not shown.
const MOST_LINES: usize = 20;
/// Nor more of them twice.
const MOST_LAST_WORDS: usize = 8;

/// What the caller of a handler that failed by itself is told says enough. An environment that could not start, or that
/// ended under its handler, is only explained by what its processes wrote.
pub(super) fn explain(log: &Log, outcomes: &[Outcome], colour: bool) -> io::Result<()> {
    let events = log.events();
    for environment in failed(outcomes, &["Runtime.", "Extension.", "Sandbox."]) {
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

/// The last lines of a function that ended instead of answering: a setting that its `build()` refused, most often.
pub(super) fn last_words(log: &Log, outcomes: &[Outcome]) -> io::Result<()> {
    let events = log.events();
    for environment in failed(outcomes, &["Runtime."]) {
        let said: Vec<_> = events
            .iter()
            .filter(|event| event.environment == Some(environment))
            .filter_map(|event| match &event.kind {
                EventKind::Output { process: Process::Runtime, stream: Stream::Stderr, line } => {
                    Some((event.init, line))
                }
                _ => None,
            })
            .collect();
        // It was started more than once, and said the same each time.
        let said: Vec<_> = said.iter().filter(|(init, _)| said.last().is_some_and(|(last, _)| init == last)).collect();
        if said.is_empty() {
            continue;
        }
        writeln!(io::stderr(), "The function's last words:")?;
        for (_, line) in &said[said.len().saturating_sub(MOST_LAST_WORDS)..] {
            writeln!(io::stderr(), "  {line}")?;
        }
    }
    Ok(())
}

/// The environments in which an invocation failed by an error that begins like one of these.
fn failed(outcomes: &[Outcome], beginnings: &[&str]) -> Vec<EnvironmentId> {
    let is_one = |error_type: &str| beginnings.iter().any(|beginning| error_type.starts_with(beginning));
    let failed = outcomes.iter().filter(|outcome| outcome.error_type().is_some_and(is_one));
    let mut environments: Vec<_> = failed.filter_map(|outcome| outcome.environment).collect();
    environments.sort_unstable();
    environments.dedup();
    environments
}
