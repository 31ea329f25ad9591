//! A layer around a whole router that begins each request's session, whether its route takes a lease or not.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::begun::{Begun, ContextMissed};
use crate::keeper::client::KeeperClient;
use crate::layer::core;

/// Begins each request's session before it comes to its route; [`RouteLayer::session`](super::RouteLayer::session) makes
/// one, for the whole router.
///
/// The extension holds an invocation's environment for 50 ms where it knows of a layer and hears of no session. With this
/// layer it hears of one at once, also from routes that take no lease. A route's layer goes on with the session that is
/// there. Nothing goes to DynamoDB for it, and where there is no keeper the request goes on all the same.
#[derive(Clone)]
pub struct SessionLayer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// None in mode `off`.
    keeper: Option<Arc<KeeperClient>>,
    missed: ContextMissed,
}

impl SessionLayer {
    pub(super) fn new(keeper: Option<Arc<KeeperClient>>) -> Self {
        Self { shared: Arc::new(Shared { keeper, missed: ContextMissed::default() }) }
    }
}

impl<S> Layer<S> for SessionLayer {
    type Service = SessionService<S>;

    fn layer(&self, inner: S) -> SessionService<S> {
        SessionService { inner, shared: self.shared.clone() }
    }
}

impl fmt::Debug for SessionLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLayer").finish_non_exhaustive()
    }
}

/// A service under a [`SessionLayer`].
#[derive(Clone)]
pub struct SessionService<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S, B> Service<Request<B>> for SessionService<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = SessionFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let begun = self.shared.begin(&request);
        if let Some(begun) = &begun {
            request.extensions_mut().insert(begun.clone());
        }
        SessionFuture { inner: self.inner.call(request), begun }
    }
}

impl Shared {
    fn begin<B>(&self, request: &Request<B>) -> Option<Begun> {
        let keeper = self.keeper.as_ref()?;
        let context = self.missed.context_of(request.extensions());
        match core::begin(keeper, &context) {
            Ok(hold) => Some(Begun::new(keeper.clone(), hold)),
            Err(error) => {
                // A route that needs the keeper says so itself.
                tracing::debug!(%error, "no session was begun for a request");
                None
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for SessionService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

pin_project! {
    /// The response of a [`SessionService`].
    ///
    /// # Cancellation
    ///
    /// Dropping it drops the router's future first and then ends the session, if no route's layer has taken it over.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct SessionFuture<F> {
        #[pin]
        inner: F,
        begun: Option<Begun>,
    }

    impl<F> PinnedDrop for SessionFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            end(this.project().begun);
        }
    }
}

impl<F: Future> Future for SessionFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let answer = std::task::ready!(this.inner.poll(cx));
        end(this.begun);
        Poll::Ready(answer)
    }
}

/// Ends a session that no layer took: whoever kept the request's extensions does not keep it open.
fn end(begun: &mut Option<Begun>) {
    drop(begun.take().and_then(|begun| begun.take()));
}
