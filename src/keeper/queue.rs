//! Who of one keeper wants the same key: first come, first served, and only the first in line talks to the store.
//!
//! Acquisitions of one keeper know of each other, so they need not ask DynamoDB whether one of them is done: who waits is
//! woken by who leaves. A place in line is taken with the `acquire` line and kept until the lease is over in whatever way;
//! dropping it leaves, so that nothing that happens to one task can hold up those behind it.
//!
//! Other keepers are not in this line. They see the row free between a release and the next acquire of it, for as long as
//! a request takes: too short for who polls. So a key is handed on within one keeper for [`STREAK`] at most; then the next
//! in line lets it be free for a [`BREAK`], within which who waits elsewhere looks. Where the row tells of nobody who waits,
//! that is after a [`LONG_STREAK`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{Clock, Mono, Now};
use crate::protocol::{Busy, Format, Hints, HolderInfo, Subject, Validity, Verdict};
use crate::store::Lock;

/// For how long a key goes from one acquisition of this keeper to the next without a break.
pub(super) const STREAK: Duration = Duration::from_secs(5);
/// For how long it does where nobody has taken a ticket since a break that nobody made use of. Tickets are hints, and who
/// waits by the clock takes none, so there is a break all the same.
pub(super) const LONG_STREAK: Duration = Duration::from_secs(30);
/// For how long it is left free then. Within it who is next elsewhere looks: after 100 ms by tickets, after the backoff's
/// longest delay with its jitter by the clock.
pub(super) const BREAK: Duration = Duration::from_millis(600);

/// A row, in the format that it is spoken to.
type Name = (Format, Subject);

/// The lines of one keeper.
#[derive(Debug)]
pub(super) struct Queues {
    clock: Arc<dyn Clock>,
    lines: Mutex<HashMap<Name, Line>>,
}

/// Those who want one row, who has it first.
#[derive(Debug, Default)]
struct Line {
    places: VecDeque<Entry>,
    /// The number that was given out last.
    last: u64,
    known: Known,
    /// Since when the key has been handed on with nobody else having had a chance.
    since: Option<Mono>,
    /// Until when it is left free for others, whoever is first meanwhile.
    break_until: Option<Mono>,
    /// What the row said of those who wait when it was last taken.
    hints: Hints,
    /// The last ticket of those who let a whole break go by: they have had their turn, or are gone.
    passed: u64,
}

impl Line {
    /// Whether nobody elsewhere is known to have taken a ticket who has not had a chance. `served` does not tell: whoever was
    /// overtaken still waits.
    fn is_all_there_is(&self) -> bool {
        !self.hints.uncountable && self.hints.tickets.unwrap_or(0) <= self.passed
    }
}

#[derive(Debug)]
struct Entry {
    number: u64,
    turn: Arc<Notify>,
    /// Whether it is on its way out: nobody works under it, and nobody waits for it.
    over: bool,
    /// How long its lease may be believed, once it has one.
    validity: Option<Validity>,
}

/// What the first in line knows about who has the row.
#[derive(Clone, Debug, Default)]
pub(super) enum Known {
    #[default]
    Nothing,
    /// It has asked, and has no answer yet; the lease that it wants is so long.
    Asked { lock: Arc<Lock>, lease: Duration },
    /// It has it itself.
    Own { lock: Arc<Lock>, acquired_at: u64, until: Mono },
    /// What it would have been told at this moment, had its time been over.
    Verdict(Verdict, Mono),
}

impl Known {
    /// Who holds the row, or who wants it and comes first, as far as that is known.
    pub(super) fn holder(&self) -> Option<Box<HolderInfo>> {
        match self {
            Self::Own { lock, acquired_at, .. } => {
                Some(Box::new(HolderInfo { acquired_at: Some(*acquired_at), ..lock.holder.clone() }))
            }
            // It has acquired nothing yet.
            Self::Asked { lock, .. } => Some(Box::new(HolderInfo { acquired_at: None, ..lock.holder.clone() })),
            Self::Verdict(Verdict::Busy(busy), _) => busy.holder.clone(),
            Self::Verdict(..) | Self::Nothing => None,
        }
    }

    /// What one is told who waited behind it and sent nothing.
    pub(super) fn verdict(&self, now: Mono, waited: Duration) -> Verdict {
        let retry_after = match self {
            // What stood in the way of the first stood in the way of all.
            Self::Verdict(verdict @ (Verdict::Failed(_) | Verdict::Unusable(_)), _) => return verdict.clone(),
            Self::Own { until, .. } => until.since(now),
            // Should the row be its by now.
            Self::Asked { lease, .. } => *lease,
            Self::Verdict(Verdict::Busy(busy), at) => busy.retry_after.saturating_sub(now.since(*at)),
            Self::Verdict(..) | Self::Nothing => Duration::ZERO,
        };
        Verdict::Busy(Busy { holder: self.holder(), waited, attempts: 0, retry_after })
    }
}

impl Queues {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, lines: Mutex::default() }
    }

    /// The last place in the row's line.
    pub(super) fn join(self: &Arc<Self>, format: Format, subject: &Subject) -> Place {
        let name = (format, subject.clone());
        let turn = Arc::new(Notify::new());
        let mut lines = self.lines();
        let line = lines.entry(name.clone()).or_default();
        line.last += 1;
        let number = line.last;
        line.places.push_back(Entry { number, turn: turn.clone(), over: false, validity: None });
        drop(lines);
        Place { queues: self.clone(), name, number, turn }
    }

    /// How many places are taken, in all lines.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lines().values().map(|line| line.places.len()).sum()
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Name, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in line; dropping it leaves.
#[derive(Debug)]
pub(super) struct Place {
    queues: Arc<Queues>,
    name: Name,
    number: u64,
    turn: Arc<Notify>,
}

impl Place {
    pub(super) fn is_first(&self) -> bool {
        self.look(|line, number| line.places.front().is_some_and(|first| first.number == number))
    }

    /// Waits until it is the first.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn first(&self) {
        while !self.is_first() {
            self.turn.notified().await;
        }
    }

    /// Whether somebody ahead wants or has the key: not who is on its way out, nor who may no longer believe in its lease
    /// and has not noticed yet, as after a pause.
    pub(super) fn is_behind_others(&self, now: Now) -> bool {
        self.look(|line, number| {
            let is_over = |entry: &Entry| entry.over || entry.validity.is_some_and(|held| held.left(now).is_zero());
            line.places.iter().take_while(|entry| entry.number != number).any(|entry| !is_over(entry))
        })
    }

    /// For how long the first is to let the key be free for other keepers, now that its turn has come. One that waits
    /// `by_tickets` takes it that those elsewhere do so as well.
    pub(super) fn take_break(&self, now: Mono, by_tickets: bool) -> Option<Duration> {
        self.look(|line, _| {
            let streak = if by_tickets && line.is_all_there_is() { LONG_STREAK } else { STREAK };
            if line.since.is_some_and(|since| now.since(since) >= streak) {
                line.break_until = Some(now + BREAK);
                line.since = line.break_until;
            }
            // One that began the break may be gone, or had no time for all of it.
            line.break_until.map(|until| until.since(now)).filter(|left| !left.is_zero())
        })
    }

    /// Whether the last one that asked the store did not get the row.
    pub(super) fn was_in_vain(&self) -> bool {
        self.look(|line, _| matches!(line.known, Known::Verdict(..)))
    }

    pub(super) fn known(&self) -> Known {
        self.look(|line, _| line.known.clone())
    }

    /// It asks the store now. What the one before it found out tells more.
    pub(super) fn asks(&self, lock: &Arc<Lock>, lease: Duration) {
        if matches!(self.known(), Known::Nothing | Known::Asked { .. }) {
            self.wants(lock, lease);
        }
    }

    /// It goes on asking, and nobody is known to hold the row.
    pub(super) fn wants(&self, lock: &Arc<Lock>, lease: Duration) {
        self.look(|line, number| {
            if line.places.front().is_some_and(|first| first.number == number) {
                line.known = Known::Asked { lock: lock.clone(), lease };
            }
        });
    }

    /// It was answered, and this is what came of it so far.
    pub(super) fn tell(&self, verdict: Verdict, now: Mono) {
        self.look(|line, number| {
            if line.places.front().is_some_and(|first| first.number == number) {
                let is_others = matches!(&verdict, Verdict::Busy(busy) if busy.holder.is_some());
                // Somebody else had it, so there was a chance.
                if is_others {
                    (line.since, line.break_until, line.passed) = (None, None, 0);
                }
                line.known = Known::Verdict(verdict, now);
            }
        });
    }

    /// It has taken the row, which says so much of those who wait.
    pub(super) fn took(&self, hints: Hints, now: Mono) {
        self.look(|line, _| {
            let was_used = hints.served != line.hints.served;
            line.hints = hints;
            // Tickets only grow, until the row is deleted and begins anew.
            if hints.tickets.unwrap_or(0) < line.passed {
                line.passed = 0;
            }
            if line.break_until.take_if(|until| now >= *until).is_some() && !was_used {
                line.passed = hints.tickets.unwrap_or(0);
            }
        });
    }

    /// It has the row.
    pub(super) fn hold(&self, lock: &Arc<Lock>, acquired_at: u64, validity: Validity, now: Now) {
        self.look(|line, number| {
            // Of the lease nine tenths are believed.
            let until = now.mono + validity.left(now) * 10 / 9;
            line.known = Known::Own { lock: lock.clone(), acquired_at, until };
            if let Some(entry) = line.places.iter_mut().find(|entry| entry.number == number) {
                entry.validity = Some(validity);
            }
        });
    }

    /// It is on its way out.
    pub(super) fn over(&self) {
        self.look(|line, number| {
            if let Some(entry) = line.places.iter_mut().find(|entry| entry.number == number) {
                entry.over = true;
            }
        });
    }

    /// Does something with the line, which is there for as long as this place is.
    fn look<T: Default>(&self, look: impl FnOnce(&mut Line, u64) -> T) -> T {
        self.queues.lines().get_mut(&self.name).map(|line| look(line, self.number)).unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.queues.lines();
        let Some(line) = lines.get_mut(&self.name) else { return };
        let was_first = line.places.front().is_some_and(|first| first.number == self.number);
        line.places.retain(|entry| entry.number != self.number);
        match line.places.front() {
            None => drop(lines.remove(&self.name)),
            Some(next) if was_first => {
                next.turn.notify_one();
                line.since.get_or_insert_with(|| self.queues.clock.now().mono);
            }
            Some(_) => {}
        }
    }
}
