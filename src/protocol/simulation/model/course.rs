//! One step taken: what it does, what it costs, and the invariants after it.

use std::sync::Arc;

use super::Model;
use super::fact::{Fact, Facts};
use super::state::{Environment, FORMAT, State};
use super::step::{Step, What};
use crate::protocol::simulation::Violation;
use crate::protocol::simulation::clock::{EPOCH, SECOND, SimClock};
use crate::protocol::simulation::machine::Machine;
use crate::protocol::simulation::trace;
use crate::protocol::{Backoff, Budget, Contender, FailureKind, Polling, Request, Settings};

/// Contenders sleep until a takeover is due, or for a third of the lease where none is in sight: looks in between show
/// nothing that the moments of a model do not.
const POLLING_SHARE: u32 = 3;

pub(super) struct Course<'a> {
    pub(super) model: &'a Model,
    pub(super) state: State,
    notes: Option<String>,
}

impl<'a> Course<'a> {
    pub(super) fn new(model: &'a Model, mut state: State, told: bool) -> Self {
        state.facts = Facts::default();
        Self { model, state, notes: told.then(String::new) }
    }

    pub(super) fn into_state(self) -> State {
        self.state
    }

    pub(super) fn into_text(self, step: Step) -> String {
        let violation =
            self.state.violation.map_or_else(String::new, |violation| format!("  VIOLATION: {violation}\n"));
        let clocks: String = self
            .state
            .places
            .iter()
            .enumerate()
            .filter_map(|(place, at)| at.as_ref().filter(|at| at.born).map(|at| (place, at)))
            .map(|(place, at)| {
                let validity: Vec<String> = at
                    .sessions
                    .iter()
                    .filter_map(|session| session.validity())
                    .map(|validity| format!(", believes for {:?}", validity.left(at.read(self.state.now))))
                    .collect();
                let frozen = if at.frozen.is_some() { ", frozen" } else { "" };
                format!("  [{place} {}{frozen}{}]", self.kind(place).name, validity.concat())
            })
            .collect();
        format!(
            "{:>12.6} s  {step}\n{}{:>14}  row {}{clocks}\n{violation}",
            self.state.now as f64 / 1e6,
            self.notes.unwrap_or_default(),
            "",
            trace::row(&self.state.store.rows[0]),
        )
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push_str("                  - ");
            notes.push_str(&text());
            notes.push('\n');
        }
    }

    pub(super) fn saw(&mut self, fact: Fact) {
        self.state.facts.add(fact);
    }

    pub(super) fn take(&mut self, step: Step) {
        if let Err(violation) = self.happen(step).and_then(|()| self.settle()) {
            self.state.violation = Some(violation);
        }
    }

    fn happen(&mut self, step: Step) -> Result<(), Violation> {
        match step {
            Step::Begin { place, kind } => self.begin(usize::from(place), kind),
            Step::Session { place, session, what } => self.session(usize::from(place), usize::from(session), what),
            Step::Freeze { place, how, long } => {
                self.freeze(usize::from(place), how, long);
                Ok(())
            }
            Step::Thaw { place } => {
                self.thaw(usize::from(place));
                Ok(())
            }
            Step::StepWall { place, by } => {
                self.step_wall(usize::from(place), by);
                Ok(())
            }
            Step::Cut { place } => {
                self.cut(usize::from(place));
                Ok(())
            }
            Step::Mend { place } => {
                self.at(usize::from(place)).cut = false;
                Ok(())
            }
            Step::Vanish { place } => {
                self.vanish(usize::from(place));
                Ok(())
            }
            Step::Land { stray } => self.land(usize::from(stray)),
            Step::Sweep => {
                self.sweep();
                Ok(())
            }
            Step::Quiet => {
                self.state.quiet -= 1;
                // No request is on its way for a week: its signature serves for minutes.
                // Tickets stay all the same: one that lands on a swept row must not make it another one.
                self.state.strays.retain(|stray| *stray == Request::Ticket);
                let ttl = self.state.store.rows[0].as_ref().and_then(|row| row.ttl).unwrap_or_default();
                self.state.now = self.state.now.max((ttl * SECOND).saturating_sub(EPOCH) + SECOND);
                self.sweep();
                Ok(())
            }
            Step::Pass { until } => {
                self.pass(until);
                Ok(())
            }
        }
    }

    fn session(&mut self, place: usize, session: usize, what: What) -> Result<(), Violation> {
        match what {
            What::RoundTrip => self.round_trip(place, session, true),
            What::DatelessRoundTrip => {
                self.pay();
                self.round_trip(place, session, false)
            }
            What::Apply => {
                self.make_slow(place, session);
                self.apply(place, session, true)
            }
            What::Answer => self.answer(place, session),
            What::Throttle => {
                self.pay();
                self.fail(place, session, FailureKind::Throttled)
            }
            What::Break => {
                self.make_slow(place, session);
                self.fail(place, session, FailureKind::Connection)
            }
            What::TimeOut => self.fail(place, session, FailureKind::Timeout),
            What::Wake => self.wake(place, session),
            What::Finish => self.finish(place, session),
            What::Abandon => {
                self.pay();
                self.abandon(place, session);
                Ok(())
            }
            What::Cancel => {
                self.pay();
                self.cancel(place, session)
            }
        }
    }

    fn begin(&mut self, place: usize, kind: u8) -> Result<(), Violation> {
        let now = self.state.now;
        let bounds = &self.model.bounds;
        let plan = bounds.places[place].kinds[usize::from(kind)];
        let (wait, latest, hold) = (bounds.wait, bounds.latest, bounds.hold);
        let settings = self.settings(plan.server_time);
        let subject = self.model.subject.clone();
        let at = self.at(place);
        if !at.born {
            at.born = true;
            at.kind = kind;
            at.clock = SimClock::exact(now, plan.ahead, plan.mono, plan.wall);
        }
        at.sessions_left -= 1;
        let read = at.read(now);
        let after = |micros: u64| read.mono + std::time::Duration::from_micros(micros);
        let epoch = at.server_time.begin();
        let budget = Budget { stop: after(wait), latest: latest.map(after) };
        let contender = Contender::new(settings, subject, budget, epoch, read);
        at.sessions.push(super::state::Session {
            machine: Machine::Contender(contender),
            came: now,
            renews_until: after(hold),
            latest: budget.latest,
            flight: None,
            wake: None,
            end: None,
            over: false,
            warned: false,
            asked: false,
            release_sent: false,
            attempted: 0,
            keeps_minimum: false,
            parked: None,
        });
        let session = at.sessions.len() - 1;
        self.note(|| format!("its clocks: {}", plan.name));
        self.start(place, session)
    }

    pub(super) fn settings(&self, server_time: bool) -> Settings {
        let lease = std::time::Duration::from_micros(self.model.bounds.lease);
        let look = lease / POLLING_SHARE;
        let polling = if self.model.bounds.hints.is_some() {
            Polling::Tickets
        } else {
            Polling::Backoff(Backoff { first: look, max: look })
        };
        Settings { lease, format: FORMAT, polling, server_time, rules: self.model.rules }
    }

    pub(super) fn pay(&mut self) {
        self.state.faults = self.state.faults.saturating_sub(1);
    }

    pub(super) fn kind(&self, place: usize) -> super::Kind {
        let kind = self.state.places[place].as_ref().map_or(0, |at| at.kind);
        self.model.bounds.places[place].kinds[usize::from(kind)]
    }

    /// The environment at a place, to change it.
    #[allow(clippy::expect_used, reason = "steps are listed only for places where somebody is")]
    pub(super) fn at(&mut self, place: usize) -> &mut Environment {
        Arc::make_mut(self.state.places[place].as_mut().expect("somebody is at the place of a step"))
    }

    /// What must hold after each step; machines that are done go, and environments that are not needed any more.
    fn settle(&mut self) -> Result<(), Violation> {
        for place in 0..self.state.places.len() {
            let Some(at) = &self.state.places[place] else { continue };
            if at.sessions.iter().any(|session| matches!(session.machine, Machine::Done)) {
                self.at(place).sessions.retain(|session| !matches!(session.machine, Machine::Done));
            }
            let Some(at) = &self.state.places[place] else { continue };
            if at.sessions.is_empty() && at.sessions_left == 0 {
                self.state.places[place] = None;
            }
        }
        self.forget_hopeless();
        if self.state.believers() > 1 {
            return Err(Violation::TwoHolders);
        }
        Ok(())
    }
}
