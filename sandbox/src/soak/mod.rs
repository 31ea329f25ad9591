//! The soak: many environments that contend for a few keys while everything goes wrong, and a witness beside them.
//!
//! Real functions and extensions reach an embedded DynamoDB through the fault proxy. What is drawn from the seed: the
//! jobs, the faults of requests, periods of bad weather, and what happens to processes. The witness does not take the
//! product's word for the outcome: each function writes down, around every piece of work, until when it was told to hold
//! its key, by a clock that all processes share; no two of these claims may overlap.
//!
//! | file | what it is for |
//! |---|---|
//! | `plan` | the settings |
//! | `course` | one soak from its beginning to the quiet at its end |
//! | `worker`, `mishap` | the jobs, and what happens to the processes that do them |
//! | `weather`, `fronts` | what happens to requests |
//! | `history`, `check` | the witness: claims, and whether they overlap |
//! | `judge`, `rows` | how invocations may end, and what may be left on the table |
//! | `ledger` | what the keepers said |
//! | `metrics` | what their metrics add up to |
//! | `figures` | the table in the end |

mod check;
mod course;
mod figures;
mod fronts;
mod history;
mod judge;
mod ledger;
mod metrics;
mod mishap;
mod plan;
mod rows;
mod weather;
mod worker;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

pub use self::{
    check::Break,
    figures::Figures,
    metrics::MetricSums,
    plan::{Broken, Plan},
};
use self::{
    course::Soak,
    history::{History, Tail},
};
use crate::{
    Error,
    demo::{Failed, cargo_build},
};

/// What the functions write down.
const WITNESS: &str = "witness.jsonl";
/// The keepers' lines of metrics.
const METRICS: &str = "metrics.jsonl";
/// What every key begins with; the function's template puts it there.
const KEY_PREFIX: &str = "soak:";
/// How long an initialization may take: as long as a busy machine needs.
const INIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The programs that a soak runs.
#[derive(Debug, Clone)]
pub struct SoakPrograms {
    /// The extension.
    pub extension: PathBuf,
    /// The soak's function.
    pub function: PathBuf,
}

/// How far a soak is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// How long it runs.
    pub elapsed: Duration,
    /// How many invocations have ended.
    pub invocations: u64,
    /// How many faults were injected.
    pub faults: u64,
    /// How many locks were lost.
    pub lost: u64,
    /// Whether it waits for the quiet at the end.
    pub settling: bool,
}

/// Builds the programs; Cargo's progress goes to standard error.
///
/// # Errors
///
/// When the source tree is gone, or Cargo can't be run or fails.
///
/// # Cancellation
///
/// Dropping the future ends Cargo.
pub async fn build() -> Result<SoakPrograms, Failed> {
    let mut built = cargo_build(&["leasehold-extension", "leasehold-soak-function"]).await?;
    let mut program =
        |name: &str| built.remove(name).ok_or_else(|| Failed::because(format!("Cargo built no program `{name}`")));
    Ok(SoakPrograms { extension: program("leasehold")?, function: program("leasehold-soak-function")? })
}

/// Runs a soak to its end; `progress` is called about once a second.
///
/// # Errors
///
/// When the sandbox or the logs can't be used; a broken promise is no error but one of the figures.
///
/// # Cancellation
///
/// Dropping the future ends every process.
pub async fn run(
    plan: &Plan,
    programs: &SoakPrograms,
    progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Figures, Error> {
    let mut soak = Soak::begin(plan, programs).await?;
    let took = soak.storm(progress).await?;
    let mut breaks = std::mem::take(&mut soak.field.results().breaks);
    // With a promise broken, what is left on the table proves nothing more.
    if breaks.is_empty() && plan.broken.is_none() {
        breaks.extend(soak.quiet(progress).await?);
    }
    soak.field.sandbox.shutdown().await;
    soak.read().await?;
    breaks.extend(soak.broken());
    // Without a lock there is nothing to count, and who overstays is told of no end.
    if plan.broken.is_none() {
        breaks.extend(soak.miscounted());
    }
    Ok(soak.figures(took, breaks))
}

/// The claims on a key of a soak that was run, for people; from the folder of its logs.
///
/// # Errors
///
/// When the witness's file can't be read.
pub fn story(logs: &Path, key: &str) -> Result<Vec<String>, Error> {
    let mut history = History::default();
    let read = Tail::open(&logs.join(WITNESS)).and_then(|mut tail| tail.read_into(&mut history));
    read.map_err(Error::io("read what the witness was told"))?;
    Ok(check::story(history.claims(), key))
}

fn key_of(number: usize) -> String {
    format!("{KEY_PREFIX}k{number}")
}
