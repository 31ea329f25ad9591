//! One lease's task: pumps its machine against the store, from the `acquire` line to the row free again.
//!
//! Each turn waits for one event (an answer, an order from the session, the keeper's end, the machine's wake-up, in this
//! order of preference: after a freeze all may be there at once), hands it to the machine, and does what that wants
//! done. The task outlives its session for as long as the way back takes.

mod actions;
mod ending;
mod in_line;
mod silence;
mod states;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

#[cfg(test)]
pub(super) use self::in_line::HANDOVER_WITHIN;
use self::states::{RELEASE_WAITS, StateRequests};
use super::desk::{Desk, GiveBack};
use super::event_log;
use super::flights::Flight;
use super::home::Peer;
use super::lease_counts::LeaseCounts;
use super::machine::{InLine, Machine};
use super::outbox::Outbox;
use super::queue::Place;
use super::requests::{Arrived, Purpose, Requests};
use super::shared::{Shared, set};
use super::state::{Ask, States};
use super::tally::{StillHeld, Tally};
use super::terms::Terms;
use super::trail::{Step, Trail};
use crate::clock::Mono;
use crate::protocol::{Contender, Failure, HeldRow, Outcome, OwnerId, Row, Validity};
use crate::store::StateAnswer;

/// What a lease's task is given.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) shared: Arc<Shared>,
    pub(super) desk: Arc<Desk>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) id: u64,
    pub(super) peer: Peer,
    pub(super) terms: Terms,
    /// Where the leases of its template are counted.
    pub(super) tally: Arc<Tally>,
    pub(super) counts: Arc<LeaseCounts>,
}

/// The task.
#[derive(Debug)]
pub(super) struct LeaseTask {
    to: Assignment,
    machine: Machine,
    requests: Requests,
    states: States,
    state_requests: StateRequests,
    /// Until when the release waits for a state that is being written.
    release_waits_until: Option<Mono>,
    closing: watch::Receiver<bool>,
    asked: Mono,
    /// Its place among the acquisitions of this key, until the lease is over.
    place: Option<Place>,
    /// When it leaves that place at the latest, once it is on its way out.
    leaves_at: Option<Mono>,
    /// How long it was in line before it began.
    queued: Duration,
    /// What happened of late, for the line that tells why there is no lease, or no more.
    trail: Trail,
    /// The attempts that the home was told of and not yet that they are settled.
    noted: Vec<OwnerId>,
    /// The attempts before the one that took the row which were never answered.
    unanswered: Vec<OwnerId>,
    row: Option<TakenRow>,
    order: Option<GiveBack>,
    /// The release that is owed since the order, while it is not on its way.
    debt: Option<Flight>,
    /// Why the last release could not be carried out.
    not_freed: Option<Failure>,
    /// Why the last renewal had no answer that counts.
    not_renewed: Option<Failure>,
    ended: bool,
    /// Whether an attempt was refused.
    refused: bool,
}

/// A row that was taken.
#[derive(Debug)]
struct TakenRow {
    owner: OwnerId,
    /// The row's version at acquisition, as far as the log tells it: where versions are counters.
    version: Option<u64>,
    /// Wall time of the attempt, as the row says it.
    acquired_at: u64,
    attempts: u32,
    took_over: bool,
    /// When the session was told of it.
    granted_at: Option<Mono>,
    /// Counts it as held, from the grant to its end.
    still_held: Option<StillHeld>,
    lost: bool,
    /// A release changed the row, or its outcome is not known.
    freed: bool,
    told_validity: Option<Validity>,
    /// What the handler's progress means for it, where it has to tell of it.
    heard: Option<silence::Heard>,
}

enum Event {
    Answer(Box<Arrived>),
    State(StateAnswer),
    Ask(Ask),
    Order(GiveBack),
    Closing,
    Progress,
    /// Nobody of this keeper is ahead any more.
    Turn,
    Wakeup,
}

impl LeaseTask {
    pub(super) fn new(to: Assignment) -> Self {
        let now = to.shared.now();
        let Terms { settings, subject, budget, epoch, .. } = &to.terms;
        let contender = Contender::new(*settings, subject.clone(), *budget, *epoch, now);
        Self {
            // Here and not when it first runs: who asked first is ahead.
            place: Some(to.shared.queues.join(settings.format, subject)),
            leaves_at: None,
            queued: Duration::ZERO,
            machine: Machine::InLine(InLine::new(Box::new(contender), budget.stop)),
            requests: Requests::new(to.tally.clone(), to.counts.clone()),
            states: States::new(to.id, to.terms.state_retention),
            state_requests: StateRequests::default(),
            release_waits_until: None,
            closing: to.shared.closing.subscribe(),
            asked: now.mono,
            trail: Trail::new(now.mono),
            noted: Vec::new(),
            unanswered: Vec::new(),
            row: None,
            order: None,
            debt: None,
            not_freed: None,
            not_renewed: None,
            ended: false,
            refused: false,
            to,
        }
    }

    /// Runs to the end: a verdict told and cleaned up after, or a row freed or left.
    pub(super) async fn run(mut self) {
        self.enter();
        self.pump();
        while !self.machine.is_finished() {
            let Some(event) = self.next_event().await else {
                tracing::error!(key = %self.to.terms.lock.key, "a lease's machine waits for nothing; it is given up");
                break;
            };
            self.handle(event);
            self.pump_states();
        }
        self.end();
        // A renewal that the release went past is still a write in flight; at the keeper's end nobody waits for it.
        tokio::select! {
            biased;
            () = async {
                while self.requests.next().await.is_some() {}
                while self.state_requests.next().await.is_some() {}
            } => {}
            () = set(&mut self.closing) => {}
        }
    }

    async fn next_event(&mut self) -> Option<Event> {
        let now = self.to.shared.now();
        let waits = self.release_waits_until.map(|until| until.since(now.mono));
        let may_release = waits.is_none_or(|left| left.is_zero()) || !self.states.holds_up_the_end();
        let leaves = self.leaves_at.filter(|_| self.place.is_some()).map(|at| at.since(now.mono));
        let wakeups =
            [self.machine.poll_wakeup(now), self.states.poll_wakeup(now), waits.filter(|_| !may_release), leaves];
        let wakeup = wakeups.into_iter().flatten().min();
        let (unordered, waits_for_turn) = (self.order.is_none(), self.waits_for_turn());
        tokio::select! {
            biased;
            Some(arrived) = self.requests.next(), if !self.requests.is_empty() => Some(Event::Answer(Box::new(arrived))),
            Some(answer) = self.state_requests.next(), if !self.state_requests.is_empty() => Some(Event::State(answer)),
            // In their order: what was asked before the order counts.
            ask = self.to.desk.asked(), if unordered => Some(Event::Ask(ask)),
            order = self.to.desk.order(), if unordered && may_release => Some(Event::Order(order)),
            () = set(&mut self.closing), if unordered => Some(Event::Closing),
            () = self.to.desk.progress(), if unordered => Some(Event::Progress),
            () = turn(self.place.as_ref()), if waits_for_turn => Some(Event::Turn),
            () = tokio::time::sleep(wakeup.unwrap_or(Duration::MAX)), if wakeup.is_some() => Some(Event::Wakeup),
            else => None,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Answer(arrived) => {
                let Arrived { id, purpose, mut answer, left, flight } = *arrived;
                if let Some(left) = left {
                    answer.outcome = self.left(left);
                }
                self.trail.note(self.to.shared.now().mono, Step::answered(purpose.as_str(), &answer.outcome));
                self.note(purpose, &answer.outcome);
                let held = self.first_refusal(purpose, &answer.outcome);
                self.to.shared.with_context(|cx| self.machine.handle_answer(cx, id, answer));
                self.tell_those_behind();
                self.pump();
                if let Some(held) = held.filter(|_| self.waits()) {
                    event_log::waiting(&self.to.terms.lock, held.holder.as_deref());
                }
                // Only now, so that nobody sees a gap between an answer and the write that follows from it.
                self.land(purpose, flight);
            }
            Event::State(answer) => self.handle_state(answer),
            Event::Ask(ask) => self.handle_ask(ask),
            // A state comes first, for a moment.
            Event::Order(order) if self.release_waits_until.is_none() && self.has_state_to_write(order) => {
                self.release_waits_until = Some(self.to.shared.now().mono + RELEASE_WAITS);
            }
            Event::Order(order) => {
                self.give_back(order);
                self.pump();
                self.end_states("the lease was given back");
            }
            Event::Closing => self.close(),
            Event::Progress => self.hear_progress(),
            Event::Turn => {
                self.handle_turn();
                self.pump();
            }
            Event::Wakeup => {
                self.note_silence();
                self.note_time_in_line();
                self.to.shared.with_context(|cx| self.machine.handle_wakeup(cx));
                self.pump();
            }
        }
    }

    /// The row that refuses the first attempt: from here on the contender waits, if it has the time.
    fn first_refusal(&mut self, purpose: Purpose, outcome: &Outcome) -> Option<HeldRow> {
        match (purpose, outcome) {
            (Purpose::Attempt(_), Outcome::Refused { row: Row::Held(held) }) if !self.refused => {
                self.refused = true;
                self.to.tally.counts.contended.add_one();
                Some(held.clone())
            }
            _ => None,
        }
    }

    /// Whether the contender has nothing told and nothing under way but a ticket: it waits for its next look.
    fn waits(&self) -> bool {
        let idle = self.requests.is_empty() || self.requests.under_way(Purpose::Ticket);
        matches!(self.machine, Machine::Contending(_)) && !self.machine.is_finished() && idle
    }

    /// A write is answered. A release that will be sent again is owed until then: nobody may freeze in between unasked.
    fn land(&mut self, purpose: Purpose, flight: Option<Flight>) {
        let again = purpose == Purpose::Release && self.order.is_some() && !self.machine.is_finished();
        if let Some(mut flight) = flight.filter(|_| again && !self.requests.under_way(Purpose::Release)) {
            flight.turn_back();
            self.debt = Some(flight);
        }
    }

    /// Counts an answer and keeps what the machine does not: which attempts are settled, and whether a row was freed.
    fn note(&mut self, purpose: Purpose, outcome: &Outcome) {
        let counters = &self.to.tally.counts;
        match (purpose, outcome) {
            (Purpose::Attempt(owner), Outcome::Refused { .. }) => self.settle(owner),
            (Purpose::Attempt(owner), Outcome::Failed(failure)) if !failure.kind.may_have_landed() => {
                self.settle(owner);
            }
            (Purpose::Attempt(_), Outcome::Written { hints, .. }) => {
                if let Some(place) = &self.place {
                    place.took(*hints, self.to.shared.now().mono);
                }
            }
            (Purpose::Renewal, Outcome::Written { .. }) => {
                counters.renewals.add_one();
                self.not_renewed = None;
            }
            (Purpose::Renewal, Outcome::Failed(failure)) => {
                counters.renewals_failed.add_one();
                self.not_renewed = Some(failure.clone());
            }
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

    fn settle(&mut self, owner: OwnerId) {
        if let Some(at) = self.noted.iter().position(|noted| *noted == owner) {
            self.noted.swap_remove(at);
            self.to.shared.home.settled(owner);
        }
    }
}

/// Waits for the turn of who has this place; one without a place has nobody ahead.
async fn turn(place: Option<&Place>) {
    if let Some(place) = place {
        place.first().await;
    }
}
