//! What follows from an answer: the row taken, another attempt, a later look, or the end.

use super::{Attempt, Contender, Kind, Next};
use crate::clock::Now;
use crate::protocol::{Acquired, Action, Context, Failure, Mutant, Outcome, Request, Row, Sample, Verdict};

/// How many attempts of unknown outcome are remembered: DynamoDB takes at most 100 operands in an `IN` list. Should an older
/// one hold the row after all, its lease is waited for like anybody's.
pub(super) const MOST_UNKNOWN: usize = 90;

impl Contender {
    pub(super) fn handle_attempt(
        &mut self,
        cx: &mut Context<'_>,
        sent: Now,
        attempt: Attempt,
        sample: Option<Sample>,
        outcome: Outcome,
    ) {
        #[cfg(feature = "simulation")]
        self.forget_shared_attempt(cx, attempt, &outcome);
        match outcome {
            Outcome::Written { version, hints } => {
                cx.observations.forget(&self.subject);
                let acquired = Acquired {
                    owner: attempt.owner,
                    version,
                    sent: if self.settings.rules.broken(Mutant::ValidityFromAnswer) { cx.now } else { sent },
                    expires_at: attempt.expires_at,
                    sample,
                    epoch: self.epoch,
                    waited: cx.now.mono.since(self.began.mono),
                    attempts: self.writes,
                    took_over: attempt.took_over,
                    usual_hold: hints.hold,
                };
                let unwanted = self.is_over() || self.is_past_latest(cx.now);
                if unwanted {
                    self.tell(Verdict::TooLate);
                }
                // From here on the holder speaks.
                self.told = true;
                self.actions.push_back(Action::Acquired { acquired, unwanted });
                self.finish(cx);
            }
            Outcome::Refused { row } => self.handle_row(cx, sent, row, attempt.took_over),
            Outcome::Failed(failure) => {
                if failure.kind.may_have_landed() && !self.unknown.contains(&attempt.owner) {
                    if self.unknown.len() >= MOST_UNKNOWN {
                        self.unknown.remove(0);
                    }
                    self.unknown.push(attempt.owner);
                }
                self.handle_failure(cx, failure, Next::Attempt);
            }
            Outcome::Read { .. } | Outcome::Numbered { .. } => self.schedule(cx, Next::Attempt),
        }
    }

    /// A look at the row. `may_be_free` is false after a refused acquire, which a free row of this format can't refuse:
    /// should one do so all the same, it is not asked again at once.
    pub(super) fn handle_row(&mut self, cx: &mut Context<'_>, sent: Now, row: Row, may_be_free: bool) {
        if self.is_over() {
            return self.give_up(cx, Verdict::Cancelled);
        }
        match row {
            Row::Absent | Row::Free { .. } => {
                self.held = None;
                self.last_failure = None;
                cx.observations.forget(&self.subject);
                if may_be_free {
                    self.go_for_free(cx, &row);
                } else {
                    self.schedule(cx, Next::Attempt);
                }
            }
            Row::Held(held) if self.unknown.contains(&held.owner) => {
                // An attempt of mine landed unseen: written over at once, not waited for.
                self.held = None;
                self.act(cx, Next::Attempt);
            }
            Row::Held(held) => {
                let since = if self.settings.rules.broken(Mutant::ObservationFromSend) { sent } else { cx.now };
                cx.observations.record(&self.subject, held.owner, held.version, held.lease, since);
                self.saw_held(&held, cx.now);
                self.held = Some(held);
                self.last_failure = None;
                // The first refusal may show a lease that is over: taking it over at once is still the one try that
                // `max_wait` = 0 asks for, since nothing is waited for.
                let in_time = self.writes == 1 || cx.now.mono < self.budget.stop;
                if in_time && !self.is_past_latest(cx.now) && self.may_take_over(cx) {
                    self.send_takeover(cx);
                } else {
                    self.wait(cx);
                }
            }
            Row::Unusable(unusable) => self.give_up(cx, Verdict::Unusable(unusable)),
        }
    }

    pub(super) fn handle_failure(&mut self, cx: &mut Context<'_>, failure: Failure, then: Next) {
        if self.is_over() {
            return self.give_up(cx, Verdict::Cancelled);
        }
        if !failure.kind.is_transient() {
            return self.give_up(cx, Verdict::Failed(failure));
        }
        self.last_failure = Some(failure);
        self.schedule(cx, then);
    }

    /// Sends what is due, where the budget allows; a cleanup has none. A takeover goes first wherever it is allowed.
    pub(super) fn act(&mut self, cx: &mut Context<'_>, next: Next) {
        if next == Next::Cleanup {
            self.send_cleanup(cx);
        } else if self.is_past_latest(cx.now) || cx.now.mono >= self.budget.stop {
            let verdict = self.verdict_at_end(cx);
            self.give_up(cx, verdict);
        } else if self.may_take_over(cx) {
            self.send_takeover(cx);
        } else if next == Next::Attempt {
            self.send_acquire(cx);
        } else {
            self.send(cx, Kind::Look, Request::Read);
        }
    }

    #[cfg(feature = "simulation")]
    fn forget_shared_attempt(&self, cx: &mut Context<'_>, attempt: Attempt, outcome: &Outcome) {
        let unknown = matches!(outcome, Outcome::Failed(failure) if failure.kind.may_have_landed());
        if self.settings.rules.broken(Mutant::UnknownAttemptsPerKeeper) && !unknown {
            cx.observations.shared_attempts(&self.subject).retain(|owner| *owner != attempt.owner);
        }
    }
}
