//! The key's row while a scene is played, by consistent reads: what DynamoDB itself says, beside what functions tell.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use leasehold::protocol::{OwnerId, Row};
use leasehold::session::Table;
use leasehold::store::DynamoDb;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::asking;
use crate::ended::Stop;

/// How often it is looked at.
const EVERY: Duration = Duration::from_millis(25);
/// How often while nothing is to happen.
const SELDOM: Duration = Duration::from_secs(1);

/// Whose a row was, from some moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is none yet.
    Absent,
    Free,
    Held {
        owner: OwnerId,
        version: u64,
        lease: Duration,
    },
}

/// A state that differs from the one before it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) state: State,
    /// It was so by then.
    pub(super) by: Instant,
    /// It was not so before then.
    pub(super) after: Instant,
}

/// Watches one row.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    store: &'a DynamoDb,
    table: &'a Table,
    key: String,
    seen: RefCell<Vec<Seen>>,
    every: Cell<Duration>,
    read_units: Cell<f64>,
    changed: Notify,
}

impl<'a> Watch<'a> {
    pub(super) fn new(store: &'a DynamoDb, table: &'a Table, key: String) -> Self {
        Self {
            store,
            table,
            key,
            seen: RefCell::default(),
            every: Cell::new(EVERY),
            read_units: Cell::default(),
            changed: Notify::new(),
        }
    }

    /// Looks until it is dropped; ends only where the row can't be read.
    pub(super) async fn run(&self) -> Stop {
        // The look before the one that shows a change still showed the old state, whenever between its two ends.
        let mut before = Instant::now();
        loop {
            let sent = Instant::now();
            match asking::look(self.store, self.table, &self.key).await {
                Ok(look) => {
                    self.read_units.set(self.read_units.get() + look.read_units);
                    match state(&look.found.row) {
                        Ok(state) => self.note(state, before),
                        Err(told) => return Stop::Aws(told),
                    }
                }
                Err(failure) => return failure.into(),
            }
            before = sent;
            sleep(self.every.get()).await;
        }
    }

    fn note(&self, state: State, after: Instant) {
        let mut seen = self.seen.borrow_mut();
        if seen.last().is_none_or(|last| last.state != state) {
            seen.push(Seen { state, by: Instant::now(), after });
            self.changed.notify_waiters();
        }
    }

    /// Waits until what was seen so far tells this.
    pub(super) async fn until<T>(&self, tells: impl Fn(&[Seen]) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(told) = tells(&self.seen.borrow()) {
                return told;
            }
            changed.await;
        }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Whether to look less often from the next look on.
    pub(super) fn seldom(&self, seldom: bool) {
        self.every.set(if seldom { SELDOM } else { EVERY });
    }

    /// What looking has taken.
    pub(super) fn read_units(&self) -> f64 {
        self.read_units.get()
    }
}

fn state(row: &Row) -> Result<State, String> {
    match row {
        Row::Absent => Ok(State::Absent),
        Row::Free { .. } => Ok(State::Free),
        Row::Held(held) => Ok(State::Held {
            owner: held.owner,
            version: held.version.counter().unwrap_or_default(),
            lease: held.lease,
        }),
        Row::Unusable(unusable) => Err(unusable.to_string()),
    }
}

/// The first holder's row, as it was last seen: when that was, and what is left of its lease at a later moment, at least.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) owner: OwnerId,
    pub(super) lease: Duration,
    /// The versions under this owner that were seen: one for the acquisition, and one for each renewal.
    pub(super) renewals: u64,
    /// The lease begins with its last write, which was not before.
    begins: Instant,
}

impl Holder {
    /// Who held the row first.
    pub(super) fn first(seen: &[Seen]) -> Option<Self> {
        let mut holder: Option<(Self, u64)> = None;
        for Seen { state, after, .. } in seen {
            let State::Held { owner, version, lease } = state else { continue };
            match &mut holder {
                None => {
                    holder = Some((Self { owner: *owner, lease: *lease, renewals: 0, begins: *after }, *version));
                }
                Some((holder, first)) if holder.owner == *owner => {
                    holder.begins = *after;
                    holder.lease = *lease;
                    holder.renewals = version.saturating_sub(*first);
                }
                Some(_) => break,
            }
        }
        holder.map(|(holder, _)| holder)
    }

    /// How much of the lease was left then, at least.
    pub(super) fn left_at(&self, moment: Instant) -> Duration {
        self.lease.saturating_sub(moment.saturating_duration_since(self.begins))
    }
}

/// When the row was first seen to be no longer this owner's.
pub(super) fn given_back(seen: &[Seen], owner: OwnerId) -> Option<Instant> {
    let own = |seen: &Seen| matches!(seen.state, State::Held { owner: of, .. } if of == owner);
    let first = seen.iter().position(own)?;
    seen.iter().skip(first).find(|seen| !own(seen)).map(|seen| seen.by)
}

/// When the row was first seen to be somebody else's than this owner's.
pub(super) fn next_holder(seen: &[Seen], owner: OwnerId) -> Option<Instant> {
    let other = |seen: &&Seen| matches!(seen.state, State::Held { owner: of, .. } if of != owner);
    seen.iter().find(other).map(|seen| seen.by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_who_came_when_and_how_often_it_was_renewed() {
        let (first, second) = (OwnerId::random(), OwnerId::random());
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let lease = Duration::from_secs(6);
        let held = |owner, version| State::Held { owner, version, lease };
        let seen = |state, ms: u64| Seen { state, by: at(ms), after: at(ms - 5) };
        let history = [
            seen(State::Absent, 10),
            seen(held(first, 7), 100),
            seen(held(first, 8), 2_100),
            seen(held(first, 9), 4_100),
            seen(State::Free, 5_000),
            seen(held(second, 10), 5_200),
        ];
        let holder = Holder::first(&history).unwrap();
        assert_eq!((holder.owner, holder.renewals, holder.lease), (first, 2, lease));
        assert_eq!(holder.left_at(at(5_095)), Duration::from_secs(5));
        assert_eq!(given_back(&history, first), Some(at(5_000)));
        assert_eq!(next_holder(&history, first), Some(at(5_200)));
        assert_eq!((given_back(&history, second), next_holder(&history[..4], first)), (None, None));
    }
}
