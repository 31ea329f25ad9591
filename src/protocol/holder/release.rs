//! The row freed.

use super::{Holder, Kind, Phase};
use crate::clock::Now;
use crate::protocol::row::free_until;
use crate::protocol::{Action, Context, Failure, FailureKind, Outcome, Request};

impl Holder {
    pub(super) fn free(&mut self, cx: &mut Context<'_>) {
        self.phase = Phase::Releasing;
        self.retries = 0;
        // A renewal in flight need not be awaited: once the owner is gone it is refused.
        self.in_flight = None;
        self.send_release(cx);
    }

    pub(super) fn send_release(&mut self, cx: &mut Context<'_>) {
        let stays = !self.settings.format.abilities().release_deletes;
        let ttl = self.version.counter().filter(|_| stays).map(|version| free_until(cx.now, version));
        let request = Request::Release { owners: vec![self.acquired.owner], ttl, hold: self.tells };
        self.send(cx, Kind::Release, request);
    }

    pub(super) fn handle_released(&mut self, cx: &mut Context<'_>, outcome: Outcome) {
        match outcome {
            Outcome::Failed(failure) if may_pass(failure.kind) && !self.lease_is_over(cx.now) => {
                self.next = cx.now.mono + self.retry_delay(cx);
            }
            Outcome::Failed(failure) => self.end(Err(failure)),
            // Refused after a grant: the row is not mine any more, and that is all a release is for.
            Outcome::Written { .. } | Outcome::Refused { .. } | Outcome::Read { .. } | Outcome::Numbered { .. } => {
                self.end(Ok(()));
            }
        }
    }

    /// After twice the lease anybody may have taken the row over; there is nothing left to free.
    pub(super) fn lease_is_over(&self, now: Now) -> bool {
        now.larger_elapsed(self.validity.anchor()) > self.settings.lease * 2
    }

    pub(super) fn end(&mut self, result: Result<(), Failure>) {
        self.phase = Phase::Ended;
        self.in_flight = None;
        self.actions.push_back(Action::Released(result));
    }
}

/// Whether it is worth asking again. Credentials that served for the acquisition have run out since, and are replaced.
pub(super) fn may_pass(kind: FailureKind) -> bool {
    kind.is_transient() || kind == FailureKind::Credentials
}
