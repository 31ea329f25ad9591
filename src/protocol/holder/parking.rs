//! The row parked: the work is done, and the key stays held, for nobody, until a minimum is over.
//!
//! Under an owner of its own, so that nothing that is still under way for the one who held it meets the row any more: no
//! release after an end of file or from a journal, no renewal, no transaction.

use std::time::Duration;

use super::release::may_pass;
use super::renewal::expiry;
use super::{Holder, Kind, Phase};
use crate::protocol::{Action, Context, Mutant, Outcome, OwnerId, Request, Row};

/// The shortest lease that a row can say: where less is left of the minimum, the key stays held a little longer.
const SHORTEST: Duration = Duration::from_millis(100);

impl Holder {
    pub(super) fn begin_parking(&mut self, cx: &mut Context<'_>, minimum: Duration) {
        let same = self.settings.rules.broken(Mutant::ParkedUnderSameOwner);
        let parked = if same { self.acquired.owner } else { cx.entropy.owner() };
        self.phase = Phase::Parking { parked, minimum };
        self.retries = 0;
        // A renewal in flight need not be awaited: it comes too late, or parking is refused by what it wrote.
        self.in_flight = None;
        self.park(cx, parked, minimum);
    }

    /// Sends the write, for what is left of the minimum at this moment.
    pub(super) fn park(&mut self, cx: &mut Context<'_>, parked: OwnerId, minimum: Duration) {
        let left = minimum.saturating_sub(self.held_at_least(cx));
        if left.is_zero() {
            return self.free(cx);
        }
        let lease = self.lease_for(left);
        let request = Request::Park {
            owner: self.acquired.owner,
            version: self.version,
            parked,
            new_version: self.version.next(cx.entropy),
            at: self.acquired.sent.wall,
            lease,
            expires_at: self.server_sample(cx).map(|sample| expiry(sample, cx.now, lease, &self.settings)),
        };
        self.send(cx, Kind::Parking, request);
    }

    /// By the clock that shows less: more time may have passed, and then the key is held a little too long.
    fn held_at_least(&self, cx: &Context<'_>) -> Duration {
        if self.settings.rules.broken(Mutant::MinimumByLargerClock) {
            return cx.now.larger_elapsed(self.acquired.sent);
        }
        cx.now.smaller_elapsed(self.acquired.sent)
    }

    /// What others have to wait for until so much time has passed here: their clocks may be faster than this one, as
    /// those that wait for a lease to end may be.
    fn lease_for(&self, left: Duration) -> Duration {
        let stretched = if self.settings.rules.broken(Mutant::ParkedForBareRest) { left } else { left * 10 / 9 };
        // To the whole milliseconds that a row can hold.
        let millis = stretched.as_nanos().div_ceil(1_000_000);
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)).max(SHORTEST)
    }

    pub(super) fn handle_parked(&mut self, cx: &mut Context<'_>, parked: OwnerId, minimum: Duration, outcome: Outcome) {
        match outcome {
            Outcome::Written { .. } => self.end_parked(),
            // It had landed unseen.
            Outcome::Refused { row: Row::Held(held) } if held.owner == parked && parked != self.acquired.owner => {
                self.end_parked();
            }
            Outcome::Refused { row: Row::Held(held) }
                if held.owner == self.acquired.owner && held.version != self.version =>
            {
                // My own late renewal.
                self.version = held.version;
                self.park(cx, parked, minimum);
            }
            Outcome::Failed(failure)
                if failure.kind.may_have_landed() && self.settings.rules.broken(Mutant::UnknownParkingTakenForDone) =>
            {
                self.end_parked();
            }
            Outcome::Failed(failure) if may_pass(failure.kind) && !self.lease_is_over(cx.now) => {
                self.next = cx.now.mono + self.retry_delay(cx);
            }
            Outcome::Failed(failure) => self.end(Err(failure)),
            // The row is not mine any more: as with a release, there is nothing left to do.
            Outcome::Refused { .. } | Outcome::Read { .. } | Outcome::Numbered { .. } => self.end(Ok(())),
        }
    }

    fn end_parked(&mut self) {
        self.phase = Phase::Ended;
        self.in_flight = None;
        self.actions.push_back(Action::Parked);
    }
}
