//! What became of each record of a batch.

use std::fmt;
use std::sync::Arc;

use super::source::Source;
use crate::error::Error;
use crate::metrics::COUNTERS;

/// What became of a record.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The handler was done with it.
    Done,
    /// It is to come back.
    Failed(Cause),
}

/// Why a record is to come back.
#[derive(Clone, Debug)]
pub(super) enum Cause {
    /// No lease, none any more, no key, no time, or not what the handler takes.
    Error(Arc<Error>),
    /// The handler's own error, as it shows itself.
    Handler(String),
    /// The handler panicked, with this message.
    Panicked(String),
    /// Another one has to be done before it.
    Behind(usize),
}

/// The outcomes of a batch, as they come in. An outcome is final.
#[derive(Debug)]
pub(super) struct Ledger {
    ids: Vec<String>,
    /// For each record the next one in its line.
    next: Vec<Option<usize>>,
    outcomes: Vec<Option<Outcome>>,
    unsettled: usize,
    /// Those that nobody has asked for yet.
    newly_settled: Vec<usize>,
}

impl Ledger {
    /// `behind` says for each record which one is before it in its line.
    pub(super) fn new(ids: Vec<String>, behind: &[Option<usize>]) -> Self {
        let mut next = vec![None; ids.len()];
        for (record, before) in behind.iter().enumerate() {
            if let Some(slot) = before.and_then(|before| next.get_mut(before)) {
                *slot = Some(record);
            }
        }
        Self { outcomes: vec![None; ids.len()], unsettled: ids.len(), ids, next, newly_settled: Vec::new() }
    }

    /// The records that came to an outcome since this was last asked.
    pub(super) fn take_newly_settled(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.newly_settled)
    }

    pub(super) const fn has_newly_settled(&self) -> bool {
        !self.newly_settled.is_empty()
    }

    /// How many records have no outcome yet.
    pub(super) const fn unsettled(&self) -> usize {
        self.unsettled
    }

    pub(super) fn is_settled(&self, record: usize) -> bool {
        self.outcomes.get(record).is_none_or(Option::is_some)
    }

    /// The handler was done with it.
    pub(super) fn done(&mut self, record: usize) {
        if self.settle(record, Outcome::Done) {
            COUNTERS.records_done.add_one();
        }
    }

    /// It is to come back, and with it all that stands behind it in its line; answers which ones had no outcome before.
    pub(super) fn fail(&mut self, record: usize, cause: Cause) -> Vec<usize> {
        if !self.settle(record, Outcome::Failed(cause.clone())) {
            return Vec::new();
        }
        self.note(record, &cause);
        let (mut failed, mut before) = (vec![record], record);
        while let Some(later) = self.next.get(before).copied().flatten() {
            if !self.settle(later, Outcome::Failed(Cause::Behind(before))) {
                break;
            }
            self.note(later, &Cause::Behind(before));
            failed.push(later);
            before = later;
        }
        failed
    }

    /// The ids of what is to come back, as the source has to be told.
    pub(super) fn reported(&self, source: Source) -> Vec<String> {
        let failed = self.outcomes.iter().zip(&self.ids).filter(|(outcome, _)| !matches!(outcome, Some(Outcome::Done)));
        let ids = failed.map(|(_, id)| id.clone());
        // Lambda goes on from the lowest sequence number; all after it is still to be done.
        if source == Source::Stream { ids.take(1).collect() } else { ids.collect() }
    }

    /// What is wrong with the setup, where nothing was done for it.
    pub(super) fn into_error_of_the_setup(self) -> Option<Error> {
        let mut found = None;
        for outcome in self.outcomes {
            match outcome {
                Some(Outcome::Done) => return None,
                Some(Outcome::Failed(Cause::Error(error))) if error.is_of_the_setup() => found = Some(error),
                _ => {}
            }
        }
        Arc::into_inner(found?)
    }

    fn settle(&mut self, record: usize, outcome: Outcome) -> bool {
        match self.outcomes.get_mut(record) {
            Some(open @ None) => {
                *open = Some(outcome);
                self.unsettled -= 1;
                self.newly_settled.push(record);
                true
            }
            _ => false,
        }
    }

    fn note(&self, record: usize, cause: &Cause) {
        COUNTERS.records_failed.add_one();
        let id = self.id(record);
        match cause {
            Cause::Behind(before) => {
                tracing::info!(
                    record = id,
                    before = self.id(*before),
                    "a record is reported, as it stands behind another"
                );
            }
            Cause::Error(error) if matches!(**error, Error::LeaseBusy(_)) => {
                tracing::info!(record = id, %cause, "a record is reported, as its key is busy");
            }
            Cause::Handler(_) | Cause::Panicked(_) => {
                tracing::error!(record = id, %cause, "a record is reported, as its handler failed");
            }
            Cause::Error(_) => {
                tracing::warn!(record = id, %cause, "a record is reported, as it could not be worked on")
            }
        }
    }

    pub(super) fn id(&self, record: usize) -> &str {
        self.ids.get(record).map_or("", String::as_str)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => write!(f, "{}: {error}", error.error_type()),
            Self::Handler(error) => f.write_str(error),
            Self::Panicked(message) => write!(f, "it panicked: {message}"),
            Self::Behind(_) => f.write_str("another record has to be done before it"),
        }
    }
}
