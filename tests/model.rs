//! The protocol's model, explored whole within small bounds: every course of events keeps the invariants, what must be
//! possible is possible, and every broken rule is noticed.
//!
//! Made for `cargo test --release -p leasehold --features simulation --test model`; a debug build explores the smallest
//! scenarios only. Larger bounds: `cargo run --release --features simulation --example check_model -- --help`.

#![allow(clippy::panic, reason = "a test fails by panicking")]

#[path = "model/checker.rs"]
mod checker;

use checker::{CONDUCT, Checked, EXCLUSION, MINIMA, RECOVERY, TOKENS, WRITES, told};
use leasehold::protocol::Mutant;
use leasehold::protocol::simulation::model::{Fact, Model, Scenario, scenarios};
use stateright::{Checker, HasDiscoveries, Model as _};

#[track_caller]
fn scenario(name: &str) -> Scenario {
    scenarios()
        .into_iter()
        .find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("no scenario is called {name}"))
}

/// Every state is explored, none breaks an invariant, and what the scenario is for happens in it.
#[track_caller]
fn holds(name: &str) {
    let scenario = scenario(name);
    let model = Model::new(scenario.bounds, None);
    let checker = Checked(Model::new(model.bounds().clone(), None)).checker();
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    let discoveries = checker.discoveries();
    for (property, path) in &discoveries {
        assert!(Fact::ALL.iter().any(|fact| fact.words() == *property), "{property}:\n{}", told(&model, path));
    }
    assert!(checker.is_done());
    for fact in scenario.shows {
        assert!(discoveries.contains_key(fact.words()), "not shown: {fact}");
    }
}

/// Each rule that the scenario is made for is missed, and for what it is there.
#[track_caller]
fn notices(name: &str) {
    let scenario = scenario(name);
    assert!(!scenario.notices.is_empty());
    for mutant in scenario.notices {
        let checker = Checked(Model::new(scenario.bounds.clone(), Some(mutant))).checker();
        let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let broken = checker.discoveries();
        assert!(
            breaks(mutant).iter().any(|property| broken.contains_key(property)),
            "{mutant} is not noticed for what it breaks, only {:?}",
            broken.keys()
        );
    }
}

/// What a mutant breaks; a rule may be needed for more than one thing.
fn breaks(mutant: Mutant) -> &'static [&'static str] {
    match mutant {
        // Two writes of one owner in the wrong order are seen on the row before any contender acts on it.
        Mutant::RenewalWithoutVersion
        | Mutant::TtlLeftOnHeldRow
        | Mutant::ParkingWithoutVersion
        | Mutant::ReleaseDropsVersion => &[WRITES],
        Mutant::LossRevived | Mutant::BelievedWhileParking => &[CONDUCT],
        // A row that is no lock's any more, or that nobody may take; one that is left alone although it is free.
        Mutant::TicketOnAnyRow => &[RECOVERY],
        Mutant::AcquireInTurnOnly | Mutant::SleepsPastTakeover => &[RECOVERY, CONDUCT],
        Mutant::FreeRowLeftToOthers | Mutant::ServedRunsAhead => &[CONDUCT],
        Mutant::ParkedUnderSameOwner
        | Mutant::MinimumByLargerClock
        | Mutant::ParkedForBareRest
        | Mutant::UnknownParkingTakenForDone => &[MINIMA],
        Mutant::SeedZero | Mutant::LowSeedNotRaised => &[TOKENS],
        // A lease granted when it was over already has a lower token than the one that was granted meanwhile.
        _ => &[EXCLUSION, TOKENS],
    }
}

macro_rules! whole {
    ($($test:ident: $name:literal,)*) => {
        $(mod $test {
            #[test]
            #[cfg_attr(debug_assertions, ignore = "too slow without optimisation: run with --release")]
            fn holds_in_every_state() {
                super::holds($name);
            }

            #[test]
            #[cfg_attr(debug_assertions, ignore = "too slow without optimisation: run with --release")]
            fn notices_each_broken_rule() {
                super::notices($name);
            }
        })*

        const EXPLORED: &[&str] = &["margins", "server time", $($name,)*];
    };
}

whole! {
    network: "network",
    limits: "limits",
    clocks: "clocks",
    crashes: "crashes",
    one_keeper: "one keeper",
    dateless: "dateless",
    astray: "astray",
    between_sessions: "between sessions",
    sweeps: "sweeps",
    wrong_seeds: "wrong seeds",
    three: "three",
    minima: "minima",
    minima_in_trouble: "minima in trouble",
    tickets: "tickets",
    far_from_its_turn: "far from its turn",
    overtaken: "overtaken",
}

#[test]
#[cfg_attr(debug_assertions, ignore = "too slow without optimisation: run with --release")]
fn takeovers_by_server_time_hold_in_every_state() {
    holds("server time");
}

#[test]
fn the_margins_of_server_time_hold_in_every_state() {
    holds("margins");
}

#[test]
fn the_margins_of_server_time_are_missed_without_their_rule() {
    notices("margins");
}

#[test]
fn every_scenario_is_explored_and_every_rule_is_broken_in_one() {
    let names: Vec<&str> = scenarios().iter().map(|scenario| scenario.name).collect();
    assert!(names.iter().all(|name| EXPLORED.contains(name)), "{names:?} and {EXPLORED:?}");
    for mutant in Mutant::ALL {
        assert!(scenarios().iter().any(|scenario| scenario.notices.contains(&mutant)), "{mutant} is broken nowhere");
    }
}

#[test]
fn every_fact_that_a_trace_may_tell_is_shown_somewhere() {
    for fact in Fact::ALL {
        assert!(scenarios().iter().any(|scenario| scenario.shows.contains(fact)), "nothing has to show: {fact}");
    }
}
