//! From the invocation's deadline and the clocks to how long an acquisition may take.
//!
//! The deadline is a wall time of Lambda's, the wait is measured by the monotonic clock: a wall clock that is stepped
//! while a handler waits must not stretch the wait. So wall time is read once, here, and everything after is monotonic.

use std::time::Duration;

use thiserror::Error;

use crate::clock::{Mono, Now, Wall};

/// How long an invocation waits for a busy key unless told otherwise. Waiting is billed.
pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(2);

/// 2020-01-01T00:00:00Z. Local emulators send 0 or a time in 1970 for a deadline that they don't have.
const EARLIEST_DEADLINE: Wall = Wall::from_millis(1_577_836_800_000);

/// When Lambda ends the invocation.
///
/// ```
/// use leasehold::budget::Deadline;
/// use leasehold::clock::Wall;
///
/// assert_eq!(Deadline::from_epoch_ms(0), Deadline::Unknown);
/// let ms = 1_800_000_000_000;
/// assert_eq!(Deadline::from_epoch_ms(ms), Deadline::Known(Wall::from_millis(ms)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deadline {
    /// At this moment.
    Known(Wall),
    /// Nobody said: a local emulator, or a context made by hand.
    #[default]
    Unknown,
}

impl Deadline {
    /// Reads the deadline of a Lambda context, in milliseconds since the epoch; one before 2020 counts as unknown.
    #[must_use]
    pub fn from_epoch_ms(ms: u64) -> Self {
        let deadline = Wall::from_millis(ms);
        if deadline < EARLIEST_DEADLINE { Self::Unknown } else { Self::Known(deadline) }
    }

    /// How much time is left, none if the deadline is over; `None` if it is unknown.
    #[must_use]
    pub fn remaining(self, now: Wall) -> Option<Duration> {
        match self {
            Self::Known(deadline) => Some(deadline.since(now)),
            Self::Unknown => None,
        }
    }
}

/// How long one acquisition may take.
///
/// The first attempt is always sent, later ones only before [`stop`](Self::stop). An answer counts until
/// [`latest`](Self::latest); without one, until its request's own timeout.
///
/// ```
/// use std::time::Duration;
/// use leasehold::budget::{Budget, DEFAULT_MAX_WAIT, Deadline};
/// use leasehold::clock::{Clock, ManualClock, Wall};
///
/// let start = Wall::from_millis(1_800_000_000_000);
/// let now = ManualClock::at(start).now();
/// let deadline = Deadline::Known(start + Duration::from_secs(6));
/// let budget = Budget::plan(now, deadline, Some(Duration::from_secs(5)), DEFAULT_MAX_WAIT)?;
/// // Six seconds are left and the work needs five: one second can be waited away, not two.
/// assert_eq!(budget.wait(now), Duration::from_secs(1));
/// # Ok::<(), leasehold::budget::DeadlineTooClose>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// No further attempt begins at this moment or later.
    pub stop: Mono,
    /// A grant that comes at this moment or later is given back; `None` if the deadline is unknown.
    pub latest: Option<Mono>,
    /// What is kept for work and cleanup; `None` if the deadline is unknown, as there is nothing to keep it from.
    pub reserve: Option<Duration>,
    /// The reserve was not set but taken as 80 % of what remains: worth one warning, the work knows better.
    pub reserve_defaulted: bool,
}

impl Budget {
    /// Plans an acquisition that begins now.
    ///
    /// `reserve` is what work and cleanup need after the lock is held; unset it is 80 % of what remains. `max_wait`
    /// bounds the wait in any case; zero means one attempt.
    ///
    /// # Errors
    ///
    /// [`DeadlineTooClose`] when no more than the reserve remains: no request should be sent.
    pub fn plan(
        now: Now,
        deadline: Deadline,
        reserve: Option<Duration>,
        max_wait: Duration,
    ) -> Result<Self, DeadlineTooClose> {
        let stop = now.mono + max_wait;
        let Some(remaining) = deadline.remaining(now.wall) else {
            return Ok(Self { stop, latest: None, reserve: None, reserve_defaulted: false });
        };
        let reserve_defaulted = reserve.is_none();
        // Subtracting a fifth, not multiplying by 0.8: exact, and it can't overflow.
        let reserve = reserve.unwrap_or(remaining - remaining / 5);
        let spare = remaining.saturating_sub(reserve);
        if spare.is_zero() {
            return Err(DeadlineTooClose::new(remaining, reserve));
        }
        let latest = now.mono + spare;
        Ok(Self { stop: stop.min(latest), latest: Some(latest), reserve: Some(reserve), reserve_defaulted })
    }

    /// How long from `now` on further attempts may begin.
    #[must_use]
    pub fn wait(&self, now: Now) -> Duration {
        self.stop.since(now.mono)
    }

    /// How long from `now` on an answer counts; `None` if the deadline is unknown.
    #[must_use]
    pub fn answer_within(&self, now: Now) -> Option<Duration> {
        self.latest.map(|latest| latest.since(now.mono))
    }
}

/// The invocation has too little time left to take the lock and do the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}", told(self))]
#[non_exhaustive]
pub struct DeadlineTooClose {
    /// What is left until the deadline.
    pub remaining: Duration,
    /// What the work and its cleanup need.
    pub reserve: Duration,
    /// The most that was left when an invocation began, this one among them; `None` where that is not known. A reserve
    /// that is not shorter is longer than the function's timeout: no invocation will ever get a lease.
    pub at_begin: Option<Duration>,
}

impl DeadlineTooClose {
    pub(crate) const fn new(remaining: Duration, reserve: Duration) -> Self {
        Self { remaining, reserve, at_begin: None }
    }

    /// The same, with the most that an invocation had when it began.
    #[must_use]
    pub(crate) fn of_invocations_with(self, at_begin: Duration) -> Self {
        // One whose deadline was over from the first tells nothing of the others.
        let at_begin = Some(at_begin.max(self.remaining)).filter(|at_begin| !at_begin.is_zero());
        Self { at_begin, ..self }
    }

    /// Whether every invocation will be refused, and not only one that came late: the reserve is longer than what
    /// invocations have from their beginning.
    #[must_use]
    pub fn is_of_every_invocation(&self) -> bool {
        self.at_begin.is_some_and(|at_begin| self.reserve >= at_begin)
    }
}

fn told(error: &DeadlineTooClose) -> String {
    let DeadlineTooClose { remaining, reserve, at_begin } = error;
    let (remaining, reserve) = (whole_millis(remaining), whole_millis(reserve));
    match at_begin.as_ref().map(whole_millis) {
        Some(at_begin) if error.is_of_every_invocation() => format!(
            "the reserve of {reserve:?} is longer than what an invocation has: {at_begin:?} were left when it began, and \
             no earlier one had more; so every invocation will be refused: set `reserve` (LEASEHOLD_RESERVE) to what the \
             work needs, and the function's timeout to that and the longest wait (`max_wait`) together"
        ),
        Some(at_begin) => format!(
            "{remaining:?} are left of the invocation and {reserve:?} are reserved for the work, so the lock was not asked \
             for; invocations have up to {at_begin:?}, so this one came late: raise the function's timeout or lower the \
             reserve, or shorten what comes before"
        ),
        None => format!(
            "{remaining:?} are left of the invocation and {reserve:?} are reserved for the work, so the lock was not asked \
             for: raise the function's timeout or lower the reserve"
        ),
    }
}

/// Nobody sets a timeout by the microsecond.
fn whole_millis(duration: &Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
