//! Waiting by tickets: those who wait for one row number themselves on it, so that each knows about how many come before it
//! and how soon it is worth looking.
//!
//! All of it is hints. A ticket gives no right to the row, and nobody is kept from a free one by it: a wrong, lost or burnt
//! ticket costs looks, or a moment. Times are by the monotonic clock, which a freeze may stop: that costs a moment too.

mod latency;
mod looks;
#[cfg(test)]
mod tests;

use std::time::Duration;

use self::latency::Latency;
use crate::clock::Mono;
use crate::protocol::{HeldRow, Hints, Mutant, OwnerId, Rules};

/// So many tickets may be lost in one acquisition, by an answer that never came or a row that was made anew; after that it
/// waits without.
const MOST_LOST: u8 = 4;

/// A ticket this close behind the last one served is the next in turn, or what lies between is dead.
const NEAR: u64 = 4;

/// At most so many are passed over at once because they seem to be dead. Some of them live, and each of those then takes
/// itself for overtaken and looks as often as who is next: a crowd of them would be a herd.
const MOST_SKIPPED: u64 = 16;

/// Who comes before its turn lets the others have a free row first, for no longer than this, and long enough for one of them
/// to come.
const LONGEST_COURTESY: Duration = Duration::from_millis(250);
const SHORTEST_COURTESY: Duration = Duration::from_millis(2);

/// What one contender knows of the queue for its row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    ticket: Option<u64>,
    lost: u8,
    hints: Hints,
    latency: Latency,
    /// When the row was first seen to be held.
    refused: Option<Mono>,
    /// When the row was last seen.
    looked: Option<Mono>,
    holder: Option<Seen>,
    /// Whether the row was seen to go from one owner to another.
    moved_on: bool,
    /// The version at which the row was free at the last look.
    free_at: Option<u64>,
    /// Whether it was so at the one before as well.
    free_again: bool,
    rules: Rules,
}

/// The row's owner, and when it was first seen there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Seen {
    owner: OwnerId,
    since: Mono,
    /// How long before that the row was last seen: the hold began within it.
    gap: Option<Duration>,
}

/// What to do about a free row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Take it.
    Mine,
    /// Look again after this long: others come first, if they live.
    AfterOthers(Duration),
}

/// What to do about a held row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextLook {
    /// How long to wait before it.
    pub(super) after: Duration,
    /// Whether it is an attempt: the row is about to become free.
    pub(super) takes: bool,
}

impl Queue {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            ticket: None,
            lost: 0,
            hints: Hints::default(),
            latency: Latency::default(),
            refused: None,
            looked: None,
            holder: None,
            moved_on: false,
            free_at: None,
            free_again: false,
            rules,
        }
    }

    /// A request was answered after `took`; with `warm` it found a connection.
    pub(super) fn note_latency(&mut self, took: Duration, warm: bool) {
        self.latency.note(took, warm);
    }

    /// How long a request takes.
    pub(super) fn latency(&self) -> Duration {
        self.latency.get()
    }

    /// A ticket was taken: its number is what the row now says.
    pub(super) fn numbered(&mut self, hints: Hints) {
        self.ticket = hints.tickets;
        if self.ticket.is_none() {
            // What stands there is no number to count on.
            self.lost = MOST_LOST;
        }
    }

    /// No ticket came of a request for one: if the store took it, it is one that nobody has.
    pub(super) fn ticket_lost(&mut self) {
        self.ticket = None;
        self.lost = self.lost.saturating_add(1);
    }

    /// There are no tickets to be had here.
    pub(super) fn do_without(&mut self) {
        self.ticket = None;
        self.lost = MOST_LOST;
    }

    pub(super) const fn has_ticket(&self) -> bool {
        self.ticket.is_some()
    }

    /// Whether to ask for a ticket.
    pub(super) const fn wants_ticket(&self) -> bool {
        self.ticket.is_none() && self.lost < MOST_LOST && !self.hints.uncountable
    }

    /// The row was seen held.
    pub(super) fn saw_held(&mut self, held: &HeldRow, now: Mono) {
        let gap = self.looked.map(|looked| now.since(looked));
        if self.holder.is_none_or(|seen| seen.owner != held.owner) {
            self.moved_on |= self.holder.is_some();
            self.holder = Some(Seen { owner: held.owner, since: now, gap });
        }
        self.refused.get_or_insert(now);
        self.looked = Some(now);
        (self.free_at, self.free_again) = (None, false);
        self.read(held.hints);
    }

    /// The row was seen free.
    pub(super) fn saw_free(&mut self, version: u64, hints: Hints, now: Mono, fraction: f64) -> Turn {
        self.free_again = self.free_at == Some(version);
        self.free_at = Some(version);
        self.looked = Some(now);
        self.read(hints);
        let before = self.position().map_or(0, |position| u8::try_from(position.clamp(0, 16)).unwrap_or(0));
        if before <= 2 || (self.free_again && !self.rules.broken(Mutant::FreeRowLeftToOthers)) {
            return Turn::Mine;
        }
        let courtesy = self.latency().mul_f64(f64::from(before) / 2.0 * (0.75 + 0.5 * fraction));
        Turn::AfterOthers(courtesy.clamp(SHORTEST_COURTESY, LONGEST_COURTESY))
    }

    /// There is no row: what was counted on it is gone.
    pub(super) fn saw_none(&mut self, now: Mono) {
        self.looked = Some(now);
        (self.free_at, self.free_again) = (None, false);
        self.read(Hints::default());
    }

    fn read(&mut self, hints: Hints) {
        self.hints = hints;
        // A row that was swept and made anew counts from the start.
        if self.ticket.is_some_and(|ticket| hints.tickets.is_none_or(|tickets| tickets < ticket)) {
            self.ticket_lost();
        }
    }

    /// What an attempt writes to `served`. One of several that are as likely to be right: nobody's turn depends on it.
    pub(super) fn served(&self) -> Option<u64> {
        let (ticket, served) = (self.ticket?, self.hints.served.unwrap_or(0));
        if self.rules.broken(Mutant::ServedRunsAhead) {
            return Some(ticket + 1_000_000);
        }
        if ticket <= served {
            None
        } else if ticket - served <= NEAR {
            Some(ticket)
        } else if self.free_again {
            Some(ticket.min(served + MOST_SKIPPED))
        } else {
            Some(served + 1)
        }
    }

    /// How many turns there are until mine; 0 and less when it is over.
    fn position(&self) -> Option<i64> {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Some(signed(self.ticket?).saturating_sub(signed(self.hints.served.unwrap_or(0))))
    }
}
