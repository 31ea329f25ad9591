//! One lease's task: pumps its machine against the store, from the `acquire` line to the row free again.
//!
//! Each turn waits for one event (an answer, an order from the session, the keeper's end, the machine's wake-up, in this
//! order of preference: after a freeze all may be there at once), hands it to the machine, and does what that wants
//! done. The task outlives its session for as long as the way back takes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::desk::{Desk, GiveBack, Stage};
use super::event_log;
use super::home::Peer;
use super::machine::Machine;
use super::outbox::Outbox;
use super::requests::{Arrived, Purpose, Requests};
use super::shared::{Shared, set};
use super::terms::Terms;
use super::wording::{self, millis};
use crate::clock::Mono;
use crate::protocol::{
    Acquired, Action, Contender, Failure, FencingToken, Holder, LossReason, Outcome, OwnerId, Request, RequestId,
    Validity, Verdict,
};
use crate::session::{FailKind, FromKeeper, OnCrash};

/// What a handler is told whose lease the keeper gives back because its environment ends.
const SHUTTING_DOWN: &str = "the keeper is shutting down";

/// What a lease's task is given.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) shared: Arc<Shared>,
    pub(super) desk: Arc<Desk>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) id: u64,
    pub(super) peer: Peer,
    pub(super) terms: Terms,
}

/// The task.
#[derive(Debug)]
pub(super) struct LeaseTask {
    to: Assignment,
    machine: Machine,
    requests: Requests,
    closing: watch::Receiver<bool>,
    asked: Mono,
    /// The attempts that the home was told of and not yet that they are settled.
    noted: Vec<OwnerId>,
    row: Option<TakenRow>,
    order: Option<GiveBack>,
    /// Why the last release could not be carried out.
    not_freed: Option<Failure>,
    ended: bool,
}

/// A row that was taken.
#[derive(Debug)]
struct TakenRow {
    owner: OwnerId,
    version: u64,
    attempts: u32,
    took_over: bool,
    granted_at: Option<Mono>,
    lost: bool,
    /// A release changed the row, or its outcome is not known.
    freed: bool,
    told_validity: Option<Validity>,
}

enum Event {
    Answer(Arrived),
    Order(GiveBack),
    Closing,
    Wakeup,
}

impl LeaseTask {
    pub(super) fn new(to: Assignment) -> Self {
        let now = to.shared.now();
        let Terms { settings, subject, budget, epoch, .. } = &to.terms;
        let contender = Contender::new(*settings, subject.clone(), *budget, *epoch, now);
        Self {
            machine: Machine::Contending(Box::new(contender)),
            requests: Requests::default(),
            closing: to.shared.closing.subscribe(),
            asked: now.mono,
            noted: Vec::new(),
            row: None,
            order: None,
            not_freed: None,
            ended: false,
            to,
        }
    }

    /// Runs to the end: a verdict told and cleaned up after, or a row freed or left.
    pub(super) async fn run(mut self) {
        if let Machine::Contending(contender) = &mut self.machine {
            self.to.shared.with_context(|cx| contender.start(cx));
        }
        self.pump();
        while !self.machine.is_finished() {
            let Some(event) = self.next_event().await else {
                tracing::error!(key = %self.to.terms.lock.key, "a lease's machine waits for nothing; it is given up");
                break;
            };
            self.handle(event);
        }
        self.end();
        // A renewal that the release went past is still a write in flight.
        while self.requests.next().await.is_some() {}
    }

    async fn next_event(&mut self) -> Option<Event> {
        let wakeup = self.machine.poll_wakeup(self.to.shared.now());
        let unordered = self.order.is_none();
        tokio::select! {
            biased;
            Some(arrived) = self.requests.next(), if !self.requests.is_empty() => Some(Event::Answer(arrived)),
            order = self.to.desk.order(), if unordered => Some(Event::Order(order)),
            () = set(&mut self.closing), if unordered => Some(Event::Closing),
            () = tokio::time::sleep(wakeup.unwrap_or(Duration::MAX)), if wakeup.is_some() => Some(Event::Wakeup),
            else => None,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Answer(Arrived { id, purpose, answer, flight }) => {
                self.note(purpose, &answer.outcome);
                self.to.shared.with_context(|cx| self.machine.handle_answer(cx, id, answer));
                self.pump();
                // Only now, so that nobody sees a gap between an answer and the write that follows from it.
                drop(flight);
            }
            Event::Order(order) => {
                self.give_back(order);
                self.pump();
            }
            Event::Closing => self.close(),
            Event::Wakeup => {
                self.to.shared.with_context(|cx| self.machine.handle_wakeup(cx));
                self.pump();
            }
        }
    }

    /// Does what the machine wants done, until it wants nothing more.
    fn pump(&mut self) {
        self.tell_standing();
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Send { id, request, timeout } => self.send(id, request, timeout),
                Action::Acquired { acquired, unwanted } => self.hold(acquired, unwanted),
                Action::Verdict(verdict) => self.tell_verdict(verdict),
                Action::Granted { token, valid_for } => self.grant(token, valid_for),
                Action::AtRisk => self.tell(Stage::Granted, &FromKeeper::AtRisk { id: self.to.id }),
                Action::Secured => self.tell(Stage::Granted, &FromKeeper::Secured { id: self.to.id }),
                Action::Lost(reason) => self.lose(reason),
                Action::Released(result) => self.released(result),
            }
            self.tell_standing();
        }
    }

    fn send(&mut self, id: RequestId, request: Request, timeout: Duration) {
        let Assignment { shared, peer, terms, .. } = &self.to;
        if let Purpose::Attempt(owner) = Purpose::of(&request) {
            shared.home.attempt(*peer, &terms.lock, owner, terms.on_crash == OnCrash::Expire);
            self.noted.push(owner);
        }
        self.requests.send(shared, &terms.lock, id, request, timeout);
    }

    /// Counts an answer and keeps what the machine does not: which attempts are settled, and whether a row was freed.
    fn note(&mut self, purpose: Purpose, outcome: &Outcome) {
        let counters = &self.to.shared.counters;
        match (purpose, outcome) {
            (Purpose::Attempt(owner), Outcome::Refused { .. }) => self.settle(owner),
            (Purpose::Attempt(owner), Outcome::Failed(failure)) if !failure.kind.may_have_landed() => {
                self.settle(owner);
            }
            (Purpose::Renewal, Outcome::Written { .. }) => counters.renewals.add_one(),
            (Purpose::Renewal, Outcome::Failed(_)) => counters.renewals_failed.add_one(),
            (Purpose::Release, outcome) => {
                let failure = if let Outcome::Failed(failure) = outcome { Some(failure.clone()) } else { None };
                let may_be = failure.as_ref().is_some_and(|failure| failure.kind.may_have_landed());
                if let Some(row) = &mut self.row {
                    row.freed |= may_be || matches!(outcome, Outcome::Written { .. });
                }
                self.not_freed = failure;
            }
            _ => {}
        }
    }

    fn hold(&mut self, acquired: Acquired, unwanted: bool) {
        self.row = Some(TakenRow {
            owner: acquired.owner,
            version: acquired.version,
            attempts: acquired.attempts,
            took_over: acquired.took_over,
            granted_at: None,
            lost: false,
            freed: false,
            told_validity: None,
        });
        let Terms { settings, renewals, budget, .. } = &self.to.terms;
        let mut holder = Holder::new(*settings, acquired, *renewals, budget.latest);
        self.to.shared.with_context(|cx| holder.start(cx, unwanted));
        self.machine = Machine::Holding(Box::new(holder));
    }

    fn grant(&mut self, token: FencingToken, valid_for: Duration) {
        let now = self.to.shared.now().mono;
        let waited_ms = millis(now.since(self.asked));
        let Some(row) = &mut self.row else { return };
        row.granted_at = Some(now);
        row.version = token.get();
        let (owner, attempts, took_over) = (row.owner, row.attempts, row.took_over);
        event_log::acquired(&self.to.terms.lock, owner, token, waited_ms, attempts, took_over);
        self.to.shared.counters.granted.add_one();
        if took_over {
            self.to.shared.counters.takeovers.add_one();
        }
        let (id, valid_for_ms) = (self.to.id, millis(valid_for));
        self.tell(Stage::Granted, &FromKeeper::Granted { id, owner, token, valid_for_ms, waited_ms, attempts });
    }

    fn tell_verdict(&mut self, verdict: Verdict) {
        let waited_ms = millis(self.to.shared.now().mono.since(self.asked));
        event_log::verdict(&self.to.terms.lock, &verdict, waited_ms);
        match &verdict {
            Verdict::Busy(_) => self.to.shared.counters.busy.add_one(),
            Verdict::Failed(_) | Verdict::Unusable(_) | Verdict::TooLate => self.to.shared.counters.failed.add_one(),
            Verdict::Cancelled => {}
        }
        self.tell(Stage::Over, &wording::verdict(self.to.id, verdict));
    }

    fn lose(&mut self, reason: LossReason) {
        let Some(row) = &mut self.row else { return };
        row.lost = true;
        let owner = row.owner;
        self.to.shared.counters.lost.add_one();
        event_log::lost(&self.to.terms.lock, owner, row.version, &reason.to_string());
        self.tell_lost(owner, &reason.to_string());
        self.settle(owner);
    }

    fn tell_lost(&self, owner: OwnerId, reason: &str) {
        self.to.shared.standings.lose(owner, reason.to_owned());
        self.tell(Stage::Over, &FromKeeper::Lost { id: self.to.id, reason: reason.to_owned() });
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
                self.to.shared.counters.released.add_one();
                self.not_freed = None;
            }
            Err(failure) => {
                event_log::not_released(lock, row.owner, row.version, reason, &failure);
                self.to.shared.counters.release_failures.add_one();
                self.not_freed = Some(failure);
            }
        }
    }

    /// The session, or the keeper's end, wants the lease given back.
    fn give_back(&mut self, order: GiveBack) {
        self.order = Some(order);
        let Assignment { shared, terms, .. } = &self.to;
        if let Some(row) = self.row.as_ref().filter(|row| row.granted_at.is_some()) {
            shared.standings.forget(row.owner);
            if order.is_crash() && terms.on_crash == OnCrash::Expire {
                event_log::left_to_expire(&terms.lock, row.owner, row.version, order.as_str());
                shared.counters.abandoned.add_one();
                self.machine.abandon();
                return;
            }
            if order.is_crash() {
                shared.counters.crash_releases.add_one();
            }
        }
        // What was not granted has no work under it that `on_crash` could be about.
        shared.with_context(|cx| self.machine.handle_unwanted(cx));
    }

    /// The keeper shuts down: who waits or holds is told, then the lease goes the way of a crash.
    fn close(&mut self) {
        match self.row.as_ref().filter(|row| row.granted_at.is_some()) {
            Some(row) if row.lost => {}
            Some(row) => self.tell_lost(row.owner, SHUTTING_DOWN),
            None => self.tell(Stage::Over, &wording::failed(self.to.id, FailKind::ShuttingDown, SHUTTING_DOWN)),
        }
        self.to.desk.give_back(GiveBack::Shutdown, false, || self.to.shared.wire.owe());
    }

    /// Tells the session, unless it has already said that it no longer wants to know.
    fn tell(&self, stage: Stage, line: &FromKeeper) {
        self.to.desk.advance(stage, || self.to.outbox.tell(line));
    }

    /// Notes how long the lease may be believed, for whoever checks.
    fn tell_standing(&mut self) {
        let Machine::Holding(holder) = &self.machine else { return };
        if let (Some(row), Some(validity)) = (&mut self.row, holder.validity())
            && row.told_validity != Some(validity)
        {
            row.told_validity = Some(validity);
            self.to.shared.standings.hold(row.owner, validity);
        }
    }

    fn settle(&mut self, owner: OwnerId) {
        if let Some(at) = self.noted.iter().position(|noted| *noted == owner) {
            self.noted.swap_remove(at);
            self.to.shared.home.settled(owner);
        }
    }

    fn end(&mut self) {
        self.ended = true;
        for owner in std::mem::take(&mut self.noted) {
            self.to.shared.home.settled(owner);
        }
        let id = self.to.id;
        let line = match &self.not_freed {
            Some(failure) => wording::failure(id, failure),
            None => FromKeeper::Released { id },
        };
        self.to.desk.end(|| self.to.outbox.tell(&line));
        self.to.outbox.nudge();
    }
}

impl Drop for LeaseTask {
    /// The task panicked, or the keeper is gone: nobody renews this lease any more, so nobody may go on believing in it.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(row) = self.row.as_ref().filter(|row| row.granted_at.is_some() && !row.lost) {
            self.tell_lost(row.owner, "the keeper's own task for it ended");
        }
        let id = self.to.id;
        let line = wording::failed(id, FailKind::ShuttingDown, "the keeper's own task for it ended");
        self.tell(Stage::Over, &line);
        self.to.desk.end(|| self.to.outbox.tell(&line));
        self.to.outbox.nudge();
    }
}
