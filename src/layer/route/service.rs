//! A route's handler under the layer.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use lambda_runtime::LambdaEvent;
use tower::Service;

use super::future::RouteFuture;
use super::{ProblemDetails, RouteAnswers, RouteRequest, Shape};
use crate::layer::key_source::KeySource;
use crate::layer::{ByTemplate, Plan};

/// A route under a [`RouteLayer`](super::RouteLayer).
pub struct RouteService<S, K = ByTemplate, A = ProblemDetails> {
    inner: S,
    plan: Arc<Plan<K>>,
    shape: Arc<Shape<A>>,
}

impl<S, K, A> RouteService<S, K, A> {
    pub(super) const fn new(inner: S, plan: Arc<Plan<K>>, shape: Arc<Shape<A>>) -> Self {
        Self { inner, plan, shape }
    }
}

impl<S, K, A, B, R> Service<Request<B>> for RouteService<S, K, A>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    K: KeySource<RouteRequest>,
    A: RouteAnswers<R>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = RouteFuture<S, K, A, B>;

    /// Always ready: each request waits, before it takes its lease, until its own clone of the handler is.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        RouteFuture::new(self.plan.clone(), self.shape.clone(), self.inner.clone(), request)
    }
}

// By hand: keys and answers need not be cloned. No readiness is inherited, as none is kept.
impl<S: Clone, K, A> Clone for RouteService<S, K, A> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.plan.clone(), self.shape.clone())
    }
}

impl<S: fmt::Debug, K, A> fmt::Debug for RouteService<S, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteService").field("layer", &self.plan.core.name()).field("inner", &self.inner).finish()
    }
}

/// A route's handler as one for events, which is what a lease is put around.
#[derive(Clone, Debug)]
pub(super) struct AsEventHandler<S>(pub(super) S);

impl<S, B> Service<LambdaEvent<Request<B>>> for AsEventHandler<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, event: LambdaEvent<Request<B>>) -> S::Future {
        self.0.call(event.payload)
    }
}
