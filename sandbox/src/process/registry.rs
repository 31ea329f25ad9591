//! All process groups that live, so that dropping the sandbox can end them at once.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::guard::Guard;

/// The process groups of one sandbox; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    groups: Arc<Mutex<Groups>>,
}

#[derive(Debug)]
struct Groups {
    alive: BTreeSet<i32>,
    closed: bool,
    guard: Option<Guard>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let groups = Groups { alive: BTreeSet::new(), closed: false, guard: Guard::start() };
        Self { groups: Arc::new(Mutex::new(groups)) }
    }

    /// Notes a new group. When everything was already killed, the late-comer is killed too.
    pub(crate) fn add(&self, group: Pid) {
        let mut groups = self.lock();
        if groups.closed {
            kill(group);
            return;
        }
        groups.alive.insert(group.as_raw_nonzero().get());
        if let Some(guard) = &mut groups.guard {
            guard.add(group);
        }
    }

    /// Forgets a group that is no more.
    pub(crate) fn remove(&self, group: Pid) {
        let mut groups = self.lock();
        if groups.alive.remove(&group.as_raw_nonzero().get())
            && let Some(guard) = &mut groups.guard
        {
            guard.remove(group);
        }
    }

    /// Kills every group, those to come included.
    pub(crate) fn kill_all(&self) {
        let mut groups = self.lock();
        groups.closed = true;
        for group in std::mem::take(&mut groups.alive) {
            if let Some(group) = Pid::from_raw(group) {
                kill(group);
            }
        }
        groups.guard = None;
    }

    /// Whether everything was killed, or is being killed.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// SIGKILL ends stopped processes as well. A group without members is no error here.
fn kill(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}
