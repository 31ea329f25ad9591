//! The double itself, as a test sees it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lambda_runtime::tower::{Service, ServiceExt as _};
use lambda_runtime::{Context, LambdaEvent};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Happened;
use super::state::{Health, State};
use crate::clock::{Clock as _, ManualClock};
use crate::protocol::{HolderInfo, OwnerId};
use crate::session::{CheckAnswer, FailKind};

/// How much time an event's invocation has unless the test says otherwise.
const REMAINING: Duration = Duration::from_secs(30);

/// A keeper in memory; clones are the same one. See the [module](super) for an example.
#[derive(Clone)]
pub struct TestKeeper {
    clock: ManualClock,
    state: Arc<Mutex<State>>,
}

impl TestKeeper {
    /// A keeper that holds nothing, at which everything is granted, with a clock that stands somewhere in 2030.
    #[must_use]
    pub fn new() -> Self {
        let clock = ManualClock::at(crate::clock::Wall::from_millis(1_900_000_000_000));
        let state = State::new(clock.clone());
        Self { clock, state: Arc::new(Mutex::new(state)) }
    }

    /// Lets time pass. Leases are renewed in the meantime unless [`stop_renewing`](Self::stop_renewing) was called, or their
    /// handlers told of no progress for a `max_silence`; holders elsewhere and waits come to their end.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.with(State::settle);
    }

    /// Lets somebody else hold the key, without end. It must be the whole key, with its namespace; where keys are hashed,
    /// what [`KeyHash`](crate::key::KeyHash) makes of it.
    ///
    /// A lease of the test's own on that key is lost by it, as by a takeover.
    pub fn hold_elsewhere(&self, key: impl Into<String>) {
        self.hold_elsewhere_as(key, HolderInfo { function: "elsewhere".to_owned(), ..HolderInfo::default() }, None);
    }

    /// Lets somebody else hold the key for this long: who asks for it in the meantime waits.
    pub fn hold_elsewhere_for(&self, key: impl Into<String>, duration: Duration) {
        let holder = HolderInfo { function: "elsewhere".to_owned(), ..HolderInfo::default() };
        self.hold_elsewhere_as(key, holder, Some(duration));
    }

    /// Lets this holder have the key, for so long or without end: it is what `LeaseBusy` tells about.
    pub fn hold_elsewhere_as(&self, key: impl Into<String>, holder: HolderInfo, duration: Option<Duration>) {
        let until = duration.map(|duration| self.clock.now().mono + duration);
        self.with(|state| state.give_away(key.into(), holder, until));
    }

    /// Ends what somebody else holds.
    pub fn free_elsewhere(&self, key: &str) {
        self.with(|state| state.free_elsewhere(key));
    }

    /// The handler's lease on this key is lost: somebody took the row over. Without such a lease nothing happens.
    pub fn lose(&self, key: &str) {
        self.with(|state| state.lose(key, "the row now belongs to another owner"));
    }

    /// No renewal is answered any more: as time is moved on, leases come to be at risk, then are lost.
    pub fn stop_renewing(&self) {
        self.with(|state| state.renew(false));
    }

    /// Renewals are answered again: what was at risk is secured.
    pub fn go_on_renewing(&self) {
        self.with(|state| state.renew(true));
    }

    /// From now on every request for a lease fails so, and those that wait do: [`FailKind::Connection`] for a DynamoDB that can't be reached,
    /// [`FailKind::Throttled`], [`FailKind::AccessDenied`], …
    pub fn fail(&self, kind: FailKind) {
        let message = "the test double was told to fail".to_owned();
        self.with(|state| {
            state.fail_waits(kind, &message);
            state.health = Health::Fails { kind, message };
        });
    }

    /// Requests for a lease are served again.
    pub fn recover(&self) {
        self.with(|state| state.health = Health::Serves);
    }

    /// The answer to the next request for a lease takes this long. One that is too long for the invocation's budget comes
    /// too late.
    pub fn delay_next_answer(&self, by: Duration) {
        self.with(|state| state.delay = by);
    }

    /// The keeper is gone, as an extension that was killed: sessions end, and new ones can't begin.
    pub fn vanish(&self) {
        self.with(State::vanish);
    }

    /// Whether a handler of the test's holds this key.
    #[must_use]
    pub fn is_held(&self, key: &str) -> bool {
        self.with(|state| state.is_held_here(key))
    }

    /// What happened so far, in its order.
    #[must_use]
    pub fn happened(&self) -> Vec<Happened> {
        self.with(|state| state.happened.clone())
    }

    /// An event as `lambda_runtime` hands it on, of an invocation with 30 s left by the double's clock.
    ///
    /// # Panics
    ///
    /// When the payload can't be written as JSON, as a test wants it.
    pub fn event(&self, payload: impl Serialize) -> LambdaEvent<Box<RawValue>> {
        self.event_within(payload, REMAINING)
    }

    /// An event of an invocation with this much time left.
    ///
    /// # Panics
    ///
    /// When the payload can't be written as JSON, as a test wants it.
    #[allow(clippy::expect_used, reason = "a test's own payload that is no JSON is a mistake in the test")]
    pub fn event_within(&self, payload: impl Serialize, remaining: Duration) -> LambdaEvent<Box<RawValue>> {
        let mut context = Context::default();
        context.request_id = self.with(State::next_request_id);
        context.deadline = (self.clock.now().wall + remaining).as_millis();
        let payload = serde_json::value::to_raw_value(&payload).expect("the payload can be written as JSON");
        LambdaEvent::new(payload, context)
    }

    /// Invokes a handler under a layer with an event of this payload, with 30 s left.
    ///
    /// # Errors
    ///
    /// The invocation's.
    ///
    /// # Panics
    ///
    /// When the payload can't be written as JSON, as a test wants it.
    pub async fn invoke<S>(&self, service: &mut S, payload: impl Serialize) -> Result<S::Response, S::Error>
    where
        S: Service<LambdaEvent<Box<RawValue>>>,
    {
        let event = self.event(payload);
        service.ready().await?.call(event).await
    }

    pub(crate) fn clock(&self) -> ManualClock {
        self.clock.clone()
    }

    /// Tells this double from all others that live.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.state).addr()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.with(|state| state.is_gone())
    }

    pub(crate) fn check(&self, owner: OwnerId) -> CheckAnswer {
        self.with(|state| state.check(owner))
    }

    /// Does something with the state and then wakes, outside the lock, who has something to hear.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut state);
        let woken = state.take_woken();
        drop(state);
        for waker in woken {
            waker.wake();
        }
        done
    }
}

impl Default for TestKeeper {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestKeeper").field("clock", &self.clock).finish_non_exhaustive()
    }
}
