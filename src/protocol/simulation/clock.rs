//! An environment's two clocks, each with a rate of its own; they stop and are stepped as real ones are.

use std::time::Duration;

use super::random::Random;
use crate::clock::{Mono, Now, Wall};

/// True time, in microseconds since the run began.
pub(super) type Micros = u64;

pub(super) const MS: Micros = 1_000;
pub(super) const SECOND: Micros = 1_000_000;
pub(super) const HOUR: Micros = 3_600 * SECOND;
pub(super) const DAY: Micros = 24 * HOUR;

/// When a run begins, by true wall time.
pub(super) const EPOCH: Micros = 1_750_000_000 * SECOND;

pub(super) const PPM: u64 = 1_000_000;
pub(super) const SLOWEST: u64 = 950_000;
pub(super) const FASTEST: u64 = 1_050_000;

/// How far the clocks of a run are from true ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Drift {
    None,
    /// Anywhere within the limits.
    Some,
    /// At the limits, where the margins are thinnest.
    Extreme,
}

impl Drift {
    /// The rates of both clocks; as often as not one oscillator drives them.
    fn rates(self, random: &mut Random) -> (u64, u64) {
        let mut rate = || match self {
            Self::None => PPM,
            Self::Some => random.between(SLOWEST, FASTEST),
            Self::Extreme => random.pick(&[SLOWEST, FASTEST]),
        };
        let (mono, wall) = (rate(), rate());
        if random.chance(500) { (mono, mono) } else { (mono, wall) }
    }
}

/// What becomes of the clocks while an environment is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Freeze {
    /// They go on: the process was only stopped.
    Paused,
    /// The monotonic clock stands still.
    MonoStops,
    /// The wall clock stands still.
    WallStops,
    /// Both stand still, only between sessions.
    BothStop,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SimClock {
    since: Micros,
    mono: Micros,
    wall: Micros,
    mono_rate: u64,
    wall_rate: u64,
    drift: Drift,
    stopped: Freeze,
}

impl SimClock {
    /// Clocks that start at `at`, the wall clock `ahead` of true time (or behind it).
    pub(super) fn new(at: Micros, ahead: i64, drift: Drift, random: &mut Random) -> Self {
        let (mono_rate, wall_rate) = drift.rates(random);
        Self {
            since: at,
            mono: random.between(HOUR, 100 * HOUR),
            wall: (EPOCH + at).saturating_add_signed(ahead),
            mono_rate,
            wall_rate,
            drift,
            stopped: Freeze::Paused,
        }
    }

    /// Clocks with these rates, in millionths of the true one, for good.
    pub(super) fn exact(at: Micros, ahead: i64, mono_rate: u64, wall_rate: u64) -> Self {
        Self {
            since: at,
            mono: HOUR,
            wall: (EPOCH + at).saturating_add_signed(ahead),
            mono_rate,
            wall_rate,
            drift: Drift::None,
            stopped: Freeze::Paused,
        }
    }

    /// How fast the monotonic clock runs, in millionths.
    pub(super) const fn mono_rate(&self) -> u64 {
        self.mono_rate
    }

    pub(super) fn read(&self, at: Micros) -> Now {
        let elapsed = at.saturating_sub(self.since);
        let mono = if self.mono_stopped() { 0 } else { elapsed * self.mono_rate / PPM };
        let wall_stopped = matches!(self.stopped, Freeze::WallStops | Freeze::BothStop);
        let wall = if wall_stopped { 0 } else { elapsed * self.wall_rate / PPM };
        Now {
            mono: Mono::from_origin(Duration::from_micros(self.mono + mono)),
            wall: Wall::from_epoch(Duration::from_micros(self.wall + wall)),
        }
    }

    /// The true time at which the monotonic clock will show `mono`, as things stand.
    pub(super) fn when(&self, at: Micros, mono: Mono) -> Micros {
        let left = mono.since(self.read(at).mono);
        let left = u64::try_from(left.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX / PPM).min(100_000 * DAY);
        // Rounded up, and one more for what was rounded down in between: a wake-up is never early.
        at + u64::try_from((u128::from(left) * u128::from(PPM)).div_ceil(u128::from(self.mono_rate)))
            .unwrap_or(u64::MAX / 2)
            + 1
    }

    pub(super) fn freeze(&mut self, at: Micros, how: Freeze) {
        self.rebase(at);
        self.stopped = how;
    }

    pub(super) fn go_on(&mut self, at: Micros) {
        self.rebase(at);
        self.stopped = Freeze::Paused;
    }

    pub(super) fn thaw(&mut self, at: Micros, random: &mut Random) {
        self.go_on(at);
        (self.mono_rate, self.wall_rate) = self.drift.rates(random);
    }

    pub(super) fn step(&mut self, at: Micros, by: i64) {
        self.rebase(at);
        self.wall = self.wall.saturating_add_signed(by);
    }

    fn mono_stopped(&self) -> bool {
        matches!(self.stopped, Freeze::MonoStops | Freeze::BothStop)
    }

    fn rebase(&mut self, at: Micros) {
        let now = self.read(at);
        self.mono = micros(now.mono.since(Mono::default()));
        self.wall = micros(now.wall.since_epoch());
        self.since = at;
    }
}

pub(super) fn micros(duration: Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
