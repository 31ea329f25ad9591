//! Which keys an invocation has taken by hand: known to all that take leases for it, in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::keeper::client::KeeperName;
use crate::key::LockKey;
use crate::lease::Scope;
use crate::session::Table;

/// The invocations that have taken something by hand, by their keeper and request id.
/// They are few at a time.
static INVOCATIONS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

type Known = ((KeeperName, String), Weak<Held>);

/// A row that was taken by hand.
type Row = (Table, String);

/// The rows that one invocation has taken, or is taking, and under which layers.
#[derive(Debug, Default)]
pub(super) struct Held {
    rows: Mutex<Vec<(Row, Option<Scope>)>>,
}

impl Held {
    /// What the invocation with this request id holds; without an id nothing tells two invocations apart, so that what is
    /// taken is not shared.
    pub(super) fn of(keeper: KeeperName, request_id: &str) -> Arc<Self> {
        if request_id.is_empty() {
            return Arc::default();
        }
        let mut known = INVOCATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, held)| held.strong_count() > 0);
        let name = (keeper, request_id.to_owned());
        if let Some(held) = find(&known, &name).and_then(Weak::upgrade) {
            return held;
        }
        let held = Arc::default();
        known.push((name, Arc::downgrade(&held)));
        held
    }

    /// Notes that this row is being taken by a handler under these layers; `None` if it is already.
    pub(super) fn note(held: &Arc<Self>, table: &Table, key: &LockKey, around: Option<&Scope>) -> Option<Note> {
        let row = (table.clone(), key.as_str().to_owned());
        let mut rows = held.rows();
        if find(&rows, &row).is_some() {
            return None;
        }
        rows.push((row.clone(), around.cloned()));
        Some(Note(Some((held.clone(), row))))
    }

    /// Whether the handler that this is polled within has taken this row by hand, or one around it has: whoever waits for it
    /// there waits for itself. What another handler of the same invocation has, as that of another record of a batch, it
    /// gives back.
    pub(super) fn is_held_around(keeper: KeeperName, request_id: &str, table: &Table, key: &LockKey) -> bool {
        let known = INVOCATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let held = find(&known, &(keeper, request_id.to_owned())).and_then(Weak::upgrade);
        let Some(held) = held else { return false };
        let rows = held.rows();
        match find(&rows, &(table.clone(), key.as_str().to_owned())) {
            None => false,
            Some(None) => true,
            Some(Some(taken_in)) => Scope::around().is_some_and(|scope| scope.is_within(taken_in)),
        }
    }

    fn rows(&self) -> MutexGuard<'_, Vec<(Row, Option<Scope>)>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<'a, K: PartialEq, V>(known: &'a [(K, V)], wanted: &K) -> Option<&'a V> {
    known.iter().find(|(key, _)| key == wanted).map(|(_, value)| value)
}

/// That an invocation holds a row; it goes with the lease.
#[derive(Debug)]
pub(super) struct Note(Option<(Arc<Held>, Row)>);

impl Note {
    /// Nothing needs to be noted.
    pub(super) const fn none() -> Self {
        Self(None)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some((held, row)) = self.0.take() {
            held.rows().retain(|(held, _)| *held != row);
        }
    }
}
