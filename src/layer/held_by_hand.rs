//! Which keys an invocation has taken by hand: known to all that take leases for it, in this process.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::keeper::client::KeeperName;
use crate::key::LockKey;
use crate::session::Table;

/// The invocations that have taken something by hand, by their keeper and request id.
static INVOCATIONS: Mutex<Option<Invocations>> = Mutex::new(None);

type Invocations = HashMap<(KeeperName, String), Weak<Held>>;

/// The rows that one invocation has taken, or is taking.
#[derive(Debug, Default)]
pub(super) struct Held {
    rows: Mutex<HashSet<(Table, String)>>,
}

impl Held {
    /// What the invocation with this request id holds; without an id nothing tells two invocations apart, so that what is
    /// taken is not shared.
    pub(super) fn of(keeper: KeeperName, request_id: &str) -> Arc<Self> {
        if request_id.is_empty() {
            return Arc::default();
        }
        let mut known = INVOCATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let name = (keeper, request_id.to_owned());
        if let Some(held) = known.get(&name).and_then(Weak::upgrade) {
            return held;
        }
        known.retain(|_, held| held.strong_count() > 0);
        let held = Arc::default();
        known.insert(name, Arc::downgrade(&held));
        held
    }

    /// Notes that this row is being taken; `None` if it is already.
    pub(super) fn note(held: &Arc<Self>, table: &Table, key: &LockKey) -> Option<Note> {
        let row = (table.clone(), key.as_str().to_owned());
        held.rows().insert(row.clone()).then(|| Note(Some((held.clone(), row))))
    }

    fn rows(&self) -> MutexGuard<'_, HashSet<(Table, String)>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That an invocation holds a row; it goes with the lease.
#[derive(Debug)]
pub(super) struct Note(Option<(Arc<Held>, (Table, String))>);

impl Note {
    /// Nothing needs to be noted.
    pub(super) const fn none() -> Self {
        Self(None)
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some((held, row)) = self.0.take() {
            held.rows().remove(&row);
        }
    }
}
