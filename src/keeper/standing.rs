//! Who holds what at this moment, for whoever asks without going through a lease's task: `check`, and the handle of a
//! handler in this very process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::Clock;
use crate::protocol::{LossReason, OwnerId, Validity};
use crate::session::CheckAnswer;

/// How many lost owners are remembered.
const LOST: usize = 1024;

/// The standing of every owner that this keeper granted a lease to.
#[derive(Debug)]
pub(super) struct Standings {
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    held: HashMap<OwnerId, Validity>,
    lost: HashMap<OwnerId, String>,
    /// The lost ones, oldest first.
    order: VecDeque<OwnerId>,
}

impl Standings {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, table: Mutex::default() }
    }

    /// The owner's lease may be believed for this long.
    pub(super) fn hold(&self, owner: OwnerId, validity: Validity) {
        self.table().held.insert(owner, validity);
    }

    /// The owner's lease was given back.
    pub(super) fn forget(&self, owner: OwnerId) {
        self.table().held.remove(&owner);
    }

    /// The owner's lease is lost.
    pub(super) fn lose(&self, owner: OwnerId, reason: String) {
        let mut table = self.table();
        table.held.remove(&owner);
        if table.lost.insert(owner, reason).is_none() {
            table.order.push_back(owner);
        }
        if table.order.len() > LOST
            && let Some(oldest) = table.order.pop_front()
        {
            table.lost.remove(&oldest);
        }
    }

    /// Answers for the moment of the call.
    pub(super) fn check(&self, owner: OwnerId) -> CheckAnswer {
        // The clock is read first: what is added to the table meanwhile can only be valid for longer.
        let now = self.clock.now();
        let table = self.table();
        if let Some(validity) = table.held.get(&owner) {
            let left = u64::try_from(validity.left(now).as_millis()).unwrap_or(u64::MAX);
            return match left {
                // Its own task will find out in a moment; nobody needs to wait for that.
                0 => CheckAnswer::Lost { reason: LossReason::Expired.to_string() },
                valid_for_ms => CheckAnswer::Held { valid_for_ms },
            };
        }
        table.lost.get(&owner).map_or(CheckAnswer::Unknown, |reason| CheckAnswer::Lost { reason: reason.clone() })
    }

    /// How many leases are held.
    pub(super) fn held(&self) -> usize {
        self.table().held.len()
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, Wall};

    #[test]
    fn lost_owners_are_remembered_up_to_a_bound() {
        let standings = Standings::new(Arc::new(ManualClock::at(Wall::from_millis(1))));
        for n in 0..=LOST as u128 {
            standings.lose(OwnerId::from_u128(n), "gone".to_owned());
        }
        assert_eq!(standings.check(OwnerId::from_u128(0)), CheckAnswer::Unknown);
        for n in [1, LOST as u128] {
            assert!(matches!(standings.check(OwnerId::from_u128(n)), CheckAnswer::Lost { .. }));
        }
    }
}
