//! What contenders saw on held rows, kept for as long as the keeper lives.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;

use super::{OwnerId, Version};
use crate::clock::Now;

/// Names a lock among all that one keeper may see: its table and key.
pub type Subject = Arc<str>;

/// (owner, version) as a contender saw it first, and when on its own clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Observation {
    /// Whose the row was.
    pub owner: OwnerId,
    /// Its version.
    pub version: Version,
    /// The row's lease.
    pub lease: Duration,
    /// The moment of the answer that first showed it.
    pub since: Now,
}

/// A bounded memory of observations: the least recently used goes first, but none that is waited on.
#[derive(Clone, Debug)]
pub struct Observations {
    seen: LruCache<Subject, Entry>,
    capacity: usize,
    /// What the mutant `UnknownAttemptsPerKeeper` shares and nobody should.
    #[cfg(feature = "simulation")]
    shared_attempts: std::collections::BTreeMap<Subject, Vec<OwnerId>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
            shared_attempts: std::collections::BTreeMap::new(),
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
        version: Version,
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
        // An entry that is waited on goes back to the front; once each was looked at, all that are left are waited on.
        for _ in 0..self.seen.len() {
            if self.seen.len() <= self.capacity {
                break;
            }
            if let Some((subject, entry)) = self.seen.pop_lru()
                && entry.waiters > 0
            {
                self.seen.put(subject, entry);
            }
        }
    }
}

impl Default for Observations {
    fn default() -> Self {
        Self::new()
    }
}

// The same memory, least recently used entries in the same order.
impl PartialEq for Observations {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(feature = "simulation")]
        if self.shared_attempts != other.shared_attempts {
            return false;
        }
        self.capacity == other.capacity && self.seen.iter().eq(other.seen.iter())
    }
}

impl Eq for Observations {}

impl Hash for Observations {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.capacity.hash(state);
        state.write_usize(self.seen.len());
        for entry in &self.seen {
            entry.hash(state);
        }
        #[cfg(feature = "simulation")]
        self.shared_attempts.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Mono, Wall};

    const LEASE: Duration = Duration::from_secs(4);

    fn at(mono: u64, wall: u64) -> Now {
        Now { mono: Mono::from_origin(Duration::from_secs(mono)), wall: Wall::from_epoch(Duration::from_secs(wall)) }
    }

    fn subject(number: usize) -> Subject {
        Arc::from(format!("key-{number}"))
    }

    #[test]
    fn a_count_goes_on_while_nothing_changes_and_starts_again_otherwise() {
        let mut seen = Observations::new();
        let (key, one, two) = (subject(0), OwnerId::from_u128(1), OwnerId::from_u128(2));
        assert_eq!(seen.record(&key, one, Version::Counter(7), LEASE, at(10, 100)).since, at(10, 100));
        assert_eq!(seen.record(&key, one, Version::Counter(7), LEASE, at(11, 101)).since, at(10, 100));
        assert_eq!(
            seen.record(&key, one, Version::Counter(8), LEASE, at(12, 102)).since,
            at(12, 102),
            "another version"
        );
        assert_eq!(seen.record(&key, two, Version::Counter(8), LEASE, at(13, 103)).since, at(13, 103), "another owner");
        assert_eq!(
            seen.record(&key, two, Version::Counter(8), LEASE, at(14, 90)).since,
            at(14, 90),
            "a wall clock gone back"
        );
    }

    #[test]
    fn the_least_recently_used_goes_first_but_none_that_is_waited_on() {
        let mut seen = Observations::new();
        let owner = OwnerId::from_u128(1);
        seen.pin(&subject(0));
        for number in 0..=Observations::CAPACITY {
            seen.record(&subject(number), owner, Version::Counter(1), LEASE, at(0, 0));
        }
        assert_eq!(seen.len(), 4_096);
        assert!(seen.get(&subject(0)).is_some(), "waited on");
        assert!(seen.get(&subject(1)).is_none(), "the oldest that is not");
        assert!(seen.get(&subject(2)).is_some());

        seen.unpin(&subject(0));
        for number in 5_000..5_000 + Observations::CAPACITY {
            seen.record(&subject(number), owner, Version::Counter(1), LEASE, at(0, 0));
        }
        assert!(seen.get(&subject(0)).is_none());
    }

    #[test]
    fn what_all_wait_on_may_be_more_than_the_capacity() {
        let mut seen = Observations::with_capacity(2);
        for number in 0..5 {
            seen.pin(&subject(number));
            seen.record(&subject(number), OwnerId::from_u128(1), Version::Counter(1), LEASE, at(0, 0));
        }
        assert_eq!(seen.len(), 5);
        for number in 0..5 {
            seen.unpin(&subject(number));
        }
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn a_row_seen_free_leaves_nothing_behind() {
        let mut seen = Observations::new();
        seen.pin(&subject(0));
        seen.record(&subject(0), OwnerId::from_u128(1), Version::Counter(1), LEASE, at(0, 0));
        seen.forget(&subject(0));
        assert!(seen.get(&subject(0)).is_none());
        seen.unpin(&subject(0));
        assert!(seen.is_empty());
    }
}
