//! Requests at the store, and the timers of those who wait for them.

use super::network::failure;
use super::queue::Event;
use super::store::date;
use super::trace;
use super::violation::Violation;
use super::world::World;
use crate::clock::Mono;
use crate::protocol::{Answer, FailureKind, Outcome, Request};

impl World {
    pub(super) fn apply(&mut self, id: usize) -> Result<(), Violation> {
        let flight = &self.flights[id];
        let (session, key) = (&self.sessions[flight.session], self.sessions[flight.session].key);
        let keeper = session.keeper;
        let date = date(self.now, self.keepers[keeper].skew);
        if self.weather.sweep > 0 && self.random.chance(self.weather.sweep) && self.store.sweep(key, self.now) {
            self.report.sweeps += 1;
            self.note(None, || format!("row {} is swept", self.subjects[key]));
        }
        let flight = &self.flights[id];
        let outcome = match flight.fate.turned_away {
            Some(kind) => Outcome::Failed(failure(kind)),
            None => self.store.apply(key, &flight.request)?,
        };
        let (id_of, takes) =
            (flight.session, matches!(flight.request, Request::Acquire { .. } | Request::TakeOver { .. }));
        if takes && matches!(outcome, Outcome::Written { .. }) {
            self.check_diligence(id_of, self.free_since[key])?;
        }
        self.report.tickets += u64::from(matches!(outcome, Outcome::Numbered { .. }));
        let free = self.store.rows[key].as_ref().is_none_or(|row| row.owner.is_none());
        self.free_since[key] = if free { self.free_since[key].or(Some(self.now)) } else { None };
        if let (Request::Park { parked, .. }, Outcome::Written { .. }) = (&self.flights[id].request, &outcome) {
            self.minima[key].begin(*parked);
        }
        self.note(Some(keeper), || {
            let flight = &self.flights[id];
            format!("S{} {:?} reaches the store: {}", flight.session, flight.id, trace::outcome(&outcome))
        });
        let fate = &self.flights[id].fate;
        let date = Some(date).filter(|_| fate.dated && !self.keepers[keeper].dateless);
        if let Some(back) = fate.answered {
            self.queue.push(self.now + back, Event::Answer { flight: id as u32 });
            self.flights[id].answer = Some(Answer::new(outcome, date));
        }
        Ok(())
    }

    pub(super) fn time_out(&mut self, id: usize) -> Result<(), Violation> {
        let flight = &self.flights[id];
        let keeper = &self.keepers[self.sessions[flight.session].keeper];
        if flight.settled {
            return Ok(());
        }
        // The timer runs on the monotonic clock, which may have stood still.
        if keeper.clock.read(self.now).mono < flight.deadline {
            let at = keeper.clock.when(self.now, flight.deadline);
            self.queue.push(at, Event::Timeout { flight: id as u32 });
            return Ok(());
        }
        self.note(Some(self.sessions[flight.session].keeper), || {
            format!("S{} {:?} timed out", self.flights[id].session, self.flights[id].id)
        });
        self.flights[id].answer = Some(Answer::new(Outcome::Failed(failure(FailureKind::Timeout)), None));
        self.answer(id)
    }

    pub(super) fn wake(&mut self, id: usize, at: Mono) -> Result<(), Violation> {
        if self.sessions[id].wake != Some(at) {
            return Ok(());
        }
        let clock = &self.keepers[self.sessions[id].keeper].clock;
        if clock.read(self.now).mono < at {
            let when = clock.when(self.now, at);
            self.queue.push(when, Event::Wake { session: id as u32, at });
            return Ok(());
        }
        self.sessions[id].wake = None;
        self.wake_up(id)
    }
}
