//! What a double tells of a key that is looked at, and of what a lease has taken.

use std::time::Duration;

use super::Happened;
use super::held::Held;
use super::state::{Health, State, millis};
use crate::protocol::Format;
use crate::session::{Counted, FailKind, FromKeeper, Inspect, Inspected, RowState};

impl State {
    /// Answers a look at a key.
    pub(super) fn inspect(&mut self, session: u64, inspect: Inspect) {
        if self.is_gone() {
            return;
        }
        let Inspect { id, key, table, .. } = inspect;
        self.settle();
        let line = match &self.health {
            Health::Fails { kind, message } => FromKeeper::Failed { id, kind: *kind, message: message.clone() },
            Health::Serves => {
                let counts = table.format.parse().is_ok_and(|format: Format| format.abilities().fencing_token());
                let row = self.row(&key, counts);
                FromKeeper::Inspected(Box::new(Inspected { id, row }))
            }
        };
        self.happened.push(Happened::Inspected { key });
        self.say(session, line);
    }

    fn row(&self, key: &str, counts: bool) -> RowState {
        let version = self.versions.get(key).copied().filter(|_| counts);
        let now = self.now();
        match (self.held.get(key), version) {
            (Some(held), version) => {
                let (holder, retry_after) = held.told(now);
                let (owner, lease, unchanged_for) = match held {
                    // One that goes on renewing is never seen the same for long.
                    Held::Elsewhere { owner, until: None, .. } => (*owner, retry_after, Duration::ZERO),
                    Held::Elsewhere { owner, since, .. } => {
                        (*owner, retry_after + now.since(*since), now.since(*since))
                    }
                    Held::Here(lease) => (lease.owner, lease.length, Duration::ZERO),
                };
                RowState::Held {
                    owner,
                    version,
                    lease_ms: millis(lease),
                    unchanged_for_ms: millis(unchanged_for),
                    retry_after_ms: millis(retry_after),
                    holder: Some(holder),
                }
            }
            (None, Some(version)) => RowState::Free { version },
            (None, None) => RowState::Absent,
        }
    }

    /// Tells what a session's lease has taken.
    pub(super) fn count(&mut self, session: u64, id: u64) {
        if self.is_gone() {
            return;
        }
        self.settle();
        let counted = self.sessions.get(&session).and_then(|session| session.counted.get(&id).copied());
        let line = match counted {
            Some(counted) => FromKeeper::Counted(Box::new(Counted { id, ..counted })),
            None => {
                let message = "this session has asked for no lease".to_owned();
                FromKeeper::Failed { id, kind: FailKind::BadRequest, message }
            }
        };
        self.say(session, line);
    }

    /// Counts for a session's lease, once it has asked for one.
    pub(super) fn note(&mut self, session: u64, id: u64, note: impl FnOnce(&mut Counted)) {
        if let Some(counted) = self.sessions.get_mut(&session).and_then(|session| session.counted.get_mut(&id)) {
            note(counted);
        }
    }
}

impl Counted {
    /// The lease was granted after this wait; every attempt but the last one, and a look, were in vain.
    pub(super) fn granted(&mut self, attempts: u32, waited: Duration) {
        self.attempts = attempts.into();
        self.attempts_refused = self.attempts.saturating_sub(1);
        self.conditional_failures = self.attempts_refused;
        self.read_requests = self.attempts_refused;
        self.write_requests = self.attempts;
        self.waited_ms = millis(waited);
    }

    /// So many renewals were due, and were answered or not.
    pub(super) fn renewed(&mut self, due: u64, answered: bool) {
        self.write_requests += due;
        if answered {
            self.renewals += due;
        } else {
            self.renewal_failures += due;
            self.request_failures += due;
        }
    }
}
