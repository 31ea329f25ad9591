//! Locks for single routes of an HTTP service: a layer over `http::Request`, for axum and for `lambda_http`.
//!
//! Where a function serves several routes, some of them need a lock and others must not wait for one. The layer goes around
//! the routes that do; the key is made of the path's parameters.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use axum::Router;
//! use axum::extract::Path;
//! use axum::routing::{get, post};
//! use leasehold::{Lease, LeaseLayer};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), lambda_http::Error> {
//!     let lease = LeaseLayer::builder("orders:{id}")
//!         .reserve(Duration::from_secs(5))
//!         .per_route("/orders/{id}")
//!         .build()?;
//!     let router = Router::new()
//!         .route("/orders/{id}", post(ship).route_layer(lease.clone()))
//!         .route("/health", get(async || "ok"))
//!         .layer(lease.session()); // around all: see `RouteLayer::session`
//!     lambda_http::run(router).await
//! }
//!
//! async fn ship(Path(id): Path<String>) -> Result<String, (http::StatusCode, String)> {
//!     let gone = |error: leasehold::Error| (http::StatusCode::INTERNAL_SERVER_ERROR, error.error_type().to_owned());
//!     let lease = Lease::current().map_err(gone)?; // only who wants it
//!     lease.ensure_held().map_err(gone)?; // before a step that can't be taken back
//!     Ok(format!("{id} is shipped"))
//! }
//! ```
//!
//! # Paths
//!
//! A route is written as axum writes it: `/orders/{id}`, `/files/{*path}`. The layer matches the request's path itself, so
//! it needs no router. What stands *before* the route does not matter, if the route begins with a name and not with a
//! parameter: the stage that `lambda_http` puts before the path of a REST API, the base path of a custom domain, the
//! prefix of a nested router. Values are percent-decoded, as in the handler: `/orders/1%37` is the lock of `/orders/17`. A
//! path that is none of the routes is refused with [`RouteNotMatched`](crate::error::RouteNotMatched), unless
//! [`missing_path`](crate::LeaseLayerBuilder::missing_path) runs it unlocked.
//!
//! # Refusals
//!
//! A router's services must not fail, so every refusal is a response. It names no key, holder or table; the error itself
//! is in the log.
//!
//! | refusal | response |
//! |---|---|
//! | `LeaseBusy` | 423 (or 409) with `Retry-After`: when the holder's lease can end |
//! | `DeadlineTooClose`, `GrantTooLate` | 503 with `Retry-After` |
//! | `OutOfTime` | 504: the work may be half done |
//! | `StoreThrottled`, `StoreUnavailable`, `TransactionConflict` | 503 with `Retry-After` |
//! | `KeyInvalid`: a value that makes no key | 400 |
//! | `LeaseLost`, `KeeperGone`, and all that somebody has to set up | 500 |
//!
//! [`on_refusal`](RouteLayerBuilder::on_refusal) changes them.

mod begun;
mod builder;
mod future;
mod path;
mod refusal;
mod request;
mod service;
mod session;

use std::fmt;
use std::sync::Arc;

use tower::Layer;

use self::begun::ContextMissed;
pub use self::builder::RouteLayerBuilder;
pub use self::future::RouteFuture;
use self::path::Paths;
use self::refusal::Refusals;
pub use self::refusal::{ProblemDetails, RouteAnswers};
pub use self::request::RouteRequest;
pub use self::service::RouteService;
pub use self::session::{SessionFuture, SessionLayer, SessionService};
use super::{ByTemplate, Plan};
use crate::settings::Mode;

/// Takes a lease for each request of the routes that it is put around. See the [module](self) for an example.
///
/// It goes into axum's `MethodRouter::route_layer` and `Router::route_layer`, or around any tower service whose
/// responses are `http::Response`s with a body that is made of a `String`. `K` says where the key comes from, `A` what is
/// answered where there is no lease: both follow from how the layer was built.
pub struct RouteLayer<K = ByTemplate, A = ProblemDetails> {
    plan: Arc<Plan<K>>,
    shape: Arc<Shape<A>>,
}

/// What is a route layer's own.
#[derive(Debug)]
struct Shape<A> {
    paths: Paths,
    refusals: Refusals<A>,
    missed: ContextMissed,
}

impl<K, A> RouteLayer<K, A> {
    /// The layer's name: its key template unless set.
    #[must_use]
    pub fn name(&self) -> &str {
        self.plan.core.name()
    }

    /// What the environment told the layer to do with what it finds out.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.plan.core.mode()
    }

    /// A layer to put around the whole router, so that requests of unlocked routes cost no time either.
    ///
    /// Without it all works the same, but the extension waits up to 50 ms behind the response of a request that comes to
    /// no locked route: a session could still begin. The caller does not wait for that; the environment does, and it is
    /// billed. With several route layers one of this kind is enough, whichever makes it.
    #[must_use]
    pub fn session(&self) -> SessionLayer {
        let keeper = (self.mode() != Mode::Off).then(|| self.plan.core.keeper().clone());
        SessionLayer::new(keeper)
    }
}

impl<S, K, A> Layer<S> for RouteLayer<K, A> {
    type Service = RouteService<S, K, A>;

    fn layer(&self, inner: S) -> Self::Service {
        self.plan.core.hello();
        RouteService::new(inner, self.plan.clone(), self.shape.clone())
    }
}

// By hand: neither keys nor answers need to be cloned.
impl<K, A> Clone for RouteLayer<K, A> {
    fn clone(&self) -> Self {
        Self { plan: self.plan.clone(), shape: self.shape.clone() }
    }
}

impl<K, A> fmt::Debug for RouteLayer<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteLayer")
            .field("name", &self.name())
            .field("routes", &self.shape.paths.routes())
            .finish_non_exhaustive()
    }
}
