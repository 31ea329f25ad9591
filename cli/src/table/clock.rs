//! This machine's clock against DynamoDB's, by the `Date` of an answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::finding::Finding;
use crate::text::span;

/// Beyond this AWS takes no signature.
const SIGNATURE: Duration = Duration::from_secs(5 * 60);
/// What a clock that is set by NTP never is off.
const NOTABLE: Duration = Duration::from_secs(2);

/// Between which bounds this machine's clock is ahead of the service's, in milliseconds; negative where it is behind. The
/// header has whole seconds, and the answer took its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    least: i64,
    most: i64,
}

impl Ahead {
    /// From the moments around a request and the `Date` of its answer in seconds.
    pub(super) fn of(sent: SystemTime, received: SystemTime, date: u64) -> Self {
        let ms = |time: SystemTime| {
            i64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
        };
        let date = i64::try_from(date.saturating_mul(1_000)).unwrap_or(i64::MAX);
        Self { least: ms(sent) - date - 1_000, most: ms(received) - date }
    }

    /// How far off it is at least.
    fn off(self) -> Duration {
        let off = if self.least > 0 { self.least } else { self.most.min(0).saturating_neg() };
        Duration::from_millis(off.unsigned_abs())
    }

    pub(super) fn finding(self) -> Finding {
        const CHECK: &str = "clock";
        let off = self.off();
        let way = if self.least > 0 { "ahead of" } else { "behind" };
        let told = format!("this machine's clock is at least {} {way} DynamoDB's", span(off));
        let advice = "set this machine's clock; a function's own clock is Lambda's business";
        if off >= SIGNATURE {
            Finding::problem(CHECK, told, format!("{advice}; AWS refuses requests that are 5 minutes off"))
        } else if off >= NOTABLE {
            Finding::warning(CHECK, told, advice)
        } else {
            Finding::ok(CHECK, "this machine's clock agrees with DynamoDB's `Date`, as far as whole seconds tell")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Status;

    fn at(ms: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(ms)
    }

    #[test]
    fn whole_seconds_and_a_slow_answer_are_no_difference() {
        for (sent, received) in [(10_000, 10_050), (10_900, 10_999), (10_990, 13_000), (9_000, 10_001)] {
            let ahead = Ahead::of(at(sent), at(received), 10);
            assert_eq!(ahead.off(), Duration::ZERO, "{ahead:?}");
            assert_eq!(ahead.finding().status, Status::Ok);
        }
    }

    #[test]
    fn a_clock_that_is_off_is_told_by_what_is_certain() {
        assert_eq!(Ahead::of(at(16_000), at(16_100), 10).off(), Duration::from_secs(5));
        assert_eq!(Ahead::of(at(3_900), at(4_000), 10).off(), Duration::from_secs(6));
        assert_eq!(Ahead::of(at(16_000), at(16_100), 10).finding().status, Status::Warning);
        assert_eq!(Ahead::of(at(1_000_000), at(1_000_100), 10).finding().status, Status::Problem);
        assert_eq!(Ahead::of(at(1_000), at(1_100), 400).finding().status, Status::Problem);
    }
}
