//! What a soak is to do.

use std::time::Duration;

/// The settings of a soak.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many environments contend.
    pub environments: usize,
    /// How many invocations run at the same time.
    pub jobs: usize,
    /// How many keys they contend for.
    pub keys: usize,
    /// The length of a lease.
    pub lease: Duration,
    /// When no further invocation is begun.
    pub duration: Option<Duration>,
    /// How many invocations are begun at most.
    pub invocations: Option<u64>,
    /// Where faults, jobs and mishaps are drawn from.
    pub seed: u64,
    /// Of a hundred requests, how many meet a fault of their own.
    pub request_faults: f64,
    /// Of a hundred invocations, how many meet a fault of their processes.
    pub process_faults: f64,
    /// How many periods of bad weather come in a minute.
    pub fronts: f64,
    /// Breaks the promise on purpose, to see that the witness notices.
    pub broken: Option<Broken>,
    /// Where the logs go; they are kept when something broke.
    pub logs: std::path::PathBuf,
}

/// How a soak can be broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// No lock is taken, and all believe.
    Unlocked,
    /// Who lost a lease goes on and believes in it.
    Overstay,
}
