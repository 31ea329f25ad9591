//! The protocol's model as `stateright` checks it: what must always hold, and what must be shown to happen.

use leasehold::protocol::simulation::Violation;
use leasehold::protocol::simulation::model::{Fact, Model, State, Step};
use stateright::Property;

/// The model, for the checker.
#[derive(Debug)]
pub(crate) struct Checked(pub(crate) Model);

/// The invariants, by what they are about; the last is about everything else that a machine must not do.
pub(crate) const EXCLUSION: &str = "never two holders who believe at once";
pub(crate) const TOKENS: &str = "each token granted is higher than all before it";
pub(crate) const WRITES: &str = "no write lands that a rule forbids";
pub(crate) const RECOVERY: &str = "a fresh contender can always take the row in time";
pub(crate) const MINIMA: &str = "a parked key is nobody's before its minimum is over";
pub(crate) const CONDUCT: &str = "machines keep their word and never get stuck";

fn breaks(state: &State, of: &[Violation]) -> bool {
    state.violation().is_some_and(|violation| of.contains(&violation))
}

const OF_WRITES: [Violation; 2] = [Violation::VersionFell, Violation::HeldRowHasTtl];
const NAMED: [Violation; 6] = [
    Violation::TwoHolders,
    Violation::TokenFell,
    Violation::NotRecovered,
    Violation::MinimumNotKept,
    OF_WRITES[0],
    OF_WRITES[1],
];

impl stateright::Model for Checked {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.0.initial()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.0.steps(state, steps);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        Some(self.0.after(state, step))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let invariants = [
            Property::always(EXCLUSION, |_, state: &State| !breaks(state, &[Violation::TwoHolders])),
            Property::always(TOKENS, |_, state: &State| !breaks(state, &[Violation::TokenFell])),
            Property::always(WRITES, |_, state: &State| !breaks(state, &OF_WRITES)),
            Property::always(RECOVERY, |_, state: &State| !breaks(state, &[Violation::NotRecovered])),
            Property::always(MINIMA, |_, state: &State| !breaks(state, &[Violation::MinimumNotKept])),
            Property::always(CONDUCT, |_, state: &State| {
                state.violation().is_none_or(|broken| NAMED.contains(&broken))
            }),
        ];
        let shown = Fact::ALL.iter().map(|fact| Property::sometimes(fact.words(), fact.shown()));
        invariants.into_iter().chain(shown).collect()
    }
}

/// A course of events in words, from the first to the last.
pub(crate) fn told(model: &Model, path: &stateright::Path<State, Step>) -> String {
    let steps = path.clone().into_vec();
    steps.iter().filter_map(|(state, step)| step.map(|step| model.tell(state, step))).collect()
}
