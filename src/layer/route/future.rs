//! One request under a route's layer, from its first poll to its response.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use lambda_runtime::LambdaEvent;
use pin_project_lite::pin_project;
use tower::Service;

use super::begun::Begun;
use super::path::NoParams;
use super::service::AsEventHandler;
use super::{RouteAnswers, RouteRequest, Shape};
use crate::error::{Error, InvocationError, KeyInvalid, RouteNotMatched};
use crate::key::LockKey;
use crate::layer::key_source::KeySource;
use crate::layer::moves::Call;
use crate::layer::step::Opened;
use crate::layer::{Plan, Refuse, ResponseFuture};
use crate::settings::Mode;

pin_project! {
    /// The response of a [`RouteService`](super::RouteService).
    ///
    /// # Cancellation
    ///
    /// As of [`ResponseFuture`]: before its first poll nothing was sent; while it waits, dropping it takes the request
    /// for the lease back; while the handler runs, dropping it drops the handler first and then gives the lease back. The
    /// lease ends with the handler's future: a response body that goes on streaming, or a task that was spawned, is not
    /// covered unless it has a [`guard`](crate::Lease::guard).
    #[must_use = "futures do nothing unless polled"]
    pub struct RouteFuture<S, K, A, B>
    where
        S: Service<Request<B>>,
    {
        plan: Arc<Plan<K>>,
        shape: Arc<Shape<A>>,
        request: Option<(S, Request<B>)>,
        #[pin]
        locked: Option<ResponseFuture<AsEventHandler<S>, Request<B>, K, Refuse>>,
    }
}

impl<S, K, A, B> RouteFuture<S, K, A, B>
where
    S: Service<Request<B>>,
{
    pub(super) const fn new(plan: Arc<Plan<K>>, shape: Arc<Shape<A>>, service: S, request: Request<B>) -> Self {
        Self { plan, shape, request: Some((service, request)), locked: None }
    }
}

impl<S, K, A, B, R> Future for RouteFuture<S, K, A, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    K: KeySource<RouteRequest>,
    A: RouteAnswers<R>,
{
    type Output = Result<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some((service, request)) = this.request.take() {
            let (event, opened) = open(this.plan, this.shape, request);
            let call = Call { service: AsEventHandler(service), event };
            this.locked.set(Some(ResponseFuture::opened(this.plan.clone(), call, opened, false)));
        }
        let Some(locked) = this.locked.as_pin_mut() else {
            debug_assert!(false, "either the request is there or it was taken up");
            return Poll::Pending;
        };
        Poll::Ready(match ready!(locked.poll(cx)) {
            Ok(response) => Ok(response),
            Err(InvocationError::Handler(error)) => Err(error),
            Err(InvocationError::Lease { error, .. }) => Ok(this.shape.refusals.response(&error)),
        })
    }
}

/// The session begins before anything else, unless it has begun already; then the path is read.
fn open<K, A, B>(plan: &Plan<K>, shape: &Shape<A>, request: Request<B>) -> (LambdaEvent<Request<B>>, Opened)
where
    K: KeySource<RouteRequest>,
{
    let core = &plan.core;
    let (parts, body) = request.into_parts();
    let context = shape.missed.context_of(&parts.extensions);
    let begin = || match Begun::take_from(&parts.extensions, core.keeper()) {
        Some(hold) => {
            core.note_remaining(&context);
            core.take_over(&hold);
            Ok(hold)
        }
        None => core.begin(&context),
    };
    let hold = (core.mode() != Mode::Off).then(begin);
    let (params, unread) = match shape.paths.params(parts.uri.path()) {
        Ok(params) => (params, None),
        Err(why) => (super::path::Params::new(), Some(why)),
    };
    let event = LambdaEvent::new(RouteRequest::new(parts, params), context);
    let key = match unread {
        None => key(plan, &event),
        Some(why) => Err(no_key(plan, shape, why, event.payload.parts().uri.path())),
    };
    let (request, context) = event.into_parts();
    let request = Request::from_parts(request.into_parts(), body);
    (LambdaEvent::new(request, context), Opened { hold, key, also: None })
}

fn key<K: KeySource<RouteRequest>>(plan: &Plan<K>, event: &LambdaEvent<RouteRequest>) -> Result<LockKey, Error> {
    plan.keys.key(&event.payload.to_json(), event, plan.core.settings.namespace.as_ref())
}

fn no_key<K, A>(plan: &Plan<K>, shape: &Shape<A>, why: NoParams, path: &str) -> Error {
    let template = plan.core.name().to_owned();
    match why {
        NoParams::NotMatched => {
            let routes = shape.paths.routes().to_vec();
            RouteNotMatched { template, path: path.to_owned(), routes }.into()
        }
        NoParams::NotUtf8(name) => {
            let source = format!("the path's `{name}` is not UTF-8 once it is percent-decoded").into();
            KeyInvalid { origin: format!("`{template}`"), source }.into()
        }
    }
}

impl<S, K, A, B> fmt::Debug for RouteFuture<S, K, A, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteFuture").field("locked", &self.locked).finish_non_exhaustive()
    }
}
