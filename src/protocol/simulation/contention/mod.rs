//! A crowd on one key, in virtual time: how quickly the row goes from hand to hand, what that costs, and whether it is fair.
//!
//! Each contender is a process of its own, with a keeper and clocks of its own, and knows of the others by the row alone. It
//! is the machine that the keeper pumps, over the simulation's store; only the network is a friendly one, for this is about
//! speed. A seed decides everything, so that a course's figures are the same on every machine.

mod crowd;
mod report;

pub use report::{Figures, Report};

use std::time::Duration;

use super::super::{Backoff, Polling};
use crowd::Crowd;

/// Who comes when, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// How many contenders there are.
    pub contenders: usize,
    /// Over what time they come, evenly by chance; at once, where it is none.
    pub spread: Duration,
    /// How long each holds the key.
    pub hold: Duration,
    /// How long a request takes, there and back; each differs by up to a tenth.
    pub latency: Duration,
    /// How long each waits at most.
    pub budget: Duration,
    /// How many percent of those who wait die there, without a word.
    pub dead: u32,
    /// How they wait.
    pub polling: Polling,
}

impl Course {
    /// So many at once, each holding the key for 20 ms, over requests of 6 ms; nobody gives up.
    #[must_use]
    pub const fn at_once(contenders: usize) -> Self {
        Self {
            contenders,
            spread: Duration::ZERO,
            hold: Duration::from_millis(20),
            latency: Duration::from_millis(6),
            budget: Duration::from_secs(3_600),
            dead: 0,
            polling: Polling::Tickets,
        }
    }

    /// The same by the plain schedule.
    #[must_use]
    pub fn by_backoff(self) -> Self {
        Self { polling: Polling::Backoff(Backoff::default()), ..self }
    }

    /// What it comes to.
    #[must_use]
    pub fn run(&self, seed: u64) -> Report {
        Crowd::new(*self, seed).run()
    }

    /// What these seeds come to, one figure for all.
    #[must_use]
    pub fn figures(&self, seeds: std::ops::Range<u64>) -> Figures {
        Figures::of(self, &seeds.map(|seed| self.run(seed)).collect::<Vec<_>>())
    }
}
