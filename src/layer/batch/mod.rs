//! Records of a batch.

mod builder;
mod changes;
mod future;
mod groups;
mod ledger;
mod open;
mod order;
mod records;
mod response;
mod service;
mod share;
mod source;
mod visibility;
mod work;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tower::Layer;

pub use self::builder::BatchLayerBuilder;
pub use self::future::BatchFuture;
pub use self::response::{BatchItemFailure, BatchResponse};
pub use self::service::BatchService;
pub use self::visibility::{BusyMessage, ByChange, LeaveToQueue, WhenBusy};
use super::{ByRecordTemplate, Plan};
use crate::settings::Mode;

/// The author's word that the event source mapping has `ReportBatchItemFailures` among its `FunctionResponseTypes`.
///
/// [`per_record`](super::LeaseLayerBuilder::per_record) asks for it. Without that setting Lambda does not read which
/// records failed: it takes the batch for done and deletes all of it, the busy and the failed ones too.
///
/// ```yaml
/// Events:
///   Orders:
///     Type: SQS
///     Properties:
///       Queue: !GetAtt Orders.Arn
///       FunctionResponseTypes: [ReportBatchItemFailures]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportBatchItemFailures;

/// Takes a lease for each key of a batch, around a handler of single records. See the [module](self).
///
/// The handler must be `Clone`, its error `Debug` and a record's type `DeserializeOwned`; none needs to be `Send` or
/// `'static`, unless `run_concurrent` asks for it.
pub struct BatchLayer<T, K = ByRecordTemplate, V = LeaveToQueue> {
    plan: Arc<Plan<K>>,
    shape: Arc<Shape<V>>,
    payload: PhantomData<fn(T)>,
}

/// A batch layer's own settings.
#[derive(Debug)]
struct Shape<V> {
    concurrency: usize,
    margin: Option<Duration>,
    when_busy: V,
}

impl<T, K, V> BatchLayer<T, K, V> {
    const fn new(plan: Arc<Plan<K>>, shape: Arc<Shape<V>>) -> Self {
        Self { plan, shape, payload: PhantomData }
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

impl<S, T, K, V> Layer<S> for BatchLayer<T, K, V> {
    type Service = BatchService<S, T, K, V>;

    fn layer(&self, inner: S) -> Self::Service {
        self.plan.core.hello();
        BatchService::new(inner, self.plan.clone(), self.shape.clone())
    }
}

// By hand: neither the payload's type nor the closures need to be cloned.
impl<T, K, V> Clone for BatchLayer<T, K, V> {
    fn clone(&self) -> Self {
        Self::new(self.plan.clone(), self.shape.clone())
    }
}

impl<T, K, V> fmt::Debug for BatchLayer<T, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchLayer").field("name", &self.name()).finish_non_exhaustive()
    }
}
