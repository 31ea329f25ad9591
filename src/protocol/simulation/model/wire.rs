//! Requests at the store, and their answers.

use super::course::Course;
use super::fact::Fact;
use super::steps::MOST_STRAYS;
use crate::protocol::simulation::Violation;
use crate::protocol::simulation::clock::SECOND;
use crate::protocol::simulation::machine::{Input, Machine};
use crate::protocol::simulation::network::failure;
use crate::protocol::simulation::store::date;
use crate::protocol::simulation::trace;
use crate::protocol::{Answer, FailureKind, Mutant, Outcome, OwnerId, Request, Row};

impl Course<'_> {
    pub(super) fn round_trip(&mut self, place: usize, session: usize, dated: bool) -> Result<(), Violation> {
        self.apply(place, session, dated)?;
        self.answer(place, session)
    }

    /// The store carries the request out; its answer is on its way.
    pub(super) fn apply(&mut self, place: usize, session: usize, dated: bool) -> Result<(), Violation> {
        let Some(flight) = self.at(place).sessions[session].flight.clone() else { return Ok(()) };
        let kind = self.kind(place);
        let date = date(self.state.now, kind.skew);
        let outcome = self.carry(&flight.request)?;
        match (&flight.request, &outcome) {
            (Request::Acquire { .. } | Request::TakeOver { .. }, Outcome::Written { .. }) => {
                self.check_diligence(place, session)?;
            }
            (Request::Ticket, Outcome::Refused { .. }) => self.saw(Fact::TicketRefused),
            (Request::Ticket, _) => self.saw(Fact::Ticket),
            _ => {}
        }
        self.note_free();
        if let Some(fact) = flight.rests_on {
            let won = matches!(outcome, Outcome::Written { .. });
            self.saw(if won { fact } else { Fact::LostRace });
        }
        if let Some(flight) = &mut self.at(place).sessions[session].flight {
            flight.answer = Some(Answer::new(outcome, Some(date).filter(|_| dated && kind.dated)));
        }
        Ok(())
    }

    pub(super) fn answer(&mut self, place: usize, session: usize) -> Result<(), Violation> {
        let Some(flight) = self.at(place).sessions[session].flight.take() else { return Ok(()) };
        let Some(answer) = flight.answer else { return Ok(()) };
        let it = &self.at(place).sessions[session];
        let (end, release_sent, over) = (it.end, it.release_sent, it.over);
        match (&flight.request, &answer.outcome) {
            (Request::Renew { version, new_version, .. }, Outcome::Written { .. }) => {
                self.saw(match end {
                    None => Fact::Confirmed,
                    Some(_) if over => Fact::AnsweredAfterLoss,
                    Some(_) => Fact::Renewed,
                });
                if end.is_none() && new_version.counter() > version.counter().map(|version| version + 1) {
                    self.saw(Fact::Raised);
                }
            }
            (Request::Renew { owner, .. }, Outcome::Refused { row: Row::Held(held) }) if held.owner == *owner => {
                self.saw(Fact::Adopted);
            }
            (Request::Park { parked, .. }, Outcome::Refused { row: Row::Held(held) }) if held.owner == *parked => {
                self.saw(Fact::ParkingFound);
            }
            (Request::Park { owner, .. }, Outcome::Refused { row: Row::Held(held) }) if held.owner == *owner => {
                self.saw(Fact::ParkingRepeated);
            }
            (Request::Release { .. }, Outcome::Written { .. })
                if release_sent && matches!(self.at(place).sessions[session].machine, Machine::Contender(_)) =>
            {
                self.saw(Fact::CleanedUp);
            }
            _ => {}
        }
        self.note(|| format!("is answered: {} (date {:?})", trace::outcome(&answer.outcome), answer.date));
        self.feed(place, session, Input::Answer(flight.id, answer))
    }

    /// The sender is told that its request failed. What did not reach the store may still do so, unless it was turned
    /// away.
    pub(super) fn fail(&mut self, place: usize, session: usize, kind: FailureKind) -> Result<(), Violation> {
        if kind.may_have_landed() {
            let id = self.at(place).sessions[session].flight.as_ref().map(|flight| flight.id);
            self.set_adrift(place, session);
            let Some(id) = id else { return Ok(()) };
            let answer = Answer::new(Outcome::Failed(failure(kind)), None);
            return self.feed(place, session, Input::Answer(id, answer));
        }
        let Some(flight) = self.at(place).sessions[session].flight.take() else { return Ok(()) };
        let answer = Answer::new(Outcome::Failed(failure(kind)), None);
        self.feed(place, session, Input::Answer(flight.id, answer))
    }

    /// Nobody waits any more for what is under way: a write may still land, unless it goes into the void.
    pub(super) fn set_adrift(&mut self, place: usize, session: usize) {
        let at = self.at(place);
        let cut = at.cut;
        let Some(flight) = at.sessions[session].flight.take() else { return };
        // One that was not slow was overtaken at its own moment: to land behind what overtook it is to be refused.
        if flight.answer.is_some() || cut || !flight.slow || flight.request == Request::Read {
            return;
        }
        if self.state.strays.len() == MOST_STRAYS {
            self.state.strays.remove(0);
        }
        self.state.strays.push(flight.request);
    }

    /// Late writes that can never be carried out any more are forgotten: the row is not their owner's, and nothing is on
    /// its way that could make it so again, for every attempt has an owner of its own and lands at most once.
    pub(super) fn forget_hopeless(&mut self) {
        if self.state.strays.is_empty() {
            return;
        }
        let holder = self.state.store.rows[0].as_ref().and_then(|row| row.owner);
        let flights = self.state.environments().flat_map(|at| &at.sessions).filter_map(|it| it.flight.as_ref());
        let coming: Vec<OwnerId> = flights
            .filter(|flight| flight.answer.is_none())
            .map(|flight| &flight.request)
            .chain(&self.state.strays)
            .filter_map(taker)
            .chain(holder)
            .collect();
        let any_release = self.model.rules.broken(Mutant::ReleaseWithoutOwner);
        self.state.strays.retain(|stray| match stray {
            Request::Renew { owner, .. } | Request::Park { owner, .. } => coming.contains(owner),
            Request::TakeOver { seen_owner, .. } => coming.contains(seen_owner),
            Request::Release { owners, .. } => any_release || owners.iter().any(|owner| coming.contains(owner)),
            Request::Acquire { .. } | Request::Ticket | Request::Read => true,
        });
    }

    pub(super) fn land(&mut self, stray: usize) -> Result<(), Violation> {
        let request = self.state.strays.remove(stray);
        self.note(|| trace::request(&request));
        let outcome = self.carry(&request)?;
        self.note_free();
        let written = matches!(outcome, Outcome::Written { .. } | Outcome::Numbered { .. });
        self.saw(match request {
            Request::Acquire { .. } | Request::TakeOver { .. } if written => Fact::AttemptLandedLate,
            Request::Acquire { .. } | Request::TakeOver { .. } => Fact::LateAttemptRefused,
            Request::Renew { .. } if written => Fact::RenewalLandedLate,
            Request::Release { .. } if written => Fact::ReleaseLandedLate,
            Request::Ticket if written => Fact::TicketBurnt,
            _ => Fact::LateWriteRefused,
        });
        Ok(())
    }

    fn note_free(&mut self) {
        let free = self.state.store.rows[0].as_ref().is_none_or(|row| row.owner.is_none());
        self.state.free_since = if free { self.state.free_since.or(Some(self.state.now)) } else { None };
    }

    /// A contender that takes the row, or gives up, has not let it be free for long while it waited. Asked where nothing
    /// went wrong so far.
    pub(super) fn check_diligence(&self, place: usize, session: usize) -> Result<(), Violation> {
        let bounds = &self.model.bounds;
        if bounds.hints.is_none() || bounds.is_recovery() || self.state.faults < bounds.faults {
            return Ok(());
        }
        let came = self.state.places[place].as_ref().map_or(self.state.now, |at| at.sessions[session].came);
        let left = self.state.free_since.map_or(0, |since| self.state.now.saturating_sub(since.max(came)));
        if left > 2 * SECOND { Err(Violation::FreeRowNotTaken) } else { Ok(()) }
    }

    /// One request at the store, and whether the row can be taken by others whatever it made of it.
    fn carry(&mut self, request: &Request) -> Result<Outcome, Violation> {
        let before = self.state.store.rows[0].clone();
        let outcome = self.state.store.apply(0, request)?;
        if let (Request::Acquire { unknown, .. }, Outcome::Written { .. }) = (request, &outcome) {
            if before.is_none() && self.state.swept {
                self.saw(Fact::Reseeded);
            }
            if before.as_ref().and_then(|row| row.owner).is_some_and(|owner| unknown.contains(&owner)) {
                self.saw(Fact::OwnAttemptReplaced);
            }
        }
        if let (Request::Park { parked, .. }, Outcome::Written { .. }) = (request, &outcome) {
            self.state.minima.begin(*parked);
        }
        if let (Request::TakeOver { seen_owner, .. }, Outcome::Written { .. }) = (request, &outcome) {
            if self.state.minima.know(*seen_owner) {
                self.saw(Fact::ParkedTakenOver);
            }
            let lives = self.state.environments().flat_map(|at| &at.sessions).any(|session| match &session.machine {
                Machine::Holder(holder) => holder.owner() == *seen_owner,
                Machine::Contender(_) | Machine::Done => false,
            });
            if !lives {
                self.saw(Fact::Abandoned);
            }
        }
        if self.state.store.rows[0] != before {
            self.check_recovery()?;
        }
        Ok(outcome)
    }
}

/// Whose the row is once this is carried out.
const fn taker(request: &Request) -> Option<OwnerId> {
    match request {
        Request::Acquire { owner, .. } | Request::TakeOver { owner, .. } | Request::Park { parked: owner, .. } => {
            Some(*owner)
        }
        Request::Renew { .. } | Request::Release { .. } | Request::Ticket | Request::Read => None,
    }
}
