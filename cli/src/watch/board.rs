//! What was seen so far, and what one look tells beside the one before. No clock in here: a look brings its time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use leasehold::protocol::HeldRow;

use crate::report::Event as Logged;
use crate::text::span;

/// How many events are kept for the view.
const EVENTS: usize = 200;
/// So many wait at once at most, as far as it is told.
const MOST_WAITING: usize = 10_000;

/// The rows of one look.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) held: BTreeMap<String, HeldRow>,
    /// Held rows beyond those.
    pub(super) more: u64,
    /// Rows that are no locks, or broken ones.
    pub(super) unusable: u64,
    pub(super) read_units: f64,
}

/// A held lock, as far as it was watched.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) row: HeldRow,
    /// When this owner was first seen.
    pub(super) since: Duration,
    /// Whether it held the lock already at the first look of all.
    pub(super) from_start: bool,
    /// When the row was first seen as it is now.
    pub(super) unchanged_since: Duration,
    /// Whether it was seen to change under this owner.
    pub(super) renewed: bool,
    overdue: bool,
}

/// What happened, as far as looks and log lines tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Acquired,
    Released,
    /// To another owner between two looks; how is not known.
    HandedOn,
    /// To another owner, after the lease had stood unrenewed for its whole length.
    TakenOver,
    /// Not renewed for its whole length.
    Overdue,
    Waiting,
    Refused,
    Lost,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Released => "released",
            Self::HandedOn => "handed on",
            Self::TakenOver => "taken over",
            Self::Overdue => "overdue",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Lost => "lost",
        }
    }
}

/// One event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) at: Duration,
    pub(super) kind: Kind,
    pub(super) key: String,
    pub(super) told: String,
}

/// Somebody who waits, by the log.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) since: Duration,
}

/// Everything that is known.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) looks: u64,
    pub(super) at: Duration,
    pub(super) held: BTreeMap<String, Held>,
    pub(super) more: u64,
    pub(super) unusable: u64,
    pub(super) read_units: f64,
    /// By key and request id; `None` where no log is read.
    pub(super) waiting: Option<BTreeMap<(String, String), Waiter>>,
    pub(super) events: VecDeque<Event>,
    /// Events that nobody has asked for yet.
    fresh: Vec<Event>,
    pub(super) lost: u64,
    pub(super) taken_over: u64,
}

impl Board {
    pub(super) fn new(with_log: bool) -> Self {
        Self {
            looks: 0,
            at: Duration::ZERO,
            held: BTreeMap::new(),
            more: 0,
            unusable: 0,
            read_units: 0.0,
            waiting: with_log.then(BTreeMap::new),
            events: VecDeque::new(),
            fresh: Vec::new(),
            lost: 0,
            taken_over: 0,
        }
    }

    /// The events since this was last asked.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.fresh)
    }

    pub(super) fn overdue(&self) -> usize {
        self.held.values().filter(|held| held.overdue).count()
    }

    /// A look that ended at this moment.
    pub(super) fn look(&mut self, at: Duration, seen: Seen) {
        let first = self.looks == 0;
        let before = std::mem::take(&mut self.held);
        for (key, was) in &before {
            if !seen.held.contains_key(key) && seen.more == 0 {
                let told = format!("by {}, seen held for {}", holder(&was.row), span(at.saturating_sub(was.since)));
                self.happened(at, Kind::Released, key, told);
            }
        }
        for (key, row) in seen.held {
            let now = match before.get(&key) {
                Some(was) if was.row.owner == row.owner => self.still(at, &key, was, row),
                was => {
                    if let Some(was) = was {
                        self.passed_on(at, &key, was, &row);
                    } else if !first {
                        self.happened(at, Kind::Acquired, &key, format!("by {}", holder(&row)));
                    }
                    Held { row, since: at, from_start: first, unchanged_since: at, renewed: false, overdue: false }
                }
            };
            self.held.insert(key, now);
        }
        self.looks += 1;
        self.at = at;
        self.more = seen.more;
        self.unusable = seen.unusable;
        self.read_units += seen.read_units;
    }

    /// The same owner's as before.
    fn still(&mut self, at: Duration, key: &str, was: &Held, row: HeldRow) -> Held {
        if was.row.version != row.version {
            return Held { row, unchanged_since: at, renewed: true, overdue: false, ..was.clone() };
        }
        let unchanged = at.saturating_sub(was.unchanged_since);
        let overdue = unchanged >= row.lease;
        if overdue && !was.overdue {
            let told = format!(
                "{} has not renewed its lease of {}; whoever wants the key may take it",
                holder(&row),
                span(row.lease)
            );
            self.happened(at, Kind::Overdue, key, told);
        }
        Held { row, overdue, ..was.clone() }
    }

    fn passed_on(&mut self, at: Duration, key: &str, was: &Held, row: &HeldRow) {
        let told = format!("by {}, from {}", holder(row), holder(&was.row));
        if at.saturating_sub(was.unchanged_since) >= was.row.lease {
            self.taken_over += 1;
            self.happened(at, Kind::TakenOver, key, told);
        } else {
            self.happened(at, Kind::HandedOn, key, told);
        }
    }

    /// What a log line says, read at this moment.
    pub(super) fn logged(&mut self, at: Duration, event: Logged) {
        let Some(waiting) = &mut self.waiting else { return };
        match event {
            Logged::Waiting { key, request_id, holder } => {
                if waiting.len() >= MOST_WAITING {
                    // Who ended without a line would stay for ever.
                    let oldest = waiting.iter().min_by_key(|(_, waiter)| waiter.since).map(|(of, _)| of.clone());
                    oldest.and_then(|oldest| waiting.remove(&oldest));
                }
                waiting.insert((key.clone(), request_id.clone()), Waiter { since: at });
                let holder = holder.unwrap_or_else(|| "an unnamed holder".to_owned());
                self.happened(at, Kind::Waiting, &key, format!("request {request_id}, for {holder}"));
            }
            Logged::Acquired { key, request_id, .. } | Logged::Cancelled { key, request_id } => {
                waiting.remove(&(key, request_id));
            }
            Logged::Busy { key, request_id, .. } => {
                waiting.remove(&(key.clone(), request_id.clone()));
                self.happened(at, Kind::Refused, &key, format!("request {request_id}: busy"));
            }
            Logged::Failed { key, request_id, reason } => {
                waiting.remove(&(key.clone(), request_id.clone()));
                self.happened(at, Kind::Refused, &key, format!("request {request_id}: {reason}"));
            }
            Logged::Lost { key, request_id, reason } => {
                self.lost += 1;
                self.happened(at, Kind::Lost, &key, format!("request {request_id}: {reason}"));
            }
            _ => {}
        }
    }

    fn happened(&mut self, at: Duration, kind: Kind, key: &str, told: String) {
        let event = Event { at, kind, key: key.to_owned(), told };
        self.fresh.push(event.clone());
        self.events.push_front(event);
        self.events.truncate(EVENTS);
    }
}

/// The holder in a few words, as they stand on the row.
pub(super) fn holder(row: &HeldRow) -> String {
    row.holder.as_ref().map_or_else(|| format!("owner {}", row.owner), ToString::to_string)
}

#[cfg(test)]
mod tests;
