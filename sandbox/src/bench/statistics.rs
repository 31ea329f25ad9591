//! Percentiles of what was measured.

use std::time::Duration;

/// Times, in order of length.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Times(Vec<Duration>);

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        Self(times)
    }
}

impl Times {
    /// These and those.
    pub(super) fn and(&self, others: &Self) -> Self {
        self.0.iter().chain(&others.0).copied().collect()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The shortest of them that at least `share` of all are no longer than; zero where there is none.
    pub(super) fn percentile(&self, share: f64) -> Duration {
        let rank = (share.clamp(0.0, 1.0) * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// The middle one.
    pub(super) fn median(&self) -> Duration {
        self.percentile(0.5)
    }

    /// The longest; zero where there is none.
    pub(super) fn longest(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

/// How many times `part` goes into `whole`; zero where there is nothing to divide by.
pub(super) fn ratio(whole: Duration, part: Duration) -> f64 {
    if part.is_zero() { 0.0 } else { whole.as_secs_f64() / part.as_secs_f64() }
}

pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(millis: impl IntoIterator<Item = u64>) -> Times {
        millis.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred = times((1..=100).rev());
        let of = |share| hundred.percentile(share).as_millis();
        assert_eq!((of(0.5), of(0.9), of(0.99), of(1.0), of(0.0)), (50, 90, 99, 100, 1));
        assert_eq!(hundred.longest(), Duration::from_millis(100));
        // Of an even number the lower middle one; of one, itself.
        assert_eq!(times([4, 1, 3, 2]).median(), Duration::from_millis(2));
        assert_eq!(times([7]).percentile(0.9), Duration::from_millis(7));
    }

    #[test]
    fn nothing_measured_is_nothing() {
        let none = Times::default();
        assert_eq!((none.len(), none.median(), none.longest()), (0, Duration::ZERO, Duration::ZERO));
        assert_eq!(ratio(Duration::from_secs(1), none.median()), 0.0);
        assert_eq!(ratio(Duration::from_millis(30), Duration::from_millis(20)), 1.5);
    }
}
