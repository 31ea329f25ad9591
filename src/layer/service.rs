//! The handler under a layer, as a handler for the raw event.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use lambda_runtime::LambdaEvent;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tower::Service;

use super::future::ResponseFuture;
use super::key_source::KeySource;
use super::{Answers, ByTemplate, Plan, Refuse};
use crate::error::InvocationError;

/// A handler under a [`LeaseLayer`](super::LeaseLayer).
pub struct LeaseService<S, T, K = ByTemplate, B = Refuse> {
    inner: S,
    plan: Arc<Plan<K, B>>,
    payload: PhantomData<fn(T)>,
}

impl<S, T, K, B> LeaseService<S, T, K, B> {
    pub(super) const fn new(inner: S, plan: Arc<Plan<K, B>>) -> Self {
        Self { inner, plan, payload: PhantomData }
    }
}

impl<S, T, K, B> Service<LambdaEvent<Box<RawValue>>> for LeaseService<S, T, K, B>
where
    S: Service<LambdaEvent<T>> + Clone,
    T: DeserializeOwned,
    K: KeySource<T>,
    B: Answers<S::Response>,
{
    type Response = B::Response;
    type Error = InvocationError<S::Error>;
    type Future = ResponseFuture<S, T, K, B>;

    /// Always ready. Each invocation waits, before it takes its lease, until its own clone of the handler is ready: an
    /// error from here would end the runtime's loop and the environment, out of the future it is one invocation's.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<Box<RawValue>>) -> Self::Future {
        ResponseFuture::new(self.plan.clone(), self.inner.clone(), event)
    }
}

// By hand: neither the payload's type nor the closures need to be cloned. No readiness is inherited, as none is kept.
impl<S: Clone, T, K, B> Clone for LeaseService<S, T, K, B> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), plan: self.plan.clone(), payload: PhantomData }
    }
}

impl<S: fmt::Debug, T, K, B> fmt::Debug for LeaseService<S, T, K, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseService").field("layer", &self.plan.core.name()).field("inner", &self.inner).finish()
    }
}
