//! What a crowd came to, in figures.

use std::time::Duration;

use super::Course;
use crate::protocol::Request;
use crate::protocol::simulation::clock::{Micros, micros};

/// One course with one seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub(super) waits: Vec<Wait>,
    pub(super) handovers: Vec<Micros>,
    pub(super) counts: Vec<Count>,
    pub(super) end: Micros,
    pub(super) gave_up: u64,
    pub(super) failed: u64,
}

/// One that had the key, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) came: Micros,
    pub(super) waited: Micros,
}

/// One contender's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    writes: u64,
    reads: u64,
}

impl Count {
    pub(super) const fn note(&mut self, request: &Request) {
        match request {
            Request::Read => self.reads += 1,
            _ => self.writes += 1,
        }
    }
}

/// One course over several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The end of the last release over the least that it could take one after the other.
    pub ratio: f64,
    /// The largest of those.
    pub worst_ratio: f64,
    /// Requests for each contender.
    pub requests: f64,
    /// Writes for each contender.
    pub writes: f64,
    /// Reads for each contender.
    pub reads: f64,
    /// From a release to the next grant, the middle one, in requests' times.
    pub handover_p50: f64,
    /// The same, what nine of ten do not exceed.
    pub handover_p90: f64,
    /// The longest wait.
    pub longest_wait: Duration,
    /// The longest wait of those who came in the first half, over the wait that who came last had if all others went first.
    pub unfairness: f64,
    /// Those who gave up, of all seeds.
    pub gave_up: u64,
    /// Those who had the key, of all seeds.
    pub served: u64,
    /// Those who neither had it nor gave up.
    pub failed: u64,
}

impl Figures {
    pub(super) fn of(course: &Course, reports: &[Report]) -> Self {
        let turn = micros(course.hold) + 2 * micros(course.latency);
        let mean = |of: &dyn Fn(&Report) -> f64| reports.iter().map(of).sum::<f64>() / reports.len().max(1) as f64;
        let ratio = |report: &Report| {
            let last = report.waits.last().map_or(0, |wait| wait.came);
            // Who came later than all others could be served had nobody to wait for.
            let least = (report.waits.len() as u64 * turn).max(last + turn);
            report.end as f64 / least.max(1) as f64
        };
        let each = |count: &dyn Fn(&Count) -> u64, report: &Report| {
            report.counts.iter().map(count).sum::<u64>() as f64 / report.counts.len().max(1) as f64
        };
        let mut handovers: Vec<Micros> = reports.iter().flat_map(|report| report.handovers.iter().copied()).collect();
        handovers.sort_unstable();
        let handover = |part: f64| {
            let at = (handovers.len() as f64 * part) as usize;
            handovers.get(at).copied().unwrap_or_default() as f64 / micros(course.latency) as f64
        };
        let waits = reports.iter().flat_map(|report| &report.waits);
        Self {
            ratio: mean(&ratio),
            worst_ratio: reports.iter().map(ratio).fold(0.0, f64::max),
            requests: mean(&|report| each(&|count| count.writes + count.reads, report)),
            writes: mean(&|report| each(&|count| count.writes, report)),
            reads: mean(&|report| each(&|count| count.reads, report)),
            handover_p50: handover(0.5),
            handover_p90: handover(0.9),
            longest_wait: Duration::from_micros(waits.map(|wait| wait.waited).max().unwrap_or_default()),
            unfairness: reports.iter().map(Report::unfairness).fold(0.0, f64::max),
            gave_up: reports.iter().map(|report| report.gave_up).sum(),
            served: reports.iter().map(|report| report.waits.len() as u64).sum(),
            failed: reports.iter().map(|report| report.failed).sum(),
        }
    }

    /// What each contender's requests cost, in writes: a consistent read of so small a row costs a fifth of one.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.writes + 0.2 * self.reads
    }
}

impl Report {
    /// Those who had the key are in the order in which they came.
    fn unfairness(&self) -> f64 {
        let last_grant = self.waits.iter().map(|wait| wait.came + wait.waited).max().unwrap_or_default();
        let last_in_line = last_grant - self.waits.last().map_or(0, |wait| wait.came);
        let first_half = &self.waits[..self.waits.len() / 2];
        let longest = first_half.iter().map(|wait| wait.waited).max().unwrap_or_default();
        longest as f64 / last_in_line.max(1) as f64
    }
}
