//! What may happen next in a state.

use super::Model;
use super::bounds::{Bounds, Fault};
use super::state::{Environment, Session, State};
use super::step::{Step, What};
use crate::protocol::simulation::clock::{Freeze, Micros};
use crate::protocol::simulation::machine::Machine;
use crate::protocol::simulation::store::date;

/// More than this many writes are never on their way with nobody waiting for them; the oldest is lost.
pub(super) const MOST_STRAYS: usize = 4;

struct Menu<'a> {
    bounds: &'a Bounds,
    state: &'a State,
    steps: &'a mut Vec<Step>,
    /// Something is due now: time does not pass before it is done.
    due: bool,
    /// When something is due next.
    next: Option<Micros>,
    /// Requests that time's passing makes slow.
    made_slow: u8,
}

pub(super) fn list(model: &Model, state: &State, steps: &mut Vec<Step>) {
    if state.violation.is_some() {
        return;
    }
    let mut menu = Menu { bounds: &model.bounds, state, steps, due: false, next: None, made_slow: 0 };
    for (place, environment) in state.places.iter().enumerate() {
        if let Some(environment) = environment {
            menu.environment(place, environment);
        }
    }
    menu.row();
    menu.time();
}

impl Menu<'_> {
    fn environment(&mut self, index: usize, at: &Environment) {
        let place = index as u8;
        if let Some((_, until)) = at.frozen {
            if self.state.now >= until {
                self.due = true;
                self.steps.push(Step::Thaw { place });
            } else {
                self.soon(until);
            }
            for (session, it) in at.sessions.iter().enumerate() {
                if !at.cut && it.flight.as_ref().is_some_and(|flight| flight.answer.is_none()) {
                    self.session(place, session, What::Apply);
                }
            }
            return;
        }
        self.begin(index, at);
        for (session, it) in at.sessions.iter().enumerate() {
            self.flight(place, session, at, it);
            self.machine(place, session, at, it);
        }
        self.mishaps(place, at);
    }

    fn begin(&mut self, index: usize, at: &Environment) {
        let plan = &self.bounds.places[index];
        if at.sessions_left == 0 || at.sessions.len() >= usize::from(plan.lanes) {
            return;
        }
        // Of two places that are alike it makes no difference which is used first.
        let before = index.checked_sub(1).filter(|before| self.bounds.places[*before] == *plan);
        let in_order = before.is_none_or(|before| self.state.places[before].as_ref().is_none_or(|at| at.owners > 0));
        if !in_order && at.owners == 0 {
            return;
        }
        let kinds = if at.born { at.kind..at.kind + 1 } else { 0..plan.kinds.len() as u8 };
        let place = index as u8;
        self.steps.extend(kinds.map(|kind| Step::Begin { place, kind }));
    }

    fn flight(&mut self, place: u8, session: usize, at: &Environment, it: &Session) {
        let Some(flight) = &it.flight else { return };
        if flight.answer.is_some() {
            self.session(place, session, What::Answer);
        } else if !at.cut {
            let dated = self.bounds.places[usize::from(place)].kinds[usize::from(at.kind)].dated;
            self.session(place, session, What::RoundTrip);
            if dated && self.may(Fault::Dateless) {
                self.session(place, session, What::DatelessRoundTrip);
            }
            if self.may(Fault::Throttled) {
                self.session(place, session, What::Throttle);
            }
            if !flight.slow && self.may(Fault::Broken) {
                self.session(place, session, What::Break);
            }
            if flight.slow || self.may(Fault::Slow) {
                self.session(place, session, What::Apply);
            }
            if !flight.slow {
                self.made_slow += 1;
            }
        }
        let timeout = at.clock.when(self.state.now, flight.deadline);
        if at.read(self.state.now).mono >= flight.deadline {
            self.due = true;
            self.session(place, session, What::TimeOut);
        } else {
            self.soon(timeout);
        }
    }

    fn machine(&mut self, place: u8, session: usize, at: &Environment, it: &Session) {
        if let Some(wake) = it.wake {
            if at.read(self.state.now).mono >= wake {
                self.due = true;
                self.session(place, session, What::Wake);
            } else {
                self.soon(at.clock.when(self.state.now, wake));
            }
        }
        if it.works() {
            self.session(place, session, What::Finish);
            if self.may(Fault::Abandon) {
                self.session(place, session, What::Abandon);
            }
        }
        if it.end.is_none() && self.may(Fault::Cancel) && matches!(it.machine, Machine::Contender(_)) {
            self.session(place, session, What::Cancel);
        }
    }

    fn mishaps(&mut self, place: u8, at: &Environment) {
        if at.cut {
            self.steps.push(Step::Mend { place });
        }
        if self.state.faults == 0 || !at.born {
            return;
        }
        let idle = at.sessions.is_empty();
        for fault in &self.bounds.kinds {
            match *fault {
                Fault::Cut if !at.cut && !idle => self.steps.push(Step::Cut { place }),
                Fault::Vanish if !idle => self.steps.push(Step::Vanish { place }),
                Fault::Freeze(how) => {
                    let possible = match how {
                        Freeze::BothStop => idle,
                        Freeze::MonoStops => !idle && !at.wall_back,
                        Freeze::WallStops => !idle && !at.mono_stopped,
                        Freeze::Paused => !idle,
                    };
                    if possible {
                        self.steps.extend(self.bounds.frozen_for.iter().map(|long| Step::Freeze {
                            place,
                            how,
                            long: *long,
                        }));
                    }
                }
                Fault::Step if !idle => {
                    let possible = self.bounds.steps.iter().filter(|by| **by > 0 || !at.mono_stopped);
                    self.steps.extend(possible.map(|by| Step::StepWall { place, by: *by }));
                }
                _ => {}
            }
        }
    }

    fn row(&mut self) {
        self.steps.extend((0..self.state.strays.len()).map(|stray| Step::Land { stray: stray as u8 }));
        let Some(ttl) = self.state.store.rows[0].as_ref().and_then(|row| row.ttl) else { return };
        if self.bounds.quiet == 0 {
            return;
        }
        if ttl < date(self.state.now, 0) {
            self.steps.push(Step::Sweep);
        } else if self.state.quiet > 0
            && self.state.environments().all(|at| at.sessions.is_empty() && at.frozen.is_none())
        {
            self.steps.push(Step::Quiet);
        }
    }

    fn time(&mut self) {
        if self.due {
            return;
        }
        let Some(mut until) = self.next else { return };
        let free = self.bounds.allows(Fault::Slow);
        if self.made_slow > 0 && (!free || self.made_slow > self.state.faults) {
            return;
        }
        if let Some(grain) = self.bounds.grain {
            until = until.min((self.state.now / grain + 1) * grain);
        }
        self.steps.push(Step::Pass { until });
    }

    fn session(&mut self, place: u8, session: usize, what: What) {
        self.steps.push(Step::Session { place, session: session as u8, what });
    }

    fn soon(&mut self, at: Micros) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    fn may(&self, fault: Fault) -> bool {
        self.state.faults > 0 && self.bounds.allows(fault)
    }
}
