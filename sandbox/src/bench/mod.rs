//! The bench: what leasehold costs, beside a floor that is measured in the same run.
//!
//! The floor is one bare conditional `UpdateItem` to take a row and one to free it, by the real SDK, through the same proxy
//! that adds the same latency to every request. What counts are ratios and counts, for they are much the same on any
//! machine; `docs/bench.md` tells the method, and has the whole table.
//!
//! | file | what it is for |
//! |---|---|
//! | `plan`, `report`, `table`, `machine` | what is measured, what came of it, and on what |
//! | `ground`, `floor`, `statistics` | DynamoDB, its proxy and what passed; the floor; percentiles |
//! | `answer`, `line_client`, `memory` | a function's answer; a session by hand; a store without DynamoDB |
//! | `invocation`, `own`, `endings`, `vanished`, `renewals`, `leases`, `contention`, `overhead` | a section each |

mod answer;
mod contention;
mod endings;
mod floor;
mod ground;
mod invocation;
mod leases;
mod line_client;
mod machine;
mod memory;
mod overhead;
mod own;
mod plan;
mod renewals;
mod report;
mod statistics;
mod table;
mod vanished;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use self::machine::Machine;
pub use self::{
    plan::{Plan, Polling, Section},
    report::{FORMAT, Report, Row, Unit},
};
use crate::{
    Error,
    demo::{Failed, cargo_build},
};

/// How long what should come soon may take on a busy machine.
const INIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The programs that a bench runs.
#[derive(Debug, Clone)]
pub struct BenchPrograms {
    /// The extension.
    pub extension: PathBuf,
    /// The bench's function.
    pub function: PathBuf,
}

/// Builds the programs, as this program itself was built; Cargo's progress goes to standard error.
///
/// # Errors
///
/// When the source tree is gone, or Cargo can't be run or fails.
///
/// # Cancellation
///
/// Dropping the future ends Cargo.
pub async fn build() -> Result<BenchPrograms, Failed> {
    let mut built = cargo_build(&["leasehold-extension", "leasehold-bench-function"]).await?;
    let mut program =
        |name: &str| built.remove(name).ok_or_else(|| Failed::because(format!("Cargo built no program `{name}`")));
    Ok(BenchPrograms { extension: program("leasehold")?, function: program("leasehold-bench-function")? })
}

/// Measures what is planned; `tell` is called with what comes next.
///
/// # Errors
///
/// When something can't be measured at all. A goal that is missed is no error but a row of the report.
///
/// # Cancellation
///
/// Dropping the future ends every process.
pub async fn run(plan: &Plan, programs: &BenchPrograms, tell: &mut (dyn FnMut(&str) + Send)) -> Result<Report, Error> {
    let began = Instant::now();
    let mut machine = Machine::of_this_host();
    let (mut rows, mut floors) = (Vec::new(), Vec::new());
    for section in Section::ALL.into_iter().filter(|section| plan.sections.contains(section)) {
        tell(section.title());
        let measured = match section {
            Section::Invocation => with_floor(invocation::measure(plan, programs).await?),
            Section::Own => (None, own::measure(plan).await?),
            Section::Endings => with_floor(endings::measure(plan, programs).await?),
            Section::Vanished => (None, vanished::measure(plan, programs).await?),
            Section::Renewals => (None, renewals::measure()?),
            Section::Leases => (None, leases::measure(plan, programs).await?),
            Section::Contention => with_floor(contention::measure(plan, tell).await?),
            Section::Sandbox => (None, overhead::measure(plan, programs).await?),
        };
        floors.extend(measured.0.map(|floor| (section, floor)));
        rows.extend(measured.1);
    }
    machine.look_again();
    Ok(Report { plan: plan.clone(), machine, floors, took: began.elapsed(), rows })
}

fn with_floor<F, R>((floor, rows): (F, R)) -> (Option<F>, R) {
    (Some(floor), rows)
}
