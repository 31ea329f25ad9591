//! What contenders saw on held rows, kept for as long as the keeper lives.

use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;

use super::OwnerId;
use crate::clock::Now;

/// Names a lock among all that one keeper may see: its table and key.
pub type Subject = Arc<str>;

/// (owner, version) as a contender saw it first, and when on its own clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Whose the row was.
    pub owner: OwnerId,
    /// Its version.
    pub version: u64,
    /// The row's lease.
    pub lease: Duration,
    /// The moment of the answer that first showed it.
    pub since: Now,
}

/// A bounded memory of observations: the least recently used goes first, but none that is waited on.
#[derive(Debug)]
pub struct Observations {
    seen: LruCache<Subject, Entry>,
    capacity: usize,
    /// What the mutant `UnknownAttemptsPerKeeper` shares and nobody should.
    #[cfg(feature = "simulation")]
    shared_attempts: std::collections::HashMap<Subject, Vec<OwnerId>>,
}

#[derive(Debug)]
struct Entry {
    observation: Option<Observation>,
    waiters: usize,
}

impl Observations {
    /// How many locks a keeper remembers, beyond those that are waited on.
    pub const CAPACITY: usize = 4096;

    /// An empty memory of the usual capacity.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }

    /// An empty memory of that capacity.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            seen: LruCache::unbounded(),
            capacity,
            #[cfg(feature = "simulation")]
            shared_attempts: std::collections::HashMap::new(),
        }
    }

    /// What is known about this lock.
    #[must_use]
    pub fn get(&self, subject: &Subject) -> Option<Observation> {
        self.seen.peek(subject).and_then(|entry| entry.observation)
    }

    /// Notes what an answer showed. The count goes on only while owner and version stay and the wall clock is not
    /// earlier than at its start.
    pub fn record(
        &mut self,
        subject: &Subject,
        owner: OwnerId,
        version: u64,
        lease: Duration,
        now: Now,
    ) -> Observation {
        let fresh = Observation { owner, version, lease, since: now };
        let entry = self.seen.get_or_insert_mut(subject.clone(), || Entry { observation: None, waiters: 0 });
        let kept = match entry.observation {
            Some(seen) if seen.owner == owner && seen.version == version && now.wall >= seen.since.wall => {
                Observation { lease, ..seen }
            }
            _ => fresh,
        };
        entry.observation = Some(kept);
        self.evict();
        kept
    }

    /// The row was seen free or gone.
    pub fn forget(&mut self, subject: &Subject) {
        if let Some(entry) = self.seen.peek_mut(subject) {
            entry.observation = None;
            if entry.waiters == 0 {
                self.seen.pop(subject);
            }
        }
    }

    /// A contender waits on this lock: its observation stays until [`unpin`](Self::unpin).
    pub fn pin(&mut self, subject: &Subject) {
        self.seen.get_or_insert_mut(subject.clone(), || Entry { observation: None, waiters: 0 }).waiters += 1;
    }

    /// The contender is done.
    pub fn unpin(&mut self, subject: &Subject) {
        if let Some(entry) = self.seen.peek_mut(subject) {
            entry.waiters = entry.waiters.saturating_sub(1);
            if entry.waiters == 0 && entry.observation.is_none() {
                self.seen.pop(subject);
            }
        }
        self.evict();
    }

    /// How many locks are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    #[cfg(feature = "simulation")]
    pub(super) fn shared_attempts(&mut self, subject: &Subject) -> &mut Vec<OwnerId> {
        self.shared_attempts.entry(subject.clone()).or_default()
    }

    fn evict(&mut self) {
        // Entries that are waited on go back to the front; there are never more of them than contenders, so the loop
        // is bounded by the entries there are.
        let mut looked_at = 0;
        while self.seen.len() > self.capacity && looked_at < self.seen.len() + self.capacity {
            looked_at += 1;
            match self.seen.pop_lru() {
                Some((subject, entry)) if entry.waiters > 0 => {
                    self.seen.put(subject, entry);
                }
                _ => {}
            }
        }
    }
}

impl Default for Observations {
    fn default() -> Self {
        Self::new()
    }
}
