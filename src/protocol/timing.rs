//! How long things take, where both machines agree on it.

use std::time::Duration;

/// A contender takes a lease over by server time this long after its `expires_at`; a holder trusts its first
/// `expires_at` as long as server time is at most [`HOLDER_GRACE`] past it. Between the two lies a second, by which the
/// service's own clocks may disagree.
pub(super) const CONTENDER_GRACE: Duration = Duration::from_secs(5);
/// See [`CONTENDER_GRACE`].
pub(super) const HOLDER_GRACE: Duration = Duration::from_secs(4);

/// The longest that a single request may take.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest, while the client has no connection yet.
const COLD_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// No request is given less than this, whatever is left.
const SHORTEST_REQUEST_TIMEOUT: Duration = Duration::from_millis(10);

/// A request's timeout: `usual`, but no more than what is left, and enough to be of use.
pub(super) fn request_timeout(usual: Duration, left: Duration, client_is_warm: bool) -> Duration {
    let least = if client_is_warm { SHORTEST_REQUEST_TIMEOUT } else { COLD_REQUEST_TIMEOUT };
    usual.min(left).max(least)
}

/// The usual timeout of all requests but attempts.
pub(super) fn usual_timeout(lease: Duration) -> Duration {
    REQUEST_TIMEOUT.min(lease / 3)
}

/// No less real time than this has passed when a clock says `elapsed`: it may be 5 % fast.
pub(super) fn at_least(elapsed: Duration) -> Duration {
    elapsed.saturating_sub(elapsed / 21 + ROUNDING)
}

/// After this much by a clock, at least `real` time has passed by [`at_least`].
pub(super) fn shown_until_at_least(real: Duration) -> Duration {
    if real.is_zero() { Duration::ZERO } else { real.saturating_add(real / 20 + ROUNDING * 3) }
}

/// No more real time than this has passed when a clock says `elapsed`: it may be 5 % slow.
pub(super) fn at_most(elapsed: Duration) -> Duration {
    elapsed.saturating_add(elapsed / 19 + ROUNDING)
}

/// What a clock shows at least once `real` time has passed: it may be 5 % slow.
pub(super) fn shown_after(real: Duration) -> Duration {
    real.saturating_sub(real / 20 + ROUNDING)
}

const ROUNDING: Duration = Duration::from_nanos(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gets_what_is_left_but_never_too_little() {
        let (usual, ms) = (Duration::from_secs(2), Duration::from_millis);
        assert_eq!(request_timeout(usual, Duration::MAX, true), usual);
        assert_eq!(request_timeout(usual, ms(300), true), ms(300));
        assert_eq!(request_timeout(usual, ms(0), true), ms(10));
        assert_eq!(request_timeout(usual, ms(300), false), ms(1_000));
    }

    #[test]
    fn real_time_lies_between_the_bounds_for_clocks_that_are_5_percent_off() {
        let real = Duration::from_secs(100);
        assert!(at_least(Duration::from_secs(105)) <= real);
        assert!(at_most(Duration::from_secs(95)) >= real);
        assert!(shown_after(real) <= Duration::from_secs(95));
    }

    #[test]
    fn who_sleeps_until_real_time_has_passed_wakes_neither_before_it_nor_much_later() {
        assert_eq!(shown_until_at_least(Duration::ZERO), Duration::ZERO);
        for nanos in [1, 2, 19, 20, 21, 22, 1_000_000, 999_999_999, 20_000_000_017] {
            let real = Duration::from_nanos(nanos);
            // Elapsed time that is counted already does not add up to less.
            for counted in [0, 1, 20, 1_000_000_007].map(Duration::from_nanos) {
                let slept = shown_until_at_least(real);
                let passed = at_least(counted + slept) - at_least(counted);
                assert!(passed >= real && passed <= real + Duration::from_nanos(5), "{passed:?} for {real:?}");
            }
        }
    }
}
