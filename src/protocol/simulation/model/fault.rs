//! What befalls environments and the row, and what time's passing brings.

use super::course::Course;
use super::fact::Fact;
use super::state::Environment;
use crate::protocol::Request;
use crate::protocol::simulation::clock::{Freeze, Micros};
use crate::protocol::simulation::machine::Machine;

impl Course<'_> {
    /// Time passes: requests that were neither carried out nor answered at their moment are slow from now on.
    pub(super) fn pass(&mut self, until: Micros) {
        for place in 0..self.state.places.len() {
            let Some(at) = &self.state.places[place] else { continue };
            if at.frozen.is_none() && !at.cut {
                for session in 0..at.sessions.len() {
                    self.make_slow(place, session);
                }
            }
        }
        self.state.now = until;
    }

    pub(super) fn make_slow(&mut self, place: usize, session: usize) {
        let Some(at) = &self.state.places[place] else { return };
        if at.sessions[session].flight.as_ref().is_none_or(|flight| flight.slow || flight.answer.is_some()) {
            return;
        }
        if let Some(flight) = &mut self.at(place).sessions[session].flight {
            flight.slow = true;
        }
        self.pay();
    }

    pub(super) fn freeze(&mut self, place: usize, how: Freeze, long: Micros) {
        self.pay();
        let now = self.state.now;
        let at = self.at(place);
        at.clock.freeze(now, how);
        at.frozen = Some((how, now + long));
        match how {
            Freeze::MonoStops => at.mono_stopped = true,
            Freeze::WallStops => at.wall_back = true,
            Freeze::Paused | Freeze::BothStop => {}
        }
        slow_all(at);
    }

    pub(super) fn thaw(&mut self, place: usize) {
        let now = self.state.now;
        let at = self.at(place);
        at.frozen = None;
        at.clock.go_on(now);
        let read = at.read(now);
        let left: Vec<bool> = at
            .sessions
            .iter()
            .filter_map(|session| session.validity())
            .map(|validity| validity.left(read).is_zero())
            .collect();
        for lost in left {
            self.saw(if lost { Fact::LostWhileFrozen } else { Fact::HeldThroughFreeze });
        }
    }

    pub(super) fn step_wall(&mut self, place: usize, by: i64) {
        self.pay();
        let now = self.state.now;
        let at = self.at(place);
        at.clock.step(now, by);
        at.wall_back |= by < 0;
    }

    pub(super) fn cut(&mut self, place: usize) {
        self.pay();
        let at = self.at(place);
        at.cut = true;
        slow_all(at);
    }

    /// Another environment may come in its place for the sessions that are left.
    pub(super) fn vanish(&mut self, place: usize) {
        self.pay();
        slow_all(self.at(place));
        for session in 0..self.at(place).sessions.len() {
            self.set_adrift(place, session);
            self.note_is_left(place, session);
        }
        let at = self.at(place);
        *at = Environment::unborn(at.sessions_left, at.owners);
    }

    /// Where a row was to be parked, the keeper's process may have died alone: the next one finds a note of the lease and
    /// releases it.
    fn note_is_left(&mut self, place: usize, session: usize) {
        let it = &self.at(place).sessions[session];
        let Machine::Holder(holder) = &it.machine else { return };
        if it.keeps_minimum {
            let owners = vec![holder.owner()];
            self.state.strays.push(Request::Release { owners, ttl: None, hold: None });
        }
    }

    /// The machine is gone, and with it whatever it had to do yet.
    pub(super) fn abandon(&mut self, place: usize, session: usize) {
        slow_all(self.at(place));
        self.set_adrift(place, session);
        self.at(place).sessions.remove(session);
    }

    pub(super) fn sweep(&mut self) {
        if self.state.store.sweep(0, self.state.now) {
            self.state.swept = true;
            self.saw(Fact::Swept);
        }
    }
}

/// What was under way may take any time from now on; that is paid for with what happened.
fn slow_all(at: &mut Environment) {
    for session in &mut at.sessions {
        if let Some(flight) = &mut session.flight {
            flight.slow = true;
        }
    }
}
