//! A request about a state that is under way: counted as it goes out, and once more when it ends, however that is.

use crate::keeper::lease_counts::LeaseCounts;
use crate::keeper::tally::Tally;
use crate::protocol::{Failure, FailureKind};
use crate::store::{StateAnswer, StateOutcome, StateRequest};

/// What a request about a state is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::keeper) enum StateSort {
    Read,
    Write,
    /// A transaction that frees the row as well.
    Release,
}

impl StateSort {
    pub(in crate::keeper) const fn of(request: &StateRequest) -> Self {
        match request {
            StateRequest::Read => Self::Read,
            StateRequest::Write(write) if write.release.is_some() => Self::Release,
            StateRequest::Write(_) => Self::Write,
        }
    }
}

/// One that was sent.
#[derive(Debug)]
pub(in crate::keeper) struct SentState<'a> {
    tally: &'a Tally,
    lease: &'a LeaseCounts,
    sort: StateSort,
    ended: bool,
}

impl<'a> SentState<'a> {
    pub(in crate::keeper) fn new((tally, lease): (&'a Tally, &'a LeaseCounts), sort: StateSort) -> Self {
        tally.counts.requests.add_one();
        lease.sent_state(sort);
        Self { tally, lease, sort, ended: false }
    }

    pub(in crate::keeper) fn end(mut self, answer: &StateAnswer) {
        self.count(answer);
    }

    fn count(&mut self, answer: &StateAnswer) {
        self.ended = true;
        self.lease.ended_state(self.sort, answer);
        let counts = &self.tally.counts;
        counts.consumed(answer.consumed.writes, false);
        counts.consumed(answer.consumed.reads, true);
        if let StateOutcome::Failed(failure) = &answer.outcome {
            counts.not_served(failure.kind);
        }
    }
}

impl Drop for SentState<'_> {
    /// Nobody waits for the answer any more, or the store panicked.
    fn drop(&mut self) {
        if !self.ended {
            let failure = Failure::new(FailureKind::Connection, "nobody waited for the answer");
            self.count(&StateAnswer::new(StateOutcome::Failed(failure)));
        }
    }
}
