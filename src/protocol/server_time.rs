//! What DynamoDB's `Date` headers say about server time, as bounds.
//!
//! No two hosts' clocks are ever compared: a holder writes an upper bound of server time plus its lease, a contender
//! takes over when its own lower bound has passed that. Both come from an answer's `Date` and the elapsed time since,
//! each stretched by what the clock that measured it may be off: over a long lease 5 % are more than the second that
//! lies between the two graces.

use std::time::Duration;

use super::timing::{at_least, at_most};
use crate::clock::{Now, Wall};

/// `Date` counts whole seconds, so server time may be this much later than it says.
const GRANULARITY: Duration = Duration::from_secs(1);

/// What the service's own clocks may differ by.
const DISAGREEMENT: Duration = Duration::from_secs(1);

/// Which sessions' requests an answer may serve: it counts up with every `begin`.
///
/// Between two invocations the environment may have been frozen with its clocks stopped, so an answer to a request
/// that was sent before a session began says nothing to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(u64);

/// One answer's `Date` with the clocks' readings around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// Whether this one and a later one of the same session can't both be right.
    fn contradicts(&self, later: &Self) -> bool {
        let date = Wall::from_epoch(Duration::from_secs(later.date));
        let ahead = date > self.upper(later.answered, GRANULARITY) + DISAGREEMENT;
        // Of two that overlap, either may have been answered first.
        let behind =
            later.sent.mono >= self.answered.mono && date + GRANULARITY + DISAGREEMENT < self.lower(later.sent);
        ahead || behind
    }

    /// The usual upper bound.
    #[must_use]
    pub const fn granularity() -> Duration {
        GRANULARITY
    }
}

/// A keeper's newest answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ServerTime {
    epoch: Epoch,
    newest: Option<Sample>,
    /// Answers to requests of sessions up to this one contradicted each other.
    distrusted: Option<Epoch>,
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

    /// Notes an answer; the one whose request was sent last is kept. Returns whether it serves.
    ///
    /// Where two of one session can't both be right, nobody knows which one is wrong: no answer serves until another
    /// session begins. Leases are then recovered by observation alone.
    pub fn record(&mut self, sample: Sample) -> bool {
        if self.distrusted.is_some_and(|epoch| sample.epoch <= epoch) {
            return false;
        }
        if self.newest.is_some_and(|newest| newest.epoch == sample.epoch && newest.contradicts(&sample)) {
            self.distrusted = Some(sample.epoch);
            self.newest = None;
            return false;
        }
        let newer =
            self.newest.is_none_or(|newest| (sample.epoch, sample.sent.mono) >= (newest.epoch, newest.sent.mono));
        if newer {
            self.newest = Some(sample);
        }
        true
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Mono;

    fn at(ms: u64) -> Now {
        Now { mono: Mono::from_origin(Duration::from_millis(ms)), wall: Wall::from_millis(ms) }
    }

    fn sample(date: u64, sent: u64, answered: u64, epoch: Epoch) -> Sample {
        Sample { date, sent: at(sent), answered: at(answered), epoch }
    }

    #[test]
    fn server_time_lies_between_its_bounds() {
        let sample = sample(1_000, 50_000, 50_400, Epoch::default());
        let now = at(71_400);
        assert_eq!(sample.lower(now), Wall::from_millis(1_020_000) - Duration::from_nanos(1));
        let upper = sample.upper(now, Sample::granularity());
        assert!(upper > Wall::from_millis(1_000_000 + 1_000 + 21_400));
        assert!(upper < Wall::from_millis(1_000_000 + 1_000 + 22_600));
    }

    #[test]
    fn a_session_is_not_served_by_what_was_asked_before_it() {
        let mut time = ServerTime::new();
        let first = time.begin();
        time.record(sample(1, 10, 20, first));
        assert!(time.since(first).is_some());
        let second = time.begin();
        assert!(time.since(second).is_none());
        assert!(time.since(first).is_some());
        time.record(sample(2, 30, 40, second));
        assert_eq!(time.since(second).map(|sample| sample.date), Some(2));
    }

    #[test]
    fn answers_that_can_not_both_be_right_serve_nobody_until_another_session_begins() {
        // The second answer comes 10 s after the first, with a `Date` that is this much later.
        for (later, served) in
            [(-3_600, false), (7, false), (8, true), (10, true), (12, true), (13, false), (3_600, false)]
        {
            let mut time = ServerTime::new();
            let epoch = time.begin();
            assert!(time.record(sample(5_000, 1_000, 1_100, epoch)));
            let second = sample(5_000_u64.saturating_add_signed(later), 11_000, 11_100, epoch);
            assert_eq!(time.record(second), served, "{later}");
            assert_eq!(time.since(epoch).is_some(), served, "{later}");
            assert_eq!(time.record(sample(5_020, 21_000, 21_100, epoch)), served, "{later}");
            let next = time.begin();
            assert!(time.record(sample(5_021, 22_000, 22_100, next)));
            assert_eq!(time.since(next).map(|sample| sample.date), Some(5_021));
        }
    }

    #[test]
    fn a_late_answer_to_an_earlier_request_is_no_contradiction() {
        let mut time = ServerTime::new();
        let epoch = time.begin();
        assert!(time.record(sample(5_009, 9_000, 9_100, epoch)));
        assert!(time.record(sample(5_000, 0, 10_000, epoch)));
        assert_eq!(time.newest().map(|sample| sample.date), Some(5_009));
    }

    #[test]
    fn the_answer_to_the_newest_request_is_kept() {
        let mut time = ServerTime::new();
        let epoch = time.begin();
        time.record(sample(2, 30, 40, epoch));
        time.record(sample(1, 10, 50, epoch));
        assert_eq!(time.newest().map(|sample| sample.date), Some(2));
    }
}
