//! Renewals, what their answers mean, and how a lease is lost.

use std::time::Duration;

use super::validity::granularity;
use super::{Holder, Kind, Phase, Validity};
use crate::clock::{Mono, Now, Wall};
use crate::protocol::row::rounded_up;
use crate::protocol::{
    Action, Context, Failure, FailureKind, LossReason, Mutant, Outcome, OwnerId, Request, Row, Sample, Settings,
    Verdict, Version,
};

impl Holder {
    pub(super) fn renew(&mut self, cx: &mut Context<'_>) {
        let sample = self.server_sample(cx);
        let expires_at = sample.map(|sample| expiry(sample, cx.now, self.settings.lease, &self.settings));
        let next = self.version.next(cx.entropy);
        let raised = if self.phase == Phase::Confirming { self.raised(cx) } else { None };
        // Only counters are ever raised, and of two the higher one is the greater.
        let new_version = raised.map_or(next, |raised| Version::Counter(raised).max(next));
        let request = Request::Renew { owner: self.acquired.owner, version: self.version, new_version, expires_at };
        self.send(cx, Kind::Renewal { new_version }, request);
    }

    /// An answer that says what server time is at most: within this lease, to a request sent since the session began.
    pub(super) fn server_sample(&self, cx: &Context<'_>) -> Option<Sample> {
        if !self.settings.server_time {
            return None;
        }
        let sample = if self.settings.rules.broken(Mutant::AnswerFromBeforeFreeze) {
            cx.server_time.newest()
        } else {
            cx.server_time.since(self.acquired.epoch)
        };
        sample.filter(|sample| cx.now.larger_elapsed(sample.sent) <= self.settings.lease)
    }

    pub(super) fn handle_renewal(&mut self, cx: &mut Context<'_>, sent: Now, new_version: Version, outcome: Outcome) {
        match outcome {
            Outcome::Written { .. } => {
                let from = if self.settings.rules.broken(Mutant::ValidityFromAnswer) { cx.now } else { sent };
                self.extend(from, new_version);
                if self.phase == Phase::Confirming {
                    self.confirmed(cx);
                } else if std::mem::take(&mut self.at_risk) {
                    self.actions.push_back(Action::Secured);
                }
            }
            Outcome::Refused { row: Row::Held(held) }
                if held.owner == self.acquired.owner && held.version != self.version =>
            {
                // My own late write. Its version is taken over so that the next one fits; when it was sent it gave no
                // answer, so it gives no validity either.
                self.version = held.version;
                if self.settings.rules.broken(Mutant::AdoptionExtendsValidity) {
                    self.extend(cx.now, held.version);
                }
                self.next = cx.now.mono;
                self.handle_wakeup(cx);
            }
            Outcome::Refused { row: Row::Unusable(unusable) } if self.phase == Phase::Confirming => {
                self.actions.push_back(Action::Verdict(Verdict::Unusable(unusable)));
                self.end(Ok(()));
            }
            Outcome::Refused { row } => self.lose(loss(&row, self.acquired.owner)),
            Outcome::Failed(failure) => {
                let hopeless = !failure.kind.is_transient();
                self.last_failure = Some(failure);
                if self.phase == Phase::Confirming && hopeless {
                    return self.fail_grant(cx);
                }
                let delay = match self.phase {
                    Phase::Confirming => self.retry_delay(cx),
                    _ => (self.settings.lease / 12).mul_f64(0.8 + 0.4 * cx.entropy.fraction()),
                };
                self.next = cx.now.mono + delay;
            }
            Outcome::Read { .. } | Outcome::Numbered { .. } => self.next = cx.now.mono + self.settings.lease / 12,
        }
    }

    /// Only an answered success extends validity, from before it was sent.
    pub(super) fn extend(&mut self, from: Now, version: Version) {
        self.version = version;
        self.retries = 0;
        self.last_failure = None;
        self.validity = Validity::renewed(&self.settings, from);
        self.next = from.mono + self.settings.lease / 3;
    }

    pub(super) fn renewal_wanted(&self, now: Now) -> bool {
        let end = now.mono + self.validity.left(now);
        let covered = self.renewals.covered_by.is_some_and(|end_of_work| end >= end_of_work);
        !covered && now.mono < self.renewals.until
    }

    /// When a third of the validity is left; where the work is over before that, not before it is over.
    pub(super) fn risk_at(&self, now: Now) -> Mono {
        let left = self.validity.left(now);
        let third = now.mono + left.saturating_sub(self.validity.length() / 3);
        match self.renewals.covered_by {
            Some(end_of_work) if now.mono + left >= end_of_work => third.max(end_of_work),
            _ => third,
        }
    }

    pub(super) fn tell_risk(&mut self, now: Now) {
        if !self.at_risk && now.mono >= self.risk_at(now) {
            self.at_risk = true;
            self.actions.push_back(Action::AtRisk);
        }
    }

    /// A granted lease whose validity is over is lost, for good.
    pub(super) fn check(&mut self, now: Now) {
        if self.phase == Phase::Held && self.validity.left(now).is_zero() {
            let reason = if now.mono >= self.renewals.until { self.renewals.then } else { LossReason::Expired };
            self.lose(reason);
        }
    }

    /// What somebody else's request found in place of this lease's row. It was not this owner's then, so it never is again.
    pub fn handle_found(&mut self, row: &Row) {
        if self.phase == Phase::Held {
            self.lose(loss(row, self.acquired.owner));
        }
    }

    fn lose(&mut self, reason: LossReason) {
        if self.phase == Phase::Confirming {
            let message = format!("the row was lost again before the lease could be given out: {reason}");
            self.actions.push_back(Action::Verdict(Verdict::Failed(Failure::new(FailureKind::Timeout, message))));
            self.end(Ok(()));
            return;
        }
        if !self.at_risk {
            self.at_risk = true;
            self.actions.push_back(Action::AtRisk);
        }
        let row_may_be_mine = matches!(reason, LossReason::Expired | LossReason::MaxHold | LossReason::MaxSilence);
        self.phase = Phase::Lost { row_may_be_mine };
        if !self.may_revive() {
            self.in_flight = None;
        }
        self.actions.push_back(Action::Lost(reason));
    }

    pub(super) fn may_revive(&self) -> bool {
        self.settings.rules.broken(Mutant::LossRevived)
    }

    /// How soon a request that is not a renewal of a granted lease is sent again.
    pub(super) fn retry_delay(&mut self, cx: &mut Context<'_>) -> Duration {
        const LONGEST: Duration = Duration::from_millis(500);
        let delay = self.settings.polling.backoff().delay(self.retries, cx.entropy.fraction());
        self.retries = self.retries.saturating_add(1);
        delay.min(LONGEST).min(self.settings.lease / 12)
    }
}

/// When a lease that is written now ends by server time, at the latest that this may be.
pub(super) fn expiry(sample: Sample, now: Now, lease: Duration, settings: &Settings) -> Wall {
    rounded_up(sample.upper(now, granularity(settings)) + lease)
}

/// What a refusal by this row means to its former owner.
fn loss(row: &Row, me: OwnerId) -> LossReason {
    match row {
        Row::Absent => LossReason::Deleted,
        Row::Free { .. } => LossReason::Freed,
        Row::Held(held) if held.owner == me => LossReason::Overwritten,
        Row::Held(held) => LossReason::Stolen { by: held.owner },
        Row::Unusable(_) => LossReason::Overwritten,
    }
}
