//! The bounds that are checked as a matter of course: each makes some hazards possible, and names what it must show.

use super::bounds::{Bounds, Fault, Kind, Place};
use super::fact::Fact;
use crate::protocol::Mutant;

/// Bounds with a name, and what exploring them must come to.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    /// What it is about, in a line.
    pub about: &'static str,
    /// How far it goes.
    pub bounds: Bounds,
    /// What must be shown to happen in it.
    pub shows: Vec<Fact>,
    /// The broken rules that must be noticed in it.
    pub notices: Vec<Mutant>,
}

/// All of them.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "slow",
            about: "two contenders, requests and answers late or lost",
            bounds: Bounds { faults: 1, kinds: vec![Fault::Slow], ..Bounds::calm(2) },
            shows: vec![],
            notices: vec![],
        },
    ]
}
