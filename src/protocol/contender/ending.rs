//! How an acquisition ends without a lease: the verdict, and the cleanup before it.

use super::{Contender, Kind, Next};
use crate::clock::Now;
use crate::protocol::{Action, Busy, Context, Failure, FailureKind, Outcome, Request, Verdict};

/// How often the cleanup is sent at most. What is still there then costs others one lease.
const MOST_CLEANUPS: u32 = 3;

impl Contender {
    /// Ends the acquisition: a release for the attempts that may have landed, its answer, then the verdict. Where there
    /// is no answer, it is sent again, but nobody waits for that.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_>, verdict: Verdict) {
        self.next = None;
        if self.unknown.is_empty() {
            self.tell(verdict);
            self.finish(cx);
            return;
        }
        if !self.told {
            self.pending = Some(verdict);
        }
        self.leftover = std::mem::take(&mut self.unknown);
        self.send_cleanup(cx);
    }

    pub(super) fn send_cleanup(&mut self, cx: &mut Context<'_>) {
        self.cleanups += 1;
        // What landed unseen may have landed on any version, so no moment is known that lies safely after it.
        self.send(cx, Kind::Cleanup, Request::Release { owners: self.leftover.clone(), ttl: None, hold: None });
    }

    pub(super) fn handle_cleanup(&mut self, cx: &mut Context<'_>, outcome: &Outcome) {
        let verdict = self.pending.take().unwrap_or(Verdict::Cancelled);
        self.tell(verdict);
        let again = matches!(outcome, Outcome::Failed(failure) if failure.kind.is_transient());
        if again && self.cleanups < MOST_CLEANUPS {
            let delay = self.settings.polling.backoff().delay(self.cleanups, cx.entropy.fraction());
            self.next = Some((cx.now.mono + delay, Next::Cleanup));
        } else {
            self.finish(cx);
        }
    }

    /// What to tell when the budget is used up: who holds it if anybody was seen to, else why nobody could be asked. A
    /// holder whose lease is over is not what stood in the way.
    #[must_use]
    pub fn verdict_at_end(&self, cx: &Context<'_>) -> Verdict {
        if self.held.is_none() || self.may_take_over(cx) {
            if let Some(failure) = &self.last_failure {
                return Verdict::Failed(failure.clone());
            }
            if self.writes == 1 && self.in_flight.is_some() {
                let message = "no answer before the latest moment at which the work could have begun";
                return Verdict::Failed(Failure::new(FailureKind::Timeout, message));
            }
        }
        Verdict::Busy(Busy {
            holder: self.held.as_ref().and_then(|held| held.holder.clone()),
            waited: cx.now.mono.since(self.began.mono),
            attempts: self.writes,
            retry_after: self.until_takeover(cx).unwrap_or_default(),
        })
    }

    pub(super) fn tell(&mut self, verdict: Verdict) {
        if !self.told {
            self.told = true;
            self.actions.push_back(Action::Verdict(verdict));
        }
    }

    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if !self.finished {
            self.finished = true;
            cx.observations.unpin(&self.subject);
        }
    }

    /// Whether the verdict is told and only cleanup is left.
    pub(super) const fn is_over(&self) -> bool {
        self.told || self.cancelled
    }

    pub(super) fn is_past_latest(&self, now: Now) -> bool {
        self.budget.latest.is_some_and(|latest| now.mono >= latest)
    }
}
