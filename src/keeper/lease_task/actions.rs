//! What a lease's task does for its machine, and whom it tells.

use std::time::Duration;

use super::{Assignment, LeaseTask, TakenRow};
use crate::keeper::desk::{GiveBack, Stage};
use crate::keeper::event_log;
use crate::keeper::machine::Machine;
use crate::keeper::requests::Purpose;
use crate::keeper::terms::Terms;
use crate::keeper::trail::Step;
use crate::keeper::wording::{self, millis};
use crate::protocol::{
    Acquired, Action, Contender, Failure, FencingToken, Holder, LossReason, OwnerId, Request, RequestId, Verdict,
};
use crate::session::{FromKeeper, OnCrash};

/// How many attempts of one acquisition the home is to remember, the newest ones: as many as the contender does, and the
/// one under way.
const MOST_NOTED: usize = 91;

impl LeaseTask {
    /// Does what the machine wants done, until it wants nothing more.
    pub(super) fn pump(&mut self) {
        self.tell_standing();
        while let Some(action) = self.machine.poll_action() {
            if let Some(step) = step(&action) {
                self.trail.note(self.to.shared.now().mono, step);
            }
            match action {
                Action::Send { id, request, timeout } => self.send(id, request, timeout),
                Action::Acquired { acquired, unwanted } => self.hold(acquired, unwanted),
                Action::Verdict(verdict) if self.may_contend_again(&verdict) => self.contend_again(),
                Action::Verdict(verdict) => self.tell_verdict(verdict),
                Action::Granted { token, valid_for } => self.grant(token, valid_for),
                Action::AtRisk => self.tell(Stage::Granted, &FromKeeper::AtRisk { id: self.to.id }),
                Action::Secured => self.tell(Stage::Granted, &FromKeeper::Secured { id: self.to.id }),
                Action::Lost(reason) => self.lose(reason),
                Action::Parked => self.parked(),
                Action::Released(result) => self.released(result),
            }
            self.tell_standing();
        }
    }

    fn send(&mut self, id: RequestId, request: Request, timeout: Duration) {
        let leaving = self.leaving(&request);
        let Assignment { shared, peer, terms, .. } = &self.to;
        let purpose = Purpose::of(&request);
        if let Purpose::Attempt(owner) = purpose {
            shared.home.attempt(*peer, &terms.lock, owner, terms.on_crash == OnCrash::Expire);
            self.noted.push(owner);
            if self.noted.len() > MOST_NOTED {
                shared.home.settled(self.noted.remove(0));
            }
        }
        let flight = if purpose == Purpose::Release { self.debt.take() } else { None };
        match leaving {
            Some(write) => self.requests.send_leaving(shared, &terms.lock, id, write, timeout, flight),
            None => self.requests.send(shared, &terms.lock, id, request, timeout, flight),
        }
    }

    fn hold(&mut self, acquired: Acquired, unwanted: bool) {
        if let Machine::Contending(contender) = &self.machine {
            self.unanswered = contender.unknown().to_vec();
        }
        self.row = Some(TakenRow {
            owner: acquired.owner,
            version: acquired.version.counter(),
            acquired_at: acquired.sent.wall.as_millis(),
            attempts: acquired.attempts,
            took_over: acquired.took_over,
            granted_at: None,
            still_held: None,
            lost: false,
            freed: false,
            told_validity: None,
            heard: None,
        });
        let Terms { settings, renewals, budget, .. } = &self.to.terms;
        let mut holder = Holder::new(*settings, acquired, *renewals, budget.latest);
        self.to.shared.with_context(|cx| holder.start(cx, unwanted));
        self.machine = Machine::Holding(Box::new(holder));
    }

    /// Whether a row that was taken was lost again before the grant, as after a pause of this process, with time left to
    /// wait. What else fails a grant comes too late for that, or would fail again; and then the row is yet to be freed, and
    /// a renewal may be under way.
    fn may_contend_again(&self, verdict: &Verdict) -> bool {
        let transient = matches!(verdict, Verdict::Failed(failure) if failure.kind.is_transient());
        let lost = matches!(&self.machine, Machine::Holding(holder) if holder.is_finished());
        transient && lost && self.order.is_none() && self.to.shared.now().mono < self.to.terms.budget.stop
    }

    /// Begins anew, within the same budget. Nothing of the lost row is left to be freed; what was sent before it without an
    /// answer may land now, or later.
    fn contend_again(&mut self) {
        if let Some(row) = self.row.take() {
            tracing::info!(key = %self.to.terms.lock.key, owner = %row.owner, "the row was lost before the grant: contending again");
            self.settle(row.owner);
            self.count_undone();
        }
        self.refused = false;
        let Terms { settings, subject, budget, epoch, .. } = &self.to.terms;
        let contender = Contender::new(*settings, subject.clone(), *budget, *epoch, self.to.shared.now());
        let mut contender = contender.replacing(std::mem::take(&mut self.unanswered));
        self.to.shared.with_context(|cx| contender.start(cx));
        self.machine = Machine::Contending(Box::new(contender));
    }

    fn grant(&mut self, token: Option<FencingToken>, valid_for: Duration) {
        let now = self.to.shared.now().mono;
        let (waited_ms, queued_ms) = (millis(now.since(self.asked)), millis(self.queued));
        let Some(row) = &mut self.row else { return };
        row.version = token.map(FencingToken::get);
        let (owner, attempts, took_over) = (row.owner, row.attempts, row.took_over);
        let (id, valid_for_ms) = (self.to.id, millis(valid_for));
        let granted = FromKeeper::Granted { id, owner, token, valid_for_ms, waited_ms, attempts, queued_ms };
        if !self.to.desk.advance(Stage::Granted, || self.to.outbox.tell(&granted)) {
            // The order to give it back is there already: no work was ever begun under it.
            return;
        }
        row.granted_at = Some(now);
        row.still_held = Some(self.to.tally.hold());
        event_log::acquired(&self.to.terms.lock, owner, token, (waited_ms, queued_ms), attempts, took_over);
        self.to.counts.granted(waited_ms);
        self.to.tally.waited(now.since(self.asked));
        self.to.tally.counts.granted.add_one();
        if took_over {
            self.to.tally.counts.takeovers.add_one();
        }
        self.hear_progress();
    }

    fn tell_verdict(&mut self, verdict: Verdict) {
        let waited = self.to.shared.now().mono.since(self.asked);
        let waited_ms = millis(waited);
        event_log::verdict(&self.to.terms.lock, &verdict, waited_ms, &self.trail);
        match &verdict {
            Verdict::Busy(_) => {
                self.to.tally.counts.busy.add_one();
                self.to.tally.waited(waited);
            }
            Verdict::Failed(_) | Verdict::Unusable(_) | Verdict::TooLate => self.to.tally.counts.failed.add_one(),
            Verdict::Cancelled => {}
        }
        self.tell_those_behind_of_failure(&verdict);
        self.tell(Stage::Over, &wording::verdict(self.to.id, verdict, &self.to.terms.lock.table.name));
        self.leave_line_soon();
    }

    fn lose(&mut self, reason: LossReason) {
        let Some(row) = &mut self.row else { return };
        row.lost = true;
        self.place = None;
        let owner = row.owner;
        row.still_held = None;
        let counts = &self.to.tally.counts;
        if let Some(at) = row.granted_at {
            let now = self.to.shared.now().mono;
            let after_work = self.to.terms.renewals.covered_by.is_some_and(|end_of_work| now >= end_of_work);
            let count = if after_work && reason == LossReason::Expired { &counts.expired } else { &counts.lost };
            count.add_one();
            self.to.tally.held(now.since(at));
        }
        let reason = match (reason, &self.not_renewed) {
            (LossReason::Expired, Some(failure)) => wording::cut(format!("{reason}, the last one: {failure}")),
            _ => reason.to_string(),
        };
        event_log::lost(&self.to.terms.lock, owner, row.version, &reason, &self.trail);
        self.tell_lost(owner, &reason);
        self.end_states(&reason);
        self.settle(owner);
    }

    pub(super) fn tell_lost(&self, owner: OwnerId, reason: &str) {
        self.to.shared.standings.lose(owner, reason.to_owned());
        self.tell(Stage::Over, &FromKeeper::Lost { id: self.to.id, reason: reason.to_owned() });
    }

    fn parked(&mut self) {
        let Some(row) = &self.row else { return };
        let held = row.granted_at.map(|at| self.to.shared.now().mono.since(at));
        event_log::parked(&self.to.terms.lock, row.owner, row.version, millis(held.unwrap_or_default()));
        self.to.tally.counts.parked.add_one();
        self.not_freed = None;
    }

    fn released(&mut self, result: Result<(), Failure>) {
        let Some(row) = &self.row else { return };
        let lock = &self.to.terms.lock;
        let reason = self.order.map_or("unwanted", GiveBack::as_str);
        match result {
            Ok(()) if row.lost && !row.freed => {}
            Ok(()) => {
                let held = row.granted_at.map(|at| self.to.shared.now().mono.since(at));
                event_log::released(lock, row.owner, row.version, millis(held.unwrap_or_default()), reason);
                self.to.tally.counts.released.add_one();
                self.not_freed = None;
            }
            Err(failure) => {
                event_log::not_released(lock, row.owner, row.version, reason, &failure);
                self.to.tally.counts.release_failures.add_one();
                self.not_freed = Some(failure);
            }
        }
    }

    /// Tells the session, unless it has already said that it no longer wants to know.
    pub(super) fn tell(&self, stage: Stage, line: &FromKeeper) {
        let _told = self.to.desk.advance(stage, || self.to.outbox.tell(line));
    }

    /// Notes how long the lease may be believed, for whoever checks.
    fn tell_standing(&mut self) {
        let Machine::Holding(holder) = &self.machine else { return };
        if let (Some(row), Some(validity)) = (&mut self.row, holder.validity())
            && row.told_validity != Some(validity)
        {
            row.told_validity = Some(validity);
            self.to.shared.standings.hold(row.owner, validity);
            self.tell_hold(validity);
        }
    }
}

/// What an action leaves in the trail.
fn step(action: &Action) -> Option<Step> {
    Some(match action {
        Action::Send { request, .. } => Step::sent(request),
        Action::Granted { .. } => Step::Granted,
        Action::AtRisk => Step::AtRisk,
        Action::Secured => Step::Secured,
        _ => return None,
    })
}
