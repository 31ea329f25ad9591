//! What an environment knows of its processes and its invocations.

use std::{collections::VecDeque, path::PathBuf};

use tokio::time::Instant;

use crate::{
    api::{Replier, Reply},
    invocation::Job,
    process::Running,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No process runs.
    Cold,
    /// Processes start; registrations are open.
    Init,
    /// Invocations can be served.
    Ready,
    /// Processes are being ended.
    Ending,
}

#[derive(Debug, Default)]
pub(super) struct Runtime {
    pub(super) running: Option<Running>,
    /// Its open Next calls; more than one on Managed Instances.
    pub(super) waiting: VecDeque<Replier>,
    /// Invocations that no Next call was there for.
    pub(super) owed: VecDeque<Reply>,
}

#[derive(Debug)]
pub(super) struct Extension {
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) running: Option<Running>,
    pub(super) registration: Option<Registration>,
    pub(super) waiting: Option<Replier>,
    pub(super) owed: Option<Reply>,
    pub(super) told_to_shut_down: bool,
}

#[derive(Debug)]
pub(super) struct Registration {
    pub(super) id: String,
    pub(super) events: Vec<String>,
}

impl Registration {
    pub(super) fn wants(&self, event: &str) -> bool {
        self.events.iter().any(|wanted| wanted == event)
    }
}

/// An invocation in this environment, from its delivery to the last Next.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) job: Job,
    pub(super) deadline: Instant,
    pub(super) deadline_ms: u64,
    pub(super) trace: String,
}
