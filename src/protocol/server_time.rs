//! What DynamoDB's `Date` headers say about server time, as bounds.
//!
//! No two hosts' clocks are ever compared: a holder writes an upper bound of server time plus its lease, a contender
//! takes over when its own lower bound has passed that. Both come from an answer's `Date` and the elapsed time since,
//! each stretched by what the clock that measured it may be off: over a long lease 5 % are more than the second that
//! lies between the two graces.

use std::time::Duration;

use crate::clock::{Now, Wall};

/// `Date` counts whole seconds, so server time may be this much later than it says.
const GRANULARITY: Duration = Duration::from_secs(1);

/// No less real time than this has passed when a clock says `elapsed`: it may be 5 % fast.
pub(super) fn at_least(elapsed: Duration) -> Duration {
    elapsed.saturating_sub(elapsed / 21 + Duration::from_nanos(1))
}

/// No more real time than this has passed when a clock says `elapsed`: it may be 5 % slow.
pub(super) fn at_most(elapsed: Duration) -> Duration {
    elapsed.saturating_add(elapsed / 19).saturating_add(Duration::from_nanos(1))
}

/// What a clock shows at least when `real` time has passed.
pub(super) fn shown_after(real: Duration) -> Duration {
    real.saturating_sub(real / 20 + Duration::from_nanos(1))
}

/// Which sessions' requests an answer may serve: it counts up with every `begin`.
///
/// Between two invocations the environment may have been frozen with its clocks stopped, so an answer to a request
/// that was sent before a session began says nothing to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64);

/// One answer's `Date` with the clocks' readings around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The `Date` header in seconds since the Unix epoch.
    pub date: u64,
    /// When its request was sent.
    pub sent: Now,
    /// When the answer came.
    pub answered: Now,
    /// The newest session at the time of sending.
    pub epoch: Epoch,
}

impl Sample {
    /// Server time is not earlier than this.
    #[must_use]
    pub fn lower(&self, now: Now) -> Wall {
        Wall::from_epoch(Duration::from_secs(self.date)) + at_least(now.smaller_elapsed(self.answered))
    }

    /// Server time is not later than this; `granularity` is what a whole second of `Date` can hide.
    #[must_use]
    pub fn upper(&self, now: Now, granularity: Duration) -> Wall {
        Wall::from_epoch(Duration::from_secs(self.date)) + granularity + at_most(now.larger_elapsed(self.sent))
    }

    /// The usual upper bound.
    #[must_use]
    pub const fn granularity() -> Duration {
        GRANULARITY
    }
}

/// A keeper's newest answer.
#[derive(Clone, Debug, Default)]
pub struct ServerTime {
    epoch: Epoch,
    newest: Option<Sample>,
}

impl ServerTime {
    /// Nothing known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A session begins: answers to requests that were sent before do not serve it.
    pub fn begin(&mut self) -> Epoch {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.epoch
    }

    /// The newest session's epoch, with which requests are stamped when they are sent.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Notes an answer; the one whose request was sent last is kept.
    pub fn record(&mut self, sample: Sample) {
        let newer =
            self.newest.is_none_or(|newest| (sample.epoch, sample.sent.mono) >= (newest.epoch, newest.sent.mono));
        if newer {
            self.newest = Some(sample);
        }
    }

    /// The newest answer to a request that was sent since the session `since` began.
    #[must_use]
    pub fn since(&self, since: Epoch) -> Option<Sample> {
        self.newest.filter(|sample| sample.epoch >= since)
    }

    /// The newest answer, whenever its request was sent.
    #[must_use]
    pub const fn newest(&self) -> Option<Sample> {
        self.newest
    }

    /// Forgets all answers, for a clone restored from a snapshot.
    pub fn forget(&mut self) {
        self.newest = None;
    }
}
