//! Counts what a store asked of DynamoDB.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::types::ConsumedCapacity;

use super::state::{Consumed, StateOutcome, StateRequest};
use crate::protocol::{Outcome, Request};

/// What a store asked of DynamoDB since it was made.
///
/// Capacity is what DynamoDB told: it tells nothing for a refused write, although that consumes as much as an applied
/// one; `refused` counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoreUsage {
    /// Requests to take a lease, takeovers aside.
    pub acquires: u64,
    /// Requests to take a lease over.
    pub takeovers: u64,
    /// Requests to extend a lease.
    pub renewals: u64,
    /// Requests to give a lease back.
    pub releases: u64,
    /// Requests to keep a row held, for nobody, until a minimum is over.
    pub parkings: u64,
    /// Requests for a place among those who wait.
    pub tickets: u64,
    /// Consistent reads.
    pub reads: u64,
    /// Transactions that save a state; a lease given back by one counts here.
    pub state_writes: u64,
    /// Of all of these, writes whose condition did not hold.
    pub refused: u64,
    /// Of all of these, those without a usable answer, given up ones among them.
    pub failed: u64,
    /// Write capacity units consumed.
    pub write_units: f64,
    /// Read capacity units consumed.
    pub read_units: f64,
}

/// Capacity comes in halves, and in transactions and on indexes in other fractions: millionths hold them all.
const PARTS: f64 = 1e6;

/// The counters behind [`StoreUsage`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    acquires: AtomicU64,
    takeovers: AtomicU64,
    renewals: AtomicU64,
    releases: AtomicU64,
    parkings: AtomicU64,
    tickets: AtomicU64,
    reads: AtomicU64,
    state_writes: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    write_parts: AtomicU64,
    read_parts: AtomicU64,
}

impl Counters {
    /// A request goes out.
    pub(super) fn sent(&self, request: &Request) {
        let counter = match request {
            Request::Acquire { .. } => &self.acquires,
            Request::TakeOver { .. } => &self.takeovers,
            Request::Renew { .. } => &self.renewals,
            Request::Release { .. } => &self.releases,
            Request::Park { .. } => &self.parkings,
            Request::Ticket => &self.tickets,
            Request::Read => &self.reads,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A request about a state goes out.
    pub(super) fn sent_state(&self, request: &StateRequest) {
        let counter = match request {
            StateRequest::Read => &self.reads,
            StateRequest::Write(_) => &self.state_writes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A request about a state is over.
    pub(super) fn ended_state(&self, outcome: &StateOutcome) {
        let counter = match outcome {
            StateOutcome::NotHeld(_) | StateOutcome::Changed(_) => &self.refused,
            StateOutcome::Failed(_) => &self.failed,
            StateOutcome::Written | StateOutcome::Read(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A request is over.
    pub(super) fn ended(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Refused { .. } => &self.refused,
            Outcome::Failed(_) => &self.failed,
            Outcome::Written { .. } | Outcome::Numbered { .. } | Outcome::Read { .. } => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A write was answered; tells what it consumed, in millionths of a unit.
    pub(super) fn wrote(&self, consumed: Option<&ConsumedCapacity>) -> Option<u64> {
        add(&self.write_parts, consumed)
    }

    /// A read was answered; tells what it consumed, in millionths of a unit.
    pub(super) fn read(&self, consumed: Option<&ConsumedCapacity>) -> Option<u64> {
        add(&self.read_parts, consumed)
    }

    /// A transaction was answered; tells what it consumed. One that was applied before consumes reads, and says so:
    /// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>
    pub(super) fn transacted(&self, consumed: &[ConsumedCapacity]) -> Consumed {
        let mut sum = Consumed::default();
        for of_table in consumed {
            let reads = of_table.read_capacity_units();
            let writes = of_table.write_capacity_units();
            // An endpoint that does not tell them apart means writes.
            let writes = if reads.is_none() && writes.is_none() { of_table.capacity_units() } else { writes };
            for (units, counter, sum) in
                [(writes, &self.write_parts, &mut sum.writes), (reads, &self.read_parts, &mut sum.reads)]
            {
                if let Some(parts) = units.map(parts) {
                    counter.fetch_add(parts, Ordering::Relaxed);
                    *sum = Some(sum.unwrap_or(0) + parts);
                }
            }
        }
        sum
    }

    /// The counters as they stand.
    pub(super) fn snapshot(&self) -> StoreUsage {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StoreUsage {
            acquires: of(&self.acquires),
            takeovers: of(&self.takeovers),
            renewals: of(&self.renewals),
            releases: of(&self.releases),
            parkings: of(&self.parkings),
            tickets: of(&self.tickets),
            reads: of(&self.reads),
            state_writes: of(&self.state_writes),
            refused: of(&self.refused),
            failed: of(&self.failed),
            write_units: of(&self.write_parts) as f64 / PARTS,
            read_units: of(&self.read_parts) as f64 / PARTS,
        }
    }
}

fn add(to: &AtomicU64, consumed: Option<&ConsumedCapacity>) -> Option<u64> {
    let parts = parts(consumed.and_then(ConsumedCapacity::capacity_units)?);
    to.fetch_add(parts, Ordering::Relaxed);
    Some(parts)
}

/// `as` saturates, and takes what is no number for 0.
fn parts(units: f64) -> u64 {
    (units * PARTS).round() as u64
}
