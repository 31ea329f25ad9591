//! The layer around a handler: it takes the lease, runs the handler under it, and gives it back.
//!
//! [`LeaseLayer`] wraps the *handler*, a `Service<LambdaEvent<T>>`, and is itself a handler for the raw event. So it goes
//! inside `lambda_runtime::run` or `run_concurrent`, not into `Runtime::layer`, whose layers end after the response was
//! posted.
//!
//! ```text
//!  LambdaEvent<Box<RawValue>>          LambdaEvent<T>
//!  ──────────────► begin, T from the event, key, budget, acquire ──────────────► handler
//!  ◄────────────── released, or one second gone ◄────────────── response, error, loss, deadline
//! ```
//!
//! Nothing is sent before the response future is polled. The handler's body runs once or not at all. Whatever becomes of
//! the future from there, the lease goes back: with the response, or by a drop (see [`ResponseFuture`]). A release that
//! fails is logged and counted and changes no answer.
//!
//! # Modes
//!
//! `LEASEHOLD_MODE=observe` takes, renews and frees leases behind the handler's back and counts what it would have waited
//! for or refused ([`metrics`](crate::metrics)); `off` does nothing at all. Neither delays or refuses an invocation for the
//! lock's sake.

mod acquisition;
mod answers;
mod blocking;
mod builder;
mod by_hand;
mod core;
mod ending;
mod future;
mod held_by_hand;
mod held_lease;
mod inspect;
mod key_source;
mod moves;
mod payload;
mod sealed;
mod service;
mod step;
mod wait_span;
mod watch;
mod within;

// Behind the builder, which they add a method to: its documentation goes in this order.
pub mod batch;
#[cfg(feature = "http")]
pub mod route;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use tower::Layer;

pub use self::answers::{AnswerFor, Answered, Answers, OnBusy, OnRefusal, Refuse};
pub use self::blocking::BlockingLease;
pub use self::builder::LeaseLayerBuilder;
pub use self::by_hand::{ByHand, Leasehold};
use self::core::Core;
pub use self::future::ResponseFuture;
pub use self::held_lease::HeldLease;
pub use self::inspect::KeyState;
pub use self::key_source::{ByClosure, ByRecordTemplate, ByTemplate, KeySource, LayerKeys, TemplateText};
pub use self::service::LeaseService;
use crate::settings::Mode;

/// Takes a lease for each invocation of the handler that it is put around.
///
/// The handler must be `Clone` (each invocation has a clone of its own) and its payload `DeserializeOwned`; neither needs
/// to be `Send` or `'static`, unless `run_concurrent` asks for it. `T` is the handler's payload and is inferred; `K` says where the key comes from, `B` what is answered when there
/// is no lease: both follow from how the layer was built.
///
/// ```no_run
/// use std::time::Duration;
///
/// use lambda_runtime::tower::ServiceBuilder;
/// use lambda_runtime::{Error, LambdaEvent};
/// use leasehold::LeaseLayer;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize)]
/// struct OrderEvent {
///     detail: Order,
/// }
///
/// #[derive(Deserialize, Serialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Order {
///     order_id: String,
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Error> {
///     let lease = LeaseLayer::builder("orders:{detail.orderId}")
///         .reserve(Duration::from_secs(5))
///         .build()?;
///     lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
/// }
///
/// async fn handler(event: LambdaEvent<OrderEvent>) -> Result<Order, Error> {
///     Ok(event.payload.detail)
/// }
/// ```
pub struct LeaseLayer<T, K = ByTemplate, B = Refuse> {
    plan: Arc<Plan<K, B>>,
    payload: PhantomData<fn(T)>,
}

/// What a layer and all its services share.
#[derive(Debug)]
struct Plan<K, B = Refuse> {
    core: Core,
    keys: K,
    answers: B,
}

impl<T> LeaseLayer<T> {
    /// Begins a layer that locks by a key template over the event; [`key`](crate::key) has the grammar.
    ///
    /// Take [`keyed_by`](Self::keyed_by) where a template can't express the key.
    pub fn builder(template: impl Into<String>) -> LeaseLayerBuilder<T> {
        LeaseLayerBuilder::new(TemplateText(template.into()), Refuse)
    }

    /// Begins a layer that locks by the key that a closure picks from the event.
    ///
    /// The closure sees the handler's own payload and the invocation's context. A `namespace` stands in front of its key
    /// as well. Its errors, and keys that DynamoDB would refuse, become `KeyInvalid`.
    ///
    /// ```
    /// use lambda_runtime::LambdaEvent;
    /// use leasehold::LeaseLayer;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// struct Transfer {
    ///     from: u64,
    ///     to: u64,
    /// }
    ///
    /// let lease = LeaseLayer::keyed_by(|event: &LambdaEvent<Transfer>| {
    ///     let Transfer { from, to } = &event.payload;
    ///     if from == to { Err("a transfer needs two accounts") } else { Ok(format!("account:{}", from.min(to))) }
    /// })
    /// .table("locks")
    /// .build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn keyed_by<F, Key, E>(pick: F) -> LeaseLayerBuilder<T, ByClosure<F>>
    where
        F: Fn(&lambda_runtime::LambdaEvent<T>) -> Result<Key, E>,
        Key: Into<String>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        LeaseLayerBuilder::new(ByClosure::new(pick), Refuse)
    }
}

impl<T, K, B> LeaseLayer<T, K, B> {
    fn new(plan: Plan<K, B>) -> Self {
        Self { plan: Arc::new(plan), payload: PhantomData }
    }

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
}

impl<S, T, K, B> Layer<S> for LeaseLayer<T, K, B> {
    type Service = LeaseService<S, T, K, B>;

    fn layer(&self, inner: S) -> Self::Service {
        self.plan.core.hello();
        LeaseService::new(inner, self.plan.clone())
    }
}

// By hand: neither the payload's type nor the closures need to be cloned.
impl<T, K, B> Clone for LeaseLayer<T, K, B> {
    fn clone(&self) -> Self {
        Self { plan: self.plan.clone(), payload: PhantomData }
    }
}

impl<T, K, B> fmt::Debug for LeaseLayer<T, K, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseLayer").field("name", &self.name()).finish_non_exhaustive()
    }
}
