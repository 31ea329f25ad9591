//! How much of an invocation's time one record gets.

use std::time::Duration;

/// How much is kept at the invocation's end, unless set, so that what is done is reported before Lambda ends everything.
const MARGIN: Duration = Duration::from_millis(500);
/// Of an invocation that is shorter than that serves, one in so many parts is kept.
const MARGIN_PART: u32 = 10;
/// One in so many parts of a record's share may at least be waited away, also where its work needs all of it.
const WAIT_PART: u32 = 5;

/// What is kept of the time that is left when an invocation begins.
pub(super) fn margin(set: Option<Duration>, left: Duration) -> Duration {
    set.unwrap_or_else(|| MARGIN.min(left / MARGIN_PART)).min(left)
}

/// How much of what is `left` a record gets that begins now: its wait for the key, and its work.
///
/// Every record still to be settled counts the same, and so many run at a time; `in_a_row` of them can only come one after
/// the other. A record gets what its work needs (`reserve`) for as long as there is so much, and a little to wait with:
/// that records are many must not mean that none of them can begin.
pub(super) fn share(
    left: Duration,
    reserve: Option<Duration>,
    unsettled: usize,
    at_a_time: usize,
    in_a_row: usize,
) -> Duration {
    let rounds = unsettled.div_ceil(at_a_time.max(1)).max(in_a_row).max(1);
    let share = left / u32::try_from(rounds).unwrap_or(u32::MAX);
    let needed = reserve.map_or(Duration::ZERO, |reserve| reserve.saturating_add(share / WAIT_PART));
    share.max(needed).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn time_is_divided_by_the_rounds_that_are_still_to_go() {
        assert_eq!(share(secs(30), None, 10, 10, 1), secs(30), "all at once");
        assert_eq!(share(secs(30), None, 11, 10, 1), secs(15), "two rounds");
        assert_eq!(share(secs(30), None, 10, 10, 5), secs(6), "five in a row");
        assert_eq!(share(secs(24), None, 4, 1, 1), secs(6), "what others left is shared again");
    }

    #[test]
    fn a_record_gets_what_its_work_needs_while_it_is_there() {
        assert_eq!(share(secs(30), Some(secs(5)), 30, 1, 1), Duration::from_millis(5_200));
        assert_eq!(share(secs(5), Some(secs(5)), 30, 1, 1), secs(5));
        assert_eq!(share(secs(30), Some(secs(5)), 3, 1, 1), secs(10), "more than it needs");
    }

    #[test]
    fn the_margin_is_half_a_second_or_a_tenth_of_little() {
        assert_eq!(margin(None, secs(30)), Duration::from_millis(500));
        assert_eq!(margin(None, secs(3)), Duration::from_millis(300));
        assert_eq!(margin(Some(secs(2)), secs(3)), secs(2));
        assert_eq!(margin(Some(secs(2)), secs(1)), secs(1));
    }
}
