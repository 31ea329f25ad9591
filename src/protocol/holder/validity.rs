//! How long a lease may be believed.

use std::time::Duration;

use crate::clock::{Now, Wall};
use crate::protocol::timing::{HOLDER_GRACE, shown_after};
use crate::protocol::{Acquired, Mutant, Sample, Settings};

/// The part of the lease that a holder believes in: two clocks within 5 % of real time stay within 1/0.9 of each other.
const BELIEVED_PERCENT: u32 = 90;

/// How long a lease may be believed, as a value that needs no machine: what `ensure_held` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validity {
    anchor: Now,
    length: Duration,
    by_smaller: bool,
}

impl Validity {
    /// What rests on the attempt's own write: no longer than server time is at most [`HOLDER_GRACE`] past the
    /// `expires_at` that it wrote, perhaps by a clock that nobody had checked.
    pub(super) fn first(settings: &Settings, acquired: &Acquired) -> Self {
        let mut length = believed(settings);
        if let (Some(expires_at), Some(sample)) = (acquired.expires_at, acquired.sample) {
            let date = Wall::from_epoch(Duration::from_secs(sample.date)) + granularity(settings);
            length = length.min(shown_after((expires_at + HOLDER_GRACE).since(date)));
        }
        Self { anchor: acquired.sent, length, by_smaller: settings.rules.broken(Mutant::HolderBySmallerClock) }
    }

    /// What an answered renewal gives, from before it was sent.
    pub(super) fn renewed(settings: &Settings, sent: Now) -> Self {
        let by_smaller = settings.rules.broken(Mutant::HolderBySmallerClock);
        Self { anchor: sent, length: believed(settings), by_smaller }
    }

    /// What is left of it at `now`; zero when it is over.
    #[must_use]
    pub fn left(&self, now: Now) -> Duration {
        let elapsed = if self.by_smaller { now.smaller_elapsed(self.anchor) } else { now.larger_elapsed(self.anchor) };
        self.length.saturating_sub(elapsed)
    }

    /// From when it counts.
    pub(super) const fn anchor(&self) -> Now {
        self.anchor
    }

    /// All of it, as it was at its beginning.
    pub(super) const fn length(&self) -> Duration {
        self.length
    }
}

/// How much of a lease is believed.
pub(super) fn believed(settings: &Settings) -> Duration {
    if settings.rules.broken(Mutant::WholeLease) { settings.lease } else { settings.lease * BELIEVED_PERCENT / 100 }
}

/// What a whole second of `Date` can hide.
pub(super) fn granularity(settings: &Settings) -> Duration {
    if settings.rules.broken(Mutant::DateGranularityDropped) { Duration::ZERO } else { Sample::granularity() }
}
