//! Whatever became of the row: a fresh contender that nothing disturbs gets it in time.

use std::sync::Arc;

use super::Model;
use super::bounds::{Bounds, Kind, Place};
use super::course::Course;
use super::fact::Facts;
use super::state::{Environment, State};
use super::step::{Step, What};
use crate::protocol::simulation::Violation;
use crate::protocol::simulation::clock::{DAY, Micros, SECOND};
use crate::protocol::simulation::store::until_expiry;

/// No honest recovery takes more steps: who is next by its ticket looks about a hundred times in the longest of them.
const MOST_STEPS: usize = 512;

impl Course<'_> {
    /// The row that the store has now can be taken, with server time and without.
    pub(super) fn check_recovery(&self) -> Result<(), Violation> {
        if self.model.bounds.is_recovery() {
            return Ok(());
        }
        self.recover(Kind::DATED)?;
        // Where clocks are wrong by more than a day, answers carry their `Date`.
        if self.model.bounds.has_wrong_clocks() { Ok(()) } else { self.recover(Kind::RIGHT) }
    }

    fn recover(&self, kind: Kind) -> Result<(), Violation> {
        let bounds = Bounds {
            places: vec![Place { sessions: 1, lanes: 1, kinds: vec![kind] }],
            wait: 2 * DAY,
            hints: self.model.bounds.hints,
            ..Bounds::recovery(self.model.bounds.lease)
        };
        let model = Model { bounds, rules: self.model.rules, subject: self.model.subject.clone() };
        // Its identities are told from everybody else's by a count that nobody reaches.
        let state = State {
            places: vec![Some(Arc::new(Environment::unborn(1, 10_000)))],
            strays: Vec::new(),
            faults: 0,
            quiet: 0,
            facts: Facts::default(),
            ..self.state.clone()
        };
        let due = self.state.now + self.within(kind) + SECOND;
        let mut course = Course::new(&model, state, false);
        let mut steps = Vec::new();
        for _ in 0..MOST_STEPS {
            steps.clear();
            model.steps(&course.state, &mut steps);
            let Some(step) = steps.iter().copied().min_by_key(|step| eagerness(*step)) else { break };
            course.take(step);
            if let Some(violation) = course.state.violation {
                return Err(violation);
            }
            if course.state.token > self.state.token {
                return if course.state.now <= due { Ok(()) } else { Err(Violation::NotRecovered) };
            }
        }
        Err(Violation::NotRecovered)
    }

    /// After how long the row can be had.
    fn within(&self, kind: Kind) -> Micros {
        let Some(row) = self.state.store.rows[0].as_ref().filter(|row| row.owner.is_some()) else { return 0 };
        let observed = u64::try_from(row.lease.as_micros()).unwrap_or(u64::MAX);
        let expired = until_expiry(row, self.state.now).filter(|_| kind.server_time);
        // The grace, and what the seconds of a `Date` hide.
        observed.min(expired.map_or(Micros::MAX, |left| left + 7 * SECOND))
    }
}

/// Everything at once, and time only when nothing else is left.
const fn eagerness(step: Step) -> u8 {
    match step {
        Step::Session { what: What::RoundTrip, .. } => 0,
        Step::Session { what: What::Wake, .. } => 1,
        Step::Begin { .. } => 2,
        Step::Pass { .. } => 3,
        _ => 4,
    }
}
