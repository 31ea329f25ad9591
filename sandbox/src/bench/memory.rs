//! A store in memory that carries out what an undisturbed holder asks for, at once, and counts it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold::{
    clock::Clock,
    protocol::{Answer, Failure, FailureKind, Outcome, OwnerId, Request, Version},
    store::{Lock, Store},
};

/// Rows without DynamoDB; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<String, (OwnerId, Version)>,
    counted: Counted,
}

/// What was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) acquisitions: usize,
    pub(super) renewals: usize,
    pub(super) releases: usize,
}

impl Memory {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Arc::default() }
    }

    pub(super) fn counted(&self) -> Counted {
        self.state().counted
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carry_out(&self, lock: &Lock, request: &Request) -> Outcome {
        let mut state = self.state();
        let state = &mut *state;
        let held = state.held.get(&lock.key).copied();
        match request {
            Request::Acquire { owner, at, .. } if held.is_none() => {
                state.counted.acquisitions += 1;
                let version = Version::Counter(at.as_millis() + 1);
                state.held.insert(lock.key.clone(), (*owner, version));
                Outcome::written(version)
            }
            Request::Renew { owner, version, new_version, .. } if held == Some((*owner, *version)) => {
                state.counted.renewals += 1;
                state.held.insert(lock.key.clone(), (*owner, *new_version));
                Outcome::written(*new_version)
            }
            Request::Release { owners, .. } if held.is_some_and(|(owner, _)| owners.contains(&owner)) => {
                state.counted.releases += 1;
                state.held.remove(&lock.key);
                Outcome::written(Version::Counter(0))
            }
            _ => Outcome::Failed(Failure::new(FailureKind::Rejected, "nobody else is here to be in the way")),
        }
    }
}

impl Store for Memory {
    async fn send(&self, lock: &Lock, request: Request, _timeout: Duration) -> Answer {
        let outcome = self.carry_out(lock, &request);
        Answer::new(outcome, Some(self.clock.now().wall.as_millis() / 1000))
    }

    async fn warm_up(&self) {}

    fn drop_connections(&self) {}
}
