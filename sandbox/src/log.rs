//! The event log: written by everybody, waited on by tests, printed as a timeline.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use crate::{EnvironmentId, Error, Event, EventKind, timeline::Timeline};

/// Everything that happened in a sandbox, in order; clones share it.
#[derive(Debug, Clone)]
pub struct Log {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    started: Instant,
    events: Mutex<Events>,
    count: watch::Sender<usize>,
}

/// The events that are kept, and how many of the first were forgotten.
#[derive(Debug, Default)]
struct Events {
    forgotten: usize,
    kept: VecDeque<Event>,
}

impl Events {
    fn len(&self) -> usize {
        self.forgotten + self.kept.len()
    }

    fn get(&self, index: usize) -> Option<&Event> {
        self.kept.get(index.checked_sub(self.forgotten)?)
    }
}

impl Log {
    pub(crate) fn new() -> Self {
        let shared = Shared { started: Instant::now(), events: Mutex::default(), count: watch::Sender::new(0) };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn push(&self, environment: Option<EnvironmentId>, init: u32, kind: EventKind) {
        let mut events = self.lock();
        // The time is taken under the lock, so that times never go back along the log.
        let at = self.shared.started.elapsed();
        let index = events.len();
        events.kept.push_back(Event { index, at, environment, init, kind });
        drop(events);
        self.shared.count.send_replace(index + 1);
    }

    /// The time by which events are noted, now.
    pub(crate) fn elapsed(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// Adds a remark of your own.
    pub fn note(&self, text: impl Into<String>) {
        self.push(None, 0, EventKind::Note(text.into()));
    }

    /// Forgets the events before place `index`, for runs so long that nobody can keep them all. The others keep their
    /// places; nothing that is forgotten is found any more, and whoever waits for it by its place waits for the first
    /// that is kept.
    pub fn forget_before(&self, index: usize) {
        let mut events = self.lock();
        let count = index.saturating_sub(events.forgotten).min(events.kept.len());
        events.kept.drain(..count);
        events.forgotten += count;
    }

    /// All events up to now.
    pub fn events(&self) -> Vec<Event> {
        self.lock().kept.iter().cloned().collect()
    }

    /// The events that `wanted` holds for.
    pub fn all(&self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        self.lock().kept.iter().filter(|event| wanted(event)).cloned().collect()
    }

    /// The first event that `wanted` holds for.
    pub fn find(&self, wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        self.lock().kept.iter().find(|event| wanted(event)).cloned()
    }

    /// How many events `wanted` holds for.
    pub fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.lock().kept.iter().filter(|event| wanted(event)).count()
    }

    /// How many events there are: a mark for [`wait_for_after`](Self::wait_for_after).
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until an event that `wanted` holds for is in the log, whether it comes or is already there.
    ///
    /// # Errors
    ///
    /// [`Error::NotSeen`], with the whole timeline, when it didn't come within `limit`.
    ///
    /// # Cancellation
    ///
    /// Dropping the future only ends the wait.
    pub async fn wait_for(&self, wanted: impl Fn(&Event) -> bool, limit: Duration) -> Result<Event, Error> {
        self.wait_for_after(0, wanted, limit).await
    }

    /// Like [`wait_for`](Self::wait_for), for events from place `mark` on.
    ///
    /// # Errors
    ///
    /// [`Error::NotSeen`] when it didn't come within `limit`.
    pub async fn wait_for_after(
        &self,
        mark: usize,
        wanted: impl Fn(&Event) -> bool,
        limit: Duration,
    ) -> Result<Event, Error> {
        let search = async {
            let mut from = mark;
            loop {
                let event = self.next_after(from).await;
                from = event.index + 1;
                if wanted(&event) {
                    return event;
                }
            }
        };
        let found = tokio::time::timeout(limit, search).await;
        found.map_err(|_| Error::NotSeen { limit, timeline: self.timeline().to_string() })
    }

    /// The event at place `index`, as soon as it is there: to follow the log as it grows.
    ///
    /// # Cancellation
    ///
    /// Dropping the future only ends the wait; no event is missed by it.
    pub async fn next_after(&self, index: usize) -> Event {
        let mut count = self.shared.count.subscribe();
        loop {
            let event = {
                let events = self.lock();
                events.get(index.max(events.forgotten)).cloned()
            };
            if let Some(event) = event {
                return event;
            }
            // The sender lives as long as `self`, so this only returns when there is more.
            if count.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Checks that the named steps happened in this order; other events may lie between them.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfOrder`] names the first step that isn't found after the one before it.
    pub fn in_order(&self, steps: &[Step<'_>]) -> Result<Vec<Event>, Error> {
        let events = self.events();
        let mut found: Vec<Event> = Vec::new();
        let mut after = "the start";
        for (name, wanted) in steps {
            let from = found.last().map_or(0, |event| event.index + 1);
            match events.iter().find(|event| event.index >= from && wanted(event)) {
                Some(event) => found.push(event.clone()),
                None => {
                    return Err(Error::OutOfOrder {
                        expected: (*name).to_owned(),
                        after: after.to_owned(),
                        timeline: self.timeline().to_string(),
                    });
                }
            }
            after = name;
        }
        Ok(found)
    }

    /// The log as text for people.
    pub fn timeline(&self) -> Timeline {
        Timeline::new(self.events())
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.shared.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A named step for [`Log::in_order`].
pub type Step<'a> = (&'a str, &'a dyn Fn(&Event) -> bool);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_forgotten_is_gone_and_the_rest_keeps_its_places() {
        let log = Log::new();
        for text in ["a", "b", "c"] {
            log.note(text);
        }
        log.forget_before(2);
        log.forget_before(1);
        assert_eq!((log.len(), log.events().len()), (3, 1));
        log.note("d");
        assert_eq!(log.next_after(3).await.kind, EventKind::Note("d".to_owned()));
        assert_eq!(log.next_after(0).await.index, 2);
        log.forget_before(usize::MAX);
        assert_eq!((log.len(), log.events().len()), (4, 0));
    }
}
