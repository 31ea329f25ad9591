//! The protocol's deterministic simulation: the very machines that the keeper pumps, against a hostile world, over a table
//! of one row format or another.
//!
//! A seed decides everything: the environments and their clocks, the network, the freezes and crashes. One store keeps
//! the rows. After each event the invariants in [`Violation`] are checked; at the end a fresh contender must get every
//! row in time. The same seed gives the same run on every machine, so a failing one is its own test case:
//!
//! ```text
//! cargo run --release --features simulation --example simulate -- --seed 4711
//! ```
//!
//! The world stays inside what the protocol assumes: each clock within 5 % of real time, a stopped monotonic clock and
//! a backward wall step never within one lease, both clocks stopped only while nothing is held. It goes beyond it in
//! one point: the service's front ends may disagree about the time by up to a second.

// True times are microseconds and probabilities small integers: the casts lose nothing that matters here.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_possible_wrap)]

mod clock;
pub mod contention;
mod drive;
mod environment;
mod keeper;
mod machine;
mod minimum;
pub mod model;
mod network;
mod queue;
mod random;
mod session;
mod store;
mod trace;
mod violation;
mod weather;
mod wire;
mod world;

pub use violation::Violation;

use super::{Format, Mutant, Rules};
use trace::Trace;
use world::World;

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The kind of world that the seed made.
    pub profile: &'static str,
    /// The broken invariant, if any; the run ends there.
    pub violation: Option<Violation>,
    /// Events that happened.
    pub events: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Acquisitions that were begun.
    pub sessions: u64,
    /// Leases given out.
    pub grants: u64,
    /// Acquisitions that were refused.
    pub refusals: u64,
    /// Rows taken from a holder whose lease was over.
    pub takeovers: u64,
    /// Rows parked.
    pub parked: u64,
    /// Tickets taken.
    pub tickets: u64,
    /// Rows that were lost before the grant, and contended for again.
    pub contended_again: u64,
    /// Leases lost.
    pub losses: u64,
    /// Freezes.
    pub freezes: u64,
    /// Environments that vanished.
    pub vanished: u64,
    /// Rows swept.
    pub sweeps: u64,
}

impl Report {
    const fn new(profile: &'static str) -> Self {
        Self {
            profile,
            violation: None,
            events: 0,
            requests: 0,
            sessions: 0,
            grants: 0,
            refusals: 0,
            takeovers: 0,
            parked: 0,
            tickets: 0,
            contended_again: 0,
            losses: 0,
            freezes: 0,
            vanished: 0,
            sweeps: 0,
        }
    }

    /// Adds another run's figures.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.requests += other.requests;
        self.sessions += other.sessions;
        self.grants += other.grants;
        self.refusals += other.refusals;
        self.takeovers += other.takeovers;
        self.parked += other.parked;
        self.tickets += other.tickets;
        self.contended_again += other.contended_again;
        self.losses += other.losses;
        self.freezes += other.freezes;
        self.vanished += other.vanished;
        self.sweeps += other.sweeps;
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new("")
    }
}

/// Runs one seed over a table of that row format, with one rule switched off where a mutant is given.
#[must_use]
pub fn run(seed: u64, format: Format, mutant: Option<Mutant>) -> Report {
    World::new(seed, format, rules(mutant), Trace::default()).run().0
}

/// Runs one seed and tells what happened, a line an event with the rows after it.
#[must_use]
pub fn replay(seed: u64, format: Format, mutant: Option<Mutant>) -> (Report, String) {
    let (report, trace) = World::new(seed, format, rules(mutant), Trace::on()).run();
    (report, trace.into_text())
}

fn rules(mutant: Option<Mutant>) -> Rules {
    mutant.map_or_else(Rules::default, Rules::without)
}
