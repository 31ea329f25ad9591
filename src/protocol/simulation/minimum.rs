//! What a parked lease promises: nobody else is granted its key before the minimum is over.

use super::clock::{FASTEST, Micros, PPM};
use crate::protocol::OwnerId;

/// The promise of one parked lease, by true time. It counts from when the row is parked or said to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Minimum {
    /// Under whom the row is parked.
    pub(super) parked: OwnerId,
    /// When it is over.
    pub(super) over: Micros,
    /// Whether somebody may rely on it.
    pub(super) counts: bool,
}

/// When a minimum is over that counts from `sent`, by a clock that ran at these rates then and now. Where it did not run
/// evenly, all that is promised is that no clock could show more.
pub(super) fn over(sent: Micros, minimum: Micros, then: u64, now: u64) -> Micros {
    let rate = if then == now { now } else { FASTEST };
    sent + minimum * PPM / rate
}

/// The minima of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Minima(Vec<Minimum>);

impl Minima {
    /// A parking is sent; sent again, it may be for another moment, and the earlier one counts.
    pub(super) fn sent(&mut self, parked: OwnerId, over: Micros) {
        match self.0.iter_mut().find(|minimum| minimum.parked == parked) {
            Some(minimum) => minimum.over = minimum.over.min(over),
            None => self.0.push(Minimum { parked, over, counts: false }),
        }
    }

    /// The row is parked under this owner, or its holder believes so.
    pub(super) fn begin(&mut self, parked: OwnerId) {
        for minimum in self.0.iter_mut().filter(|minimum| minimum.parked == parked) {
            minimum.counts = true;
        }
    }

    /// Whether a grant at this moment breaks one.
    pub(super) fn forbid(&self, at: Micros) -> bool {
        self.0.iter().any(|minimum| minimum.counts && at < minimum.over)
    }

    /// Whether a row of this owner is a parked one.
    pub(super) fn know(&self, owner: OwnerId) -> bool {
        self.0.iter().any(|minimum| minimum.parked == owner)
    }
}
