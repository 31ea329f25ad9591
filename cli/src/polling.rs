//! How often a waiter looks at a held row: what the library does by default, by tickets, reckoned for the one that is next.

use std::time::Duration;

/// Who is next looks after an eighth of the time for which it has seen the holder, within these bounds.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(100);

/// How many looks a wait takes that ends with the hold: seldom while the work that usually takes `work` goes on, then ever
/// more seldom. Those further back in the queue look less often.
pub(crate) fn looks(work: Duration, wait: Duration) -> u64 {
    let (mut at, mut looks) = (Duration::ZERO, 0_u64);
    loop {
        let mut delay = (at / 8).clamp(SHORTEST, LONGEST);
        if at < work {
            delay = delay.max((work / 8).min(LONGEST));
        }
        if at + delay > wait {
            return looks;
        }
        if delay == LONGEST {
            // From here on all are as long.
            let left = (wait - at).as_millis() / LONGEST.as_millis();
            return looks.saturating_add(u64::try_from(left).unwrap_or(u64::MAX));
        }
        at += delay;
        looks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_follow_the_default_polling() {
        let ms = Duration::from_millis;
        for (work_ms, wait_ms, expected) in [
            (1_000, 0, 0),
            (1_000, 99, 0),
            (1_000, 100, 1),
            (1_000, 500, 5),
            (1_000, 60_000, 600),
            (80, 79, 7),
            (80, 80, 8),
            (80, 90, 9),
            (0, 2, 1),
            (0, 16, 8),
        ] {
            assert_eq!(looks(ms(work_ms), ms(wait_ms)), expected, "{work_ms} ms of work, {wait_ms} ms of waiting");
        }
        assert!(looks(ms(u64::MAX), ms(u64::MAX)) > 0);
    }
}
