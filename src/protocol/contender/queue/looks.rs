//! When the next look at a held row is due.
//!
//! Who is far from its turn looks seldom, but often enough that a wrong position costs little. Who is next looks when the
//! hold is about to end, and does so by the attempt itself where that is likely to meet a row that has just become free.

use std::time::Duration;

use super::{NextLook, Queue};
use crate::clock::Mono;
use crate::protocol::Mutant;

/// How long the work under a lease is taken to last where the row does not say.
const ASSUMED_HOLD: Duration = Duration::from_millis(25);

/// What a turn takes at least of its usual time: better a look too many than one that is late.
const EARLY: f64 = 0.85;

/// Nobody looks more seldom.
const LONGEST_FAR: Duration = Duration::from_secs(1);

/// Who is next looks no more often, and no more seldom.
const SHORTEST_NEXT: Duration = Duration::from_millis(2);
const LONGEST_NEXT: Duration = Duration::from_millis(100);

/// A hold may be much shorter than usual, so nobody relies on the usual one for longer than the plain schedule sleeps.
const LONGEST_BLIND: Duration = Duration::from_millis(500);

/// The last look is no longer before the end of the wait, however slow the store is.
const LONGEST_LAST: Duration = Duration::from_millis(25);

/// Nobody's turn is so long over that it looks more seldom than by this.
const MOST_OVERTAKEN: i64 = 16;

/// Nor more seldom than who is far: its place may be as wrong, and the row free meanwhile.
const LONGEST_OVERTAKEN: Duration = LONGEST_FAR;

impl Queue {
    /// The next look at a row that was just seen held; `None` without a ticket. `fraction` spreads those of several.
    pub(in crate::protocol::contender) fn next_look(&self, now: Mono, fraction: f64) -> Option<NextLook> {
        let position = self.position()?;
        Some(if position >= 2 { self.far(position, now, fraction) } else { self.next(position, now, fraction) })
    }

    /// How long before the end of the wait its last look is: long enough for the write after it.
    pub(in crate::protocol::contender) fn last_look(&self) -> Duration {
        (self.latency() * 3 / 2).clamp(SHORTEST_NEXT, LONGEST_LAST)
    }

    fn far(&self, position: i64, now: Mono, fraction: f64) -> NextLook {
        let turn = self.hold() + self.latency() * 2;
        let turns = f64::from(i32::try_from(position - 1).unwrap_or(i32::MAX));
        let expected = turn.mul_f64(EARLY * turns);
        let waited = self.refused.map_or(Duration::ZERO, |refused| now.since(refused));
        // The middle one bounds what a wrong position costs: in proportion to what was waited already.
        let bounded = expected.min(turn * 3 + waited * 2).min(LONGEST_FAR).max(self.patience(now));
        let after = if self.rules.broken(Mutant::SleepsPastTakeover) { expected } else { bounded };
        NextLook { after: after.mul_f64(0.9 + 0.2 * fraction), takes: false }
    }

    fn next(&self, position: i64, now: Mono, fraction: f64) -> NextLook {
        let (hold, latency) = (self.hold(), self.latency());
        let known = self.hints.hold.is_some();
        let age = self.age(now);
        let mut after = self.patience(now);
        if age < hold {
            let began_about_then = self.holder.and_then(|seen| seen.gap).is_some_and(|gap| gap < hold / 3);
            if known && began_about_then {
                // To be there as the release is: an attempt that comes a little early is refused, and the next one is late.
                after = after.max((hold - age).saturating_sub(latency / 2).min(LONGEST_BLIND));
            }
            after = after.max((hold / 8).min(LONGEST_NEXT));
        }
        if position <= 0 {
            let unbounded = self.rules.broken(Mutant::ServedRunsAhead);
            let (bound, longest) =
                if unbounded { (i64::MAX, Duration::MAX) } else { (MOST_OVERTAKEN, LONGEST_OVERTAKEN) };
            let more = u32::try_from(0_i64.saturating_sub(position).min(bound - 1)).unwrap_or(u32::MAX);
            after += after.saturating_mul(more).min(longest.saturating_sub(after)).mul_f64(fraction);
        }
        let soon_over = age + after <= (hold + latency) * 3 / 2;
        NextLook { after, takes: known && self.moved_on && hold <= latency * 8 && soon_over }
    }

    /// For how long the row has been seen with its present owner.
    fn age(&self, now: Mono) -> Duration {
        self.holder.map_or(Duration::ZERO, |seen| now.since(seen.since))
    }

    /// A hold that has lasted for long is likely to go on for long: nobody looks more often than every eighth of that.
    fn patience(&self, now: Mono) -> Duration {
        (self.age(now) / 8).clamp(SHORTEST_NEXT, LONGEST_NEXT)
    }

    fn hold(&self) -> Duration {
        self.hints.hold.unwrap_or(ASSUMED_HOLD)
    }
}
