//! What a machine is told once.

use std::time::Duration;

use super::{Format, Rules};

/// A lease as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How long the lease lasts unrenewed.
    pub lease: Duration,
    /// What the row is to look like, and so which rules it has a place for.
    pub format: Format,
    /// How a contender polls.
    pub polling: Polling,
    /// Whether server time serves, where the format has a place for it: a contender takes over by it, a holder writes
    /// `expires_at`.
    pub server_time: bool,
    /// Which rules are switched off, in tests of the tests.
    pub rules: Rules,
}

impl Settings {
    /// The shortest lease that can be asked for.
    pub const MIN_LEASE: Duration = Duration::from_millis(500);
    /// The longest lease.
    pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
    /// The longest minimum that a row can be parked for: a ninth more of it is written, to a row that takes a lease.
    pub const MAX_MINIMUM: Duration = Duration::from_secs(24 * 60 * 60 * 9 / 10);
    /// The lease where nothing else is set.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

    /// The same, as a row can hold it: a holder must not believe in more than others can read there, and where a row has
    /// no `expires_at` there is none to write and none to go by.
    pub(super) fn as_a_row_holds_them(self) -> Self {
        let millis = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let server_time = self.server_time && self.format.abilities().expires_at;
        let polling = match self.polling {
            Polling::Tickets if !self.format.abilities().hints => Polling::Backoff(Backoff::default()),
            polling => polling,
        };
        Self { lease: Duration::from_millis(millis), server_time, polling, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Self::DEFAULT_LEASE,
            format: Format::default(),
            polling: Polling::default(),
            server_time: true,
            rules: Rules::default(),
        }
    }
}

/// How a contender waits for a held row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Polling {
    /// By the hints that the row has for those who wait; by the default backoff, where it has no place for any.
    #[default]
    Tickets,
    /// By the clock alone.
    Backoff(Backoff),
}

impl Polling {
    /// The delays between requests that have nothing to do with the row's holder.
    pub(super) fn backoff(self) -> Backoff {
        match self {
            Self::Tickets => Backoff::default(),
            Self::Backoff(backoff) => backoff,
        }
    }
}

/// How often a contender looks at a held row: a delay that doubles from `first` to `max`, each with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The first delay.
    pub first: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Backoff {
    /// The delay before look number `n` (from 0), `fraction` (0 to 1) spreading it from 0.8 to 1.2 of its value.
    #[must_use]
    pub fn delay(&self, n: u32, fraction: f64) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(n.min(20)).unwrap_or(u32::MAX));
        doubled.min(self.max).mul_f64(0.8 + 0.4 * fraction.clamp(0.0, 1.0))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(50), max: Duration::from_millis(500) }
    }
}
