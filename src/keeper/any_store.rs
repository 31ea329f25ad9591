//! A store of whatever kind, so that the keeper is one type; and the one that stands in where none could be made.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::protocol::{Answer, Failure, Outcome, Request};
use crate::store::{Lock, StateAnswer, StateOutcome, StateRequest, Store};

/// A boxed future.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`Store`] with its futures boxed: one allocation a request, which a network round trip hides.
pub(super) trait AnyStore: fmt::Debug + Send + Sync + 'static {
    fn send_boxed<'a>(&'a self, lock: &'a Lock, request: Request, timeout: Duration) -> Boxed<'a, Answer>;
    fn send_state_boxed<'a>(
        &'a self,
        lock: &'a Lock,
        request: StateRequest,
        timeout: Duration,
    ) -> Boxed<'a, StateAnswer>;
    fn warm_up_boxed(&self) -> Boxed<'_, ()>;
    fn drop_pool(&self);
}

impl<S: Store> AnyStore for S {
    fn send_boxed<'a>(&'a self, lock: &'a Lock, request: Request, timeout: Duration) -> Boxed<'a, Answer> {
        Box::pin(self.send(lock, request, timeout))
    }

    fn send_state_boxed<'a>(
        &'a self,
        lock: &'a Lock,
        request: StateRequest,
        timeout: Duration,
    ) -> Boxed<'a, StateAnswer> {
        Box::pin(self.send_state(lock, request, timeout))
    }

    fn warm_up_boxed(&self) -> Boxed<'_, ()> {
        Box::pin(self.warm_up())
    }

    fn drop_pool(&self) {
        self.drop_connections();
    }
}

/// Answers every request with the failure that kept the real store from being made: whoever asks for a lease is told,
/// and the keeper itself lives on.
#[derive(Debug)]
pub(super) struct NoStore(pub(super) Failure);

impl Store for NoStore {
    async fn send(&self, _lock: &Lock, _request: Request, _timeout: Duration) -> Answer {
        Answer::new(Outcome::Failed(self.0.clone()), None)
    }

    async fn send_state(&self, _lock: &Lock, _request: StateRequest, _timeout: Duration) -> StateAnswer {
        StateAnswer::new(StateOutcome::Failed(self.0.clone()))
    }

    async fn warm_up(&self) {}

    fn drop_connections(&self) {}
}
