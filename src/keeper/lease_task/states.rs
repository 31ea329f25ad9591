//! How a lease's task sends what is asked about its state, and what follows from the answers.

use std::time::Duration;

use tokio::task::JoinSet;

use super::{Assignment, LeaseTask};
use crate::keeper::desk::GiveBack;
use crate::keeper::event_log;
use crate::keeper::flights::Flight;
use crate::keeper::machine::Machine;
use crate::keeper::requests::Purpose;
use crate::keeper::state::{Ask, NotLeft, Told};
use crate::protocol::{Failure, FailureKind, Outcome, Request, Version};
use crate::store::{StateAnswer, StateOutcome, StateRequest, StateWrite, WithRelease};

/// How long a release waits for a state that is being written under the same lease.
pub(super) const RELEASE_WAITS: Duration = Duration::from_secs(1);
/// No request about a state is given more, or less.
const LONGEST: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(10);

/// A request about a state, in a task of its own; dropping this ends it.
#[derive(Debug, Default)]
pub(super) struct StateRequests(JoinSet<(StateAnswer, Option<Flight>)>);

impl StateRequests {
    /// The next answer; `None` when nothing is under way.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Option<StateAnswer> {
        Some(match self.0.join_next().await? {
            Ok((answer, _flight)) => answer,
            // A store that panics has not answered; the transaction may have been applied.
            Err(error) => {
                let failure = Failure::new(FailureKind::Connection, format!("the store failed: {error}"));
                StateAnswer::new(StateOutcome::Failed(failure))
            }
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl LeaseTask {
    pub(super) fn handle_ask(&mut self, ask: Ask) {
        if let Some(line) = self.states.handle_ask(ask) {
            self.to.outbox.tell(&line);
        }
    }

    /// Sends the next request about the state, if one is due.
    pub(super) fn pump_states(&mut self) {
        let (Machine::Holding(holder), None) = (&self.machine, self.order) else { return };
        let now = self.to.shared.now();
        let Some(left) = holder.validity().map(|validity| validity.left(now)) else { return };
        // A renewal never waits; so what could be in its way is not begun while one is under way, or failed before.
        let may_write = !self.requests.under_way(Purpose::Renewal) && self.not_renewed.is_none();
        let Some(request) = self.states.poll_request(now, holder.owner(), may_write) else { return };
        let limit = LONGEST.min(self.to.terms.settings.lease / 3).min(left).max(SHORTEST);
        let (shared, lock) = (self.to.shared.clone(), self.to.terms.lock.clone());
        let (tally, counts) = (self.to.tally.clone(), self.to.counts.clone());
        let mut flight = matches!(request, StateRequest::Write(_)).then(|| shared.wire.owe());
        self.state_requests.0.spawn(async move {
            let answer = shared.wire.send_state(&lock, request, limit, flight.as_mut(), (&tally, &counts)).await;
            (answer, flight)
        });
    }

    pub(super) fn handle_state(&mut self, answer: StateAnswer) {
        if answer.outcome == StateOutcome::Written {
            self.to.tally.counts.states_saved.add_one();
        }
        let Told { line, not_held, not_left } = self.states.handle_answer(self.to.shared.now(), answer);
        if let Some(reason) = not_left {
            self.note_not_left(&reason);
        }
        if let Some(line) = line {
            self.to.outbox.tell(&line);
        }
        if let (Some(row), Machine::Holding(holder)) = (not_held, &mut self.machine) {
            holder.handle_found(&row);
            self.pump();
        }
    }

    /// The lease is over, or on its way back: nothing more is asked or saved under it.
    pub(super) fn end_states(&mut self, reason: &str) {
        if let Some(not_left) = self.states.left_behind(reason) {
            self.note_not_left(&not_left);
        }
        for line in self.states.end(reason) {
            self.to.outbox.tell(&line);
        }
    }

    /// The transaction that this release is to be sent as, if the handler finished and left a state for it.
    pub(super) fn leaving(&mut self, request: &Request) -> Option<StateWrite> {
        let Request::Release { ttl, hold, .. } = request else { return None };
        let row = self.row.as_ref().filter(|row| row.granted_at.is_some() && !row.lost)?;
        let finished = self.order == Some(GiveBack::Finished);
        let (now, owner) = (self.to.shared.now(), row.owner);
        if finished { self.states.release(now, owner, WithRelease { ttl: *ttl, hold: *hold }) } else { None }
    }

    /// Whether a state is to be written before the lease goes back: one that is under way, as a handler that finished may
    /// not have waited for it; or one that was to be written with the release, where the row stays held.
    pub(super) fn has_state_to_write(&mut self, order: GiveBack) -> bool {
        match order {
            GiveBack::Finished => self.states.is_writing(),
            GiveBack::Kept(_) => {
                self.states.leave();
                self.states.holds_up_the_end()
            }
            GiveBack::Dropped | GiveBack::Cancelled | GiveBack::Crash | GiveBack::Shutdown => false,
        }
    }

    fn note_not_left(&self, not_left: &NotLeft) {
        let Assignment { tally, terms, .. } = &self.to;
        match not_left {
            NotLeft::No(reason) => {
                tally.counts.states_not_left.add_one();
                event_log::state_not_left(&terms.lock, reason);
            }
            NotLeft::Unknown(reason) => {
                tally.counts.states_left_unknown.add_one();
                event_log::state_left_unknown(&terms.lock, reason);
            }
        }
    }

    /// What a release that was sent together with a state came to, for the machine.
    pub(super) fn left(&mut self, outcome: StateOutcome) -> Outcome {
        let not_left = self.states.handle_released(&outcome);
        if let Some(reason) = &not_left {
            self.note_not_left(reason);
        }
        match outcome {
            StateOutcome::Written => {
                self.to.tally.counts.states_saved.add_one();
                Outcome::written(Version::Counter(0))
            }
            StateOutcome::NotHeld(row) => Outcome::Refused { row },
            // It is freed without the state, soon.
            StateOutcome::Changed(_) | StateOutcome::Read(_) => Outcome::Failed(without_state()),
            StateOutcome::Failed(failure) if not_left.is_none() || failure.kind.is_transient() => {
                Outcome::Failed(failure)
            }
            StateOutcome::Failed(_) => Outcome::Failed(without_state()),
        }
    }
}

/// A failure after which the release is sent once more, without the state.
fn without_state() -> Failure {
    Failure::new(FailureKind::Throttled, "the state could not be written; the row is freed without it")
}
