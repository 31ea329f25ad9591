//! The same machines in a small world whose every course can be explored: a model for an exhaustive checker.
//!
//! The simulation draws one course of events from a seed; here each state lists all that may happen next
//! ([`Model::steps`]) and what comes of each ([`Model::after`]). Contenders and holders are the very machines that the
//! keeper pumps; the store, the clocks and the invariants are the simulation's. A checker walks the states, knows each by
//! its hash, and finds either a course that breaks an invariant or that there is none within the [`Bounds`].
//!
//! What keeps it finite: every session ends by itself, for its wait and its hold are bounded; what goes wrong is paid
//! for out of a number of faults; and time jumps from one moment at which something is due to the next. At each such
//! moment everything may happen in any order: requests may be sent, carried out and answered at once, or be delayed
//! to a later moment, beyond their timeout too.

mod bounds;
mod course;
mod drive;
mod fact;
mod fault;
mod recovery;
mod scenario;
mod state;
mod step;
mod steps;
mod wire;

pub use bounds::{Bounds, Fault, Kind, Place};
pub use fact::{Fact, Facts};
pub use scenario::{Scenario, scenarios};
pub use state::State;
pub use step::{Step, What};

pub use super::clock::Freeze;
use super::rules;
use crate::protocol::{Mutant, Rules, Subject};
use course::Course;

/// All that may happen within some bounds, with at most one rule switched off.
#[derive(Debug)]
pub struct Model {
    bounds: Bounds,
    rules: Rules,
    subject: Subject,
}

impl Model {
    /// The model of these bounds.
    #[must_use]
    pub fn new(bounds: Bounds, mutant: Option<Mutant>) -> Self {
        Self { bounds, rules: rules(mutant), subject: Subject::from("key") }
    }

    /// The bounds it keeps within.
    #[must_use]
    pub const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Nothing has happened yet.
    #[must_use]
    pub fn initial(&self) -> State {
        State::new(&self.bounds, self.rules)
    }

    /// All that may happen next; nothing after a violation.
    pub fn steps(&self, state: &State, steps: &mut Vec<Step>) {
        steps::list(self, state, steps);
    }

    /// What comes of one step that [`steps`](Self::steps) listed.
    #[must_use]
    pub fn after(&self, state: &State, step: Step) -> State {
        let mut course = Course::new(self, state.clone(), false);
        course.take(step);
        course.into_state()
    }

    /// One step in words, a line for each thing that happens, with the row after it.
    #[must_use]
    pub fn tell(&self, state: &State, step: Step) -> String {
        let mut course = Course::new(self, state.clone(), true);
        course.take(step);
        course.into_text(step)
    }
}
