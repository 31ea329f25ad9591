//! Monotonic and wall time as one seam, and a manual clock for tests.
//!
//! The protocol never trusts one clock alone: a frozen environment's monotonic clock may stop, and a wall clock may
//! be stepped. So a reading is always both, and elapsed time is asked for as the *larger* or the *smaller* of the two:
//! whoever might wrongly believe takes the larger, whoever might wrongly take takes the smaller.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A reading of the monotonic clock: time since an origin that only this clock knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(Duration);

/// A reading of the wall clock: time since the Unix epoch, as this host believes it to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(Duration);

impl Mono {
    /// The reading that lies `since_origin` after the clock's origin.
    #[must_use]
    pub const fn from_origin(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// How long before `self` the reading `earlier` was taken; zero when it was not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Wall {
    /// The moment that lies `since_epoch` after the Unix epoch.
    #[must_use]
    pub const fn from_epoch(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// The moment that many milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(Duration::from_millis(ms))
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Time since the Unix epoch.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// How long before `self` the moment `earlier` was; zero when it was not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Mono {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl Sub<Duration> for Mono {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs))
    }
}

impl Add<Duration> for Wall {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl Sub<Duration> for Wall {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs))
    }
}

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    /// Monotonic time.
    pub mono: Mono,
    /// Wall time.
    pub wall: Wall,
}

impl Now {
    /// The larger of elapsed monotonic and wall time since `earlier`: for who must not believe too long.
    #[must_use]
    pub fn larger_elapsed(self, earlier: Self) -> Duration {
        self.mono.since(earlier.mono).max(self.wall.since(earlier.wall))
    }

    /// The smaller of elapsed monotonic and wall time since `earlier`, zero when the wall clock went back: for who
    /// must not act too early.
    #[must_use]
    pub fn smaller_elapsed(self, earlier: Self) -> Duration {
        self.mono.since(earlier.mono).min(self.wall.since(earlier.wall))
    }
}

/// Where readings come from.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Both clocks, read one right after the other.
    fn now(&self) -> Now;
}

/// The operating system's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic origin is this moment.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now {
            mono: Mono(self.origin.elapsed()),
            // A host whose clock stands before 1970 is treated as standing at 1970; the protocol expects odd clocks.
            wall: Wall(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        }
    }
}

/// A clock that moves only when told to; clones share one time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    now: Arc<Mutex<Now>>,
}

impl ManualClock {
    /// A clock that stands at `wall`, with its monotonic reading at one hour.
    #[must_use]
    pub fn at(wall: Wall) -> Self {
        let mono = Mono(Duration::from_secs(3600));
        Self { now: Arc::new(Mutex::new(Now { mono, wall })) }
    }

    /// Moves both clocks on together.
    pub fn advance(&self, by: Duration) {
        self.advance_apart(by, by);
    }

    /// Moves the two clocks on by different amounts, as a freeze or a drift does.
    pub fn advance_apart(&self, mono: Duration, wall: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = Now { mono: now.mono + mono, wall: now.wall + wall };
    }

    /// Steps the wall clock to a moment, forwards or back.
    pub fn set_wall(&self, wall: Wall) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).wall = wall;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_time_is_the_larger_or_the_smaller_of_both_clocks() {
        let clock = ManualClock::at(Wall::from_millis(1_000_000));
        let start = clock.now();
        clock.advance_apart(Duration::from_secs(2), Duration::from_secs(7));
        let now = clock.now();
        assert_eq!(now.larger_elapsed(start), Duration::from_secs(7));
        assert_eq!(now.smaller_elapsed(start), Duration::from_secs(2));
    }

    #[test]
    fn a_wall_clock_set_back_counts_as_no_time_at_all() {
        let clock = ManualClock::at(Wall::from_millis(1_000_000));
        let start = clock.now();
        clock.advance(Duration::from_secs(5));
        clock.set_wall(Wall::from_millis(10));
        let now = clock.now();
        assert_eq!(now.larger_elapsed(start), Duration::from_secs(5));
        assert_eq!(now.smaller_elapsed(start), Duration::ZERO);
    }
}
