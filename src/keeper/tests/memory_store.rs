//! Rows in memory, changed as the protocol's requests say, with delays and failures on demand.

mod rows;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::support::TestClock;
use crate::clock::Clock as _;
use crate::protocol::{Answer, Failure, FailureKind, Outcome, OwnerId, Request, Row};
use crate::store::{Lock, StateAnswer, StateOutcome, StateRequest, StateWrite, Store};

/// What happens to one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub(super) on_the_way: Duration,
    pub(super) applied: bool,
    pub(super) on_the_way_back: Duration,
    pub(super) failed: Option<FailureKind>,
    pub(super) panics: bool,
}

impl Fate {
    pub(super) const USUAL: Self = Self {
        on_the_way: Duration::from_millis(2),
        applied: true,
        on_the_way_back: Duration::from_millis(3),
        failed: None,
        panics: false,
    };

    pub(super) const PANIC: Self = Self { panics: true, ..Self::USUAL };

    /// Applied, and never answered.
    pub(super) const UNANSWERED: Self = Self { on_the_way_back: Duration::MAX, ..Self::USUAL };

    /// Neither applied nor answered.
    pub(super) const SWALLOWED: Self = Self { on_the_way: Duration::MAX, ..Self::USUAL };

    pub(super) const fn failed(kind: FailureKind) -> Self {
        Self { applied: false, failed: Some(kind), ..Self::USUAL }
    }

    /// Applied, and answered this much later.
    pub(super) const fn slow(by: Duration) -> Self {
        Self { on_the_way_back: by, ..Self::USUAL }
    }
}

type DecideState = Box<dyn FnMut(&str, &StateRequest) -> Fate + Send>;

/// A state, and which transaction wrote it.
#[derive(Clone, Debug)]
pub(super) struct KeptState {
    pub(super) counter: u64,
    pub(super) write: StateWrite,
}

type Decide = Box<dyn FnMut(&str, &Request) -> Fate + Send>;

#[derive(Clone)]
pub(super) struct MemoryStore {
    clock: TestClock,
    state: Arc<Mutex<State>>,
}

struct State {
    rows: HashMap<String, Row>,
    log: Vec<(String, Request)>,
    decide: Decide,
    states: HashMap<String, KeptState>,
    state_log: Vec<(String, StateRequest)>,
    decide_state: DecideState,
    connections_dropped: usize,
    warmed: usize,
    /// How long it takes to make a connection ahead.
    warming: Duration,
    cancelled: usize,
    /// Whether answers have a `Date`.
    dates: bool,
}

impl MemoryStore {
    pub(super) fn new(clock: TestClock) -> Self {
        let state = State {
            rows: HashMap::new(),
            log: Vec::new(),
            decide: Box::new(|_, _| Fate::USUAL),
            states: HashMap::new(),
            state_log: Vec::new(),
            decide_state: Box::new(|_, _| Fate::USUAL),
            connections_dropped: 0,
            warmed: 0,
            warming: Duration::ZERO,
            cancelled: 0,
            dates: true,
        };
        Self { clock, state: Arc::new(Mutex::new(state)) }
    }

    /// From here on each request's fate is decided by this.
    pub(super) fn decide(&self, decide: impl FnMut(&str, &Request) -> Fate + Send + 'static) {
        self.state.lock().unwrap().decide = Box::new(decide);
    }

    /// The same for requests about states.
    pub(super) fn decide_state(&self, decide: impl FnMut(&str, &StateRequest) -> Fate + Send + 'static) {
        self.state.lock().unwrap().decide_state = Box::new(decide);
    }

    pub(super) fn state_of(&self, key: &str) -> Option<KeptState> {
        self.state.lock().unwrap().states.get(key).cloned()
    }

    /// The text of the state that is kept.
    pub(super) fn value(&self, key: &str) -> Option<String> {
        self.state_of(key)?.write.value.map(|value| value.get().to_owned())
    }

    /// The transactions that were sent for this key.
    pub(super) fn writes(&self, key: &str) -> Vec<StateWrite> {
        let state = self.state.lock().unwrap();
        let of_key = state.state_log.iter().filter(|(at, _)| at == key);
        of_key
            .filter_map(
                |(_, request)| if let StateRequest::Write(write) = request { Some(write.clone()) } else { None },
            )
            .collect()
    }

    /// From here on no answer has a `Date`.
    pub(super) fn leave_out_dates(&self) {
        self.state.lock().unwrap().dates = false;
    }

    pub(super) fn row(&self, key: &str) -> Row {
        self.state.lock().unwrap().rows.get(key).cloned().unwrap_or(Row::Absent)
    }

    pub(super) fn put(&self, key: &str, row: Row) {
        self.state.lock().unwrap().rows.insert(key.to_owned(), row);
    }

    pub(super) fn owner(&self, key: &str) -> Option<OwnerId> {
        match self.row(key) {
            Row::Held(held) => Some(held.owner),
            _ => None,
        }
    }

    pub(super) fn is_free(&self, key: &str) -> bool {
        matches!(self.row(key), Row::Free { .. })
    }

    /// The requests for this key that `which` picks.
    pub(super) fn requests(&self, key: &str, which: impl Fn(&Request) -> bool) -> Vec<Request> {
        let state = self.state.lock().unwrap();
        state
            .log
            .iter()
            .filter(|(at, request)| at == key && which(request))
            .map(|(_, request)| request.clone())
            .collect()
    }

    pub(super) fn renewals(&self, key: &str) -> usize {
        self.requests(key, |request| matches!(request, Request::Renew { .. })).len()
    }

    pub(super) fn connections_dropped(&self) -> usize {
        self.state.lock().unwrap().connections_dropped
    }

    /// How often a connection was made ahead of its first request.
    pub(super) fn warmed(&self) -> usize {
        self.state.lock().unwrap().warmed
    }

    /// From here on it takes so long to make a connection ahead.
    pub(super) fn warms_in(&self, warming: Duration) {
        self.state.lock().unwrap().warming = warming;
    }

    /// How many requests were dropped without an answer.
    pub(super) fn cancelled(&self) -> usize {
        self.state.lock().unwrap().cancelled
    }
}

impl Store for MemoryStore {
    async fn send(&self, lock: &Lock, request: Request, limit: Duration) -> Answer {
        let fate = {
            let mut state = self.state.lock().unwrap();
            state.log.push((lock.key.clone(), request.clone()));
            (state.decide)(&lock.key, &request)
        };
        let mut dropped = CountIfDropped { store: self, answered: false };
        let outcome = timeout(limit, async {
            sleep(fate.on_the_way).await;
            assert!(!fate.panics, "injected");
            let outcome = fate.applied.then(|| self.apply(lock, request));
            sleep(fate.on_the_way_back).await;
            let failed = fate.failed.unwrap_or(FailureKind::Server);
            outcome
                .filter(|_| fate.failed.is_none())
                .unwrap_or_else(|| Outcome::Failed(Failure::new(failed, "injected")))
        })
        .await;
        dropped.answered = true;
        match outcome {
            Ok(outcome) => {
                let date = self.clock.now().wall.as_millis() / 1000;
                Answer::new(outcome, Some(date).filter(|_| self.state.lock().unwrap().dates))
            }
            Err(_) => Answer::new(Outcome::Failed(Failure::new(FailureKind::Timeout, "no answer")), None),
        }
    }

    async fn send_state(&self, lock: &Lock, request: StateRequest, limit: Duration) -> StateAnswer {
        let fate = {
            let mut state = self.state.lock().unwrap();
            state.state_log.push((lock.key.clone(), request.clone()));
            (state.decide_state)(&lock.key, &request)
        };
        let failed = |kind| StateOutcome::Failed(Failure::new(kind, "injected"));
        let outcome = timeout(limit, async {
            sleep(fate.on_the_way).await;
            let outcome = fate.applied.then(|| self.apply_state(&lock.key, &request));
            sleep(fate.on_the_way_back).await;
            let kind = fate.failed.unwrap_or(FailureKind::Server);
            outcome.filter(|_| fate.failed.is_none()).unwrap_or_else(|| failed(kind))
        });
        let outcome = outcome.await.unwrap_or_else(|_| failed(FailureKind::Timeout));
        StateAnswer { date: Some(self.clock.now().wall.as_millis() / 1000), ..StateAnswer::new(outcome) }
    }

    async fn warm_up(&self) {
        let warming = {
            let mut state = self.state.lock().unwrap();
            state.warmed += 1;
            state.warming
        };
        sleep(warming).await;
    }

    fn drop_connections(&self) {
        self.state.lock().unwrap().connections_dropped += 1;
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

struct CountIfDropped<'a> {
    store: &'a MemoryStore,
    answered: bool,
}

impl Drop for CountIfDropped<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.store.state.lock().unwrap().cancelled += 1;
        }
    }
}
