//! What one lease has taken, from its first attempt to its release: counted where its requests are sent and answered.

use std::sync::atomic::{AtomicU64, Ordering};

use super::counts::Counter;
use super::state::StateSort;
use crate::protocol::{Answer, Outcome, Request};
use crate::session::Counted;
use crate::store::{StateAnswer, StateOutcome};

/// The counts of one lease, which its task adds to and its session reads.
#[derive(Debug, Default)]
pub(super) struct LeaseCounts {
    waited_ms: AtomicU64,
    writes: Counter,
    reads: Counter,
    attempts: Counter,
    attempts_refused: Counter,
    attempts_unknown: Counter,
    undone: Counter,
    takeovers: Counter,
    renewals: Counter,
    renewal_failures: Counter,
    conditional_failures: Counter,
    request_failures: Counter,
    cleanup_failures: Counter,
    write_units: Consumption,
    read_units: Consumption,
}

/// What was consumed, as far as it was told at all.
#[derive(Debug, Default)]
struct Consumption {
    told: Counter,
    millionths: AtomicU64,
}

/// What a request is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// It would take a row that is free.
    Acquire,
    /// It would take a row from a holder whose lease is over.
    TakeOver,
    Renewal,
    Release,
    Read,
    /// It takes a place among those who wait.
    Ticket,
}

impl Sort {
    pub(super) const fn of(request: &Request) -> Self {
        match request {
            Request::Acquire { .. } => Self::Acquire,
            Request::TakeOver { .. } => Self::TakeOver,
            Request::Renew { .. } => Self::Renewal,
            Request::Release { .. } | Request::Park { .. } => Self::Release,
            Request::Read => Self::Read,
            Request::Ticket => Self::Ticket,
        }
    }

    /// As it stands in the log.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::TakeOver => "take over",
            Self::Renewal => "renew",
            Self::Release => "release",
            Self::Read => "look",
            Self::Ticket => "ticket",
        }
    }

    /// Whether it would take the row.
    pub(super) const fn is_attempt(self) -> bool {
        matches!(self, Self::Acquire | Self::TakeOver)
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    Applied,
    Refused,
    Unknown,
}

impl AttemptEnd {
    pub(super) const fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Failed(failure) if failure.kind.may_have_landed() => Self::Unknown,
            Outcome::Failed(_) | Outcome::Refused { .. } => Self::Refused,
            Outcome::Written { .. } | Outcome::Read { .. } | Outcome::Numbered { .. } => Self::Applied,
        }
    }
}

impl LeaseCounts {
    /// A request goes out.
    pub(super) fn sent(&self, sort: Sort) {
        match sort {
            Sort::Read => self.reads.add_one(),
            _ => self.writes.add_one(),
        }
        if sort.is_attempt() {
            self.attempts.add_one();
        }
    }

    /// A request was answered, or there will be no answer.
    pub(super) fn ended(&self, sort: Sort, answer: &Answer) {
        let units = if sort == Sort::Read { &self.read_units } else { &self.write_units };
        units.add(answer.consumed);
        match &answer.outcome {
            Outcome::Refused { .. } => self.conditional_failures.add_one(),
            Outcome::Failed(_) => self.request_failures.add_one(),
            Outcome::Written { .. } | Outcome::Read { .. } | Outcome::Numbered { .. } => {}
        }
        match (sort, &answer.outcome) {
            (Sort::Acquire | Sort::TakeOver, outcome) => match AttemptEnd::of(outcome) {
                AttemptEnd::Applied if sort == Sort::TakeOver => self.takeovers.add_one(),
                AttemptEnd::Applied => {}
                AttemptEnd::Refused => self.attempts_refused.add_one(),
                AttemptEnd::Unknown => self.attempts_unknown.add_one(),
            },
            (Sort::Renewal, Outcome::Written { .. }) => self.renewals.add_one(),
            (Sort::Renewal, _) => self.renewal_failures.add_one(),
            (Sort::Release, Outcome::Failed(_)) => self.cleanup_failures.add_one(),
            (Sort::Release | Sort::Read | Sort::Ticket, _) => {}
        }
    }

    /// A request about the lease's state goes out.
    pub(super) fn sent_state(&self, sort: StateSort) {
        match sort {
            StateSort::Read => self.reads.add_one(),
            StateSort::Write | StateSort::Release => self.writes.add_one(),
        }
    }

    /// A request about the lease's state was answered, or there will be no answer.
    pub(super) fn ended_state(&self, sort: StateSort, answer: &StateAnswer) {
        self.write_units.add(answer.consumed.writes);
        self.read_units.add(answer.consumed.reads);
        match &answer.outcome {
            StateOutcome::NotHeld(_) | StateOutcome::Changed(_) => self.conditional_failures.add_one(),
            StateOutcome::Failed(_) => {
                self.request_failures.add_one();
                if sort == StateSort::Release {
                    self.cleanup_failures.add_one();
                }
            }
            StateOutcome::Written | StateOutcome::Read(_) => {}
        }
    }

    /// The lease is granted.
    pub(super) fn granted(&self, waited_ms: u64) {
        self.waited_ms.store(waited_ms, Ordering::Relaxed);
    }

    /// A row that was taken is given back, or was lost, before the lease could be granted.
    pub(super) fn undone(&self) {
        self.undone.add_one();
    }

    /// The counts as they stand, each read by itself.
    pub(super) fn snapshot(&self, id: u64) -> Counted {
        Counted {
            id,
            waited_ms: self.waited_ms.load(Ordering::Relaxed),
            write_requests: self.writes.get(),
            read_requests: self.reads.get(),
            attempts: self.attempts.get(),
            attempts_refused: self.attempts_refused.get(),
            attempts_unknown: self.attempts_unknown.get(),
            grants_undone: self.undone.get(),
            takeovers: self.takeovers.get(),
            renewals: self.renewals.get(),
            renewal_failures: self.renewal_failures.get(),
            conditional_failures: self.conditional_failures.get(),
            request_failures: self.request_failures.get(),
            cleanup_failures: self.cleanup_failures.get(),
            write_unit_millionths: self.write_units.get(),
            read_unit_millionths: self.read_units.get(),
        }
    }
}

impl Consumption {
    fn add(&self, millionths: Option<u64>) {
        if let Some(millionths) = millionths {
            self.told.add_one();
            self.millionths.fetch_add(millionths, Ordering::Relaxed);
        }
    }

    fn get(&self) -> Option<u64> {
        (self.told.get() > 0).then(|| self.millionths.load(Ordering::Relaxed))
    }
}
