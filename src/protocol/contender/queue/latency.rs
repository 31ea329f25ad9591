//! How long a request of this contender takes: a moving average of those that were answered.

use std::time::Duration;

/// What is assumed before the first answer.
const ASSUMED: Duration = Duration::from_millis(10);

/// Nothing is to be learnt from an answer that took longer: the process was frozen, or the store is not well.
const LONGEST: Duration = Duration::from_secs(1);

/// The average, which moves a quarter of the way with each answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Latency {
    smoothed: Option<Duration>,
    /// What there is rests on requests that also made the connection.
    cold: bool,
}

impl Latency {
    /// A request was answered after `took`; with `warm` it found a connection.
    pub(super) fn note(&mut self, took: Duration, warm: bool) {
        let took = took.min(LONGEST);
        match self.smoothed {
            Some(smoothed) if !self.cold && warm => self.smoothed = Some((smoothed * 3 + took) / 4),
            Some(_) if !warm => {}
            _ => (self.smoothed, self.cold) = (Some(took), !warm),
        }
    }

    pub(super) fn get(self) -> Duration {
        self.smoothed.unwrap_or(ASSUMED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::testing::ms;

    #[test]
    fn it_moves_a_quarter_of_the_way() {
        let mut latency = Latency::default();
        assert_eq!(latency.get(), ms(10));
        latency.note(ms(8), true);
        assert_eq!(latency.get(), ms(8));
        latency.note(ms(4), true);
        assert_eq!(latency.get(), ms(7));
        latency.note(ms(60_000), true);
        assert_eq!(latency.get(), (ms(7) * 3 + ms(1_000)) / 4, "a freeze counts for a second");
    }

    #[test]
    fn what_made_the_connection_serves_until_something_better_is_known() {
        let mut latency = Latency::default();
        latency.note(ms(80), false);
        assert_eq!(latency.get(), ms(80));
        latency.note(ms(6), true);
        assert_eq!(latency.get(), ms(6));
        latency.note(ms(80), false);
        assert_eq!(latency.get(), ms(6), "a new connection says nothing of the usual way");
    }
}
