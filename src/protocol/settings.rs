//! What a machine is told once.

use std::time::Duration;

use super::Rules;

/// A lease as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How long the lease lasts unrenewed.
    pub lease: Duration,
    /// How a contender polls.
    pub polling: Polling,
    /// Whether server time serves: a contender takes over by it, a holder writes `expires_at`.
    pub server_time: bool,
    /// Which rules are switched off, in tests of the tests.
    pub rules: Rules,
}

impl Settings {
    /// The shortest lease that can be asked for.
    pub const MIN_LEASE: Duration = Duration::from_millis(500);
    /// The longest lease.
    pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
    /// The lease where nothing else is set.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

    /// The same, with the lease as a row can hold it: a holder must not believe in more than others can read there.
    pub(super) fn in_whole_millis(self) -> Self {
        let millis = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        Self { lease: Duration::from_millis(millis), ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { lease: Self::DEFAULT_LEASE, polling: Polling::default(), server_time: true, rules: Rules::default() }
    }
}

/// How often a contender looks at a held row: a delay that doubles from `first` to `max`, each with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Polling {
    /// The first delay.
    pub first: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Polling {
    /// The delay before look number `n` (from 0), `fraction` (0 to 1) spreading it from 0.8 to 1.2 of its value.
    #[must_use]
    pub fn delay(&self, n: u32, fraction: f64) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(n.min(20)).unwrap_or(u32::MAX));
        doubled.min(self.max).mul_f64(0.8 + 0.4 * fraction.clamp(0.0, 1.0))
    }
}

impl Default for Polling {
    fn default() -> Self {
        Self { first: Duration::from_millis(50), max: Duration::from_millis(500) }
    }
}
