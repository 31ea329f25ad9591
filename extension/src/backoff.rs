//! Delays that double: for what is tried again without end.

use std::time::Duration;

/// A delay that doubles with every failure, up to a longest one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Starts at `first` and stays at `longest` once it is reached.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// Counts a failure; the delay before the next try.
    pub(crate) fn failed(&mut self) -> Duration {
        let delay = self.first.saturating_mul(1 << self.failures.min(20)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// It worked: the next failure is a first one.
    pub(crate) const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Whether the failure that was just counted is worth a line in the log: the first, second, fourth, eighth and so on.
    pub(crate) const fn is_worth_a_line(&self) -> bool {
        self.failures.is_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_start_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(100));
        let delays: Vec<_> = (0..6).map(|_| backoff.failed().as_millis()).collect();
        assert_eq!(delays, [10, 20, 40, 80, 100, 100]);
        backoff.succeeded();
        assert_eq!(backoff.failed(), Duration::from_millis(10));
    }

    #[test]
    fn fewer_and_fewer_failures_are_worth_a_line() {
        let mut backoff = Backoff::new(Duration::ZERO, Duration::ZERO);
        let mut told = Vec::new();
        for n in 1..=20 {
            backoff.failed();
            if backoff.is_worth_a_line() {
                told.push(n);
            }
        }
        assert_eq!(told, [1, 2, 4, 8, 16]);
    }
}
