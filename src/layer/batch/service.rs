//! A handler of records under a batch layer, as a handler for the raw batch.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use lambda_runtime::LambdaEvent;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tower::Service;

use super::future::BatchFuture;
use super::visibility::{LeaveToQueue, Visibility};
use super::{BatchResponse, Shape};
use crate::error::Error;
use crate::layer::key_source::KeySource;
use crate::layer::{ByRecordTemplate, Plan};

/// A handler of single records under a [`BatchLayer`](super::BatchLayer).
pub struct BatchService<S, T, K = ByRecordTemplate, V = LeaveToQueue> {
    inner: S,
    plan: Arc<Plan<K>>,
    shape: Arc<Shape<V>>,
    payload: PhantomData<fn(T)>,
}

impl<S, T, K, V> BatchService<S, T, K, V> {
    pub(super) const fn new(inner: S, plan: Arc<Plan<K>>, shape: Arc<Shape<V>>) -> Self {
        Self { inner, plan, shape, payload: PhantomData }
    }
}

impl<S, T, K, V> Service<LambdaEvent<Box<RawValue>>> for BatchService<S, T, K, V>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    T: DeserializeOwned,
    K: KeySource<T>,
    V: Visibility,
{
    type Response = BatchResponse;
    type Error = Error;
    type Future = BatchFuture<S, T, K, V>;

    /// Always ready: each record waits until its own clone of the handler is.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<Box<RawValue>>) -> Self::Future {
        BatchFuture::new(self.plan.clone(), self.shape.clone(), self.inner.clone(), event)
    }
}

// By hand: neither the payload's type nor the closures need to be cloned. No readiness is inherited, as none is kept.
impl<S: Clone, T, K, V> Clone for BatchService<S, T, K, V> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.plan.clone(), self.shape.clone())
    }
}

impl<S: fmt::Debug, T, K, V> fmt::Debug for BatchService<S, T, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchService").field("layer", &self.plan.core.name()).field("inner", &self.inner).finish()
    }
}
