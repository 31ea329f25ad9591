//! Per-record locks: a layer around a handler of single records that makes it a handler of whole batches.
//!
//! A batch of SQS messages, Kinesis records or DynamoDB stream records is many pieces of work, and each has its own key. Write
//! the handler for one record; [`per_record`](super::LeaseLayerBuilder::per_record) makes the layer that takes the batch
//! apart, locks each record by its own key, and tells Lambda which records are to come back:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use aws_lambda_events::event::sqs::SqsMessage;
//! use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
//! use leasehold::layer::batch::ReportBatchItemFailures;
//! use leasehold::{Lease, LeaseLayer};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let locked = LeaseLayer::builder("orders:{body.orderId}") // a template over one record
//!         .reserve(Duration::from_secs(2)) // what one record's work needs
//!         .per_record(ReportBatchItemFailures) // the event source mapping has this setting
//!         .concurrency(5)
//!         .build()?;
//!     lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(ship)).await
//! }
//!
//! async fn ship(message: LambdaEvent<SqsMessage>) -> Result<(), Error> {
//!     println!("shipping {:?}", message.payload.body);
//!     Lease::current()?.ensure_held()?; // the lease on this message's order, before a step that can't be taken back
//!     Ok(())
//! }
//! ```
//!
//! The response of the whole is `{"batchItemFailures": [{"itemIdentifier": "…"}]}`, whatever the handler returns for a
//! record: what an `Ok` holds is dropped, a batch response too. By itself a handler fails its record by an `Err` or a panic.
//! Which source it is, the records say themselves (`eventSource`; a FIFO queue by its name).
//!
//! # A worker of whole events that is there already
//!
//! A worker that takes an `SqsEvent` and goes through its records becomes one of single records in one of two ways. Where
//! its loop's body is a function of its own, that function is the handler: take `SqsMessage`, or `SqsMessageObj<T>` for a body that
//! is read already, and leave the loop, the order and the report to the layer. Where it is to stay as it is, hand each message to
//! it as a batch of one:
//!
//! ```no_run
//! use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
//! use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
//! use leasehold::LeaseLayer;
//! use leasehold::layer::batch::ReportBatchItemFailures;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let locked = LeaseLayer::builder("orders:{body.orderId}").per_record(ReportBatchItemFailures).build()?;
//!     lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(one)).await
//! }
//!
//! async fn one(message: LambdaEvent<SqsMessage>) -> Result<(), Error> {
//!     let (message, context) = message.into_parts();
//!     let mut batch = SqsEvent::default();
//!     batch.records = vec![message];
//!     let failed = worker(LambdaEvent::new(batch, context)).await?.batch_item_failures;
//!     if failed.is_empty() { Ok(()) } else { Err("the worker reports this message".into()) }
//! }
//!
//! async fn worker(batch: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
//!     Ok(SqsBatchResponse::default()) // as it was
//! }
//! ```
//!
//! What the worker reports has to become an error, as it does here: an `Ok` is done, whatever stands in it. For a worker that
//! writes its records in one go, and whose batches have one key, see [below](#one-lock-for-the-whole-batch).
//!
//! # It does not build without `ReportBatchItemFailures`
//!
//! Unless the event source mapping's `FunctionResponseTypes` has `ReportBatchItemFailures`, Lambda does not read which records
//! failed and deletes them with the others. No function can look that up for itself, so its author has to say it:
//!
//! ```compile_fail
//! # use leasehold::LeaseLayer;
//! # use serde_json::Value;
//! let locked = LeaseLayer::<Value>::builder("orders:{body.orderId}").table("locks").per_record().build();
//! ```
//!
//! # Keys
//!
//! A template is one over the record as the event has it: `{messageId}`, `{attributes.MessageGroupId}`,
//! `{kinesis.partitionKey}`, `{dynamodb.Keys.orderId.S}`. Where a path goes on into a *string*, the string is read as JSON,
//! as it is or in base64: so `{body.orderId}` is the `orderId` in a message's body, `{kinesis.data.orderId}` the one in a
//! Kinesis record's data, `{body.Message.orderId}` the one in an SNS notification that came through a queue. A path that ends
//! at a string takes its text: `{body}` is the whole body. What is compressed or not JSON needs a closure, which sees the
//! handler's own type:
//!
//! ```
//! use aws_lambda_events::event::kinesis::KinesisEventRecord;
//! use lambda_runtime::LambdaEvent;
//! use leasehold::LeaseLayer;
//! use leasehold::layer::batch::ReportBatchItemFailures;
//!
//! let locked = LeaseLayer::keyed_by(|record: &LambdaEvent<KinesisEventRecord>| {
//!     let line = std::str::from_utf8(&record.payload.kinesis.data)?;
//!     Ok::<_, std::str::Utf8Error>(format!("orders:{}", line.split(',').next().unwrap_or_default()))
//! })
//! .table("locks")
//! .per_record(ReportBatchItemFailures)
//! .build()?;
//! # Ok::<(), leasehold::SettingsError>(())
//! ```
//!
//! A record without a key, or one that is not what the handler takes, fails by itself, with a line in the log. Where *all*
//! records of a batch are like that the invocation fails with `NoUsableRecord`, which names the path: then it is the template
//! that is wrong.
//!
//! # What runs when, and what comes back
//!
//! | | order | beside each other | reported |
//! |---|---|---|---|
//! | SQS standard | one key's records in the batch's order | different keys, up to [`concurrency`](BatchLayerBuilder::concurrency) | each that failed |
//! | SQS FIFO | a message group's in order, a key's in order | different groups | each that failed, with all behind it in its message group, which are not run |
//! | Kinesis, DynamoDB Streams | the shard's | nothing | the first that failed; nothing behind it is run |
//!
//! A record fails when its key is busy, when there is too little time for it or it takes too long, when its lease is lost,
//! and when its handler returns an error or panics. Others do not suffer from it, but for those behind it in a FIFO group or
//! shard. **What is done is not reported, and so does not come again**, unless the whole invocation ends without an answer (the
//! environment is killed or loses its network), or the source itself delivers something twice, as SQS standard queues may.
//!
//! **Streams are worked on one record after the other.** Lambda goes on from the lowest sequence number that is reported
//! and delivers all behind it again, to any environment. If records behind a failed one had run, they would run again. To
//! go through a shard faster, give the event source mapping a `ParallelizationFactor`: Lambda then splits the shard's records
//! by their partition keys. A stream's record that is busy is tried again soon and counts as a retry: let `max_wait` be as long
//! as contention lasts, and leave `MaximumRetryAttempts` unlimited, or high.
//!
//! # One lease for a key
//!
//! Records with one key share one acquisition: the lease is held until the last of them is done. The handlers find it with
//! [`Lease::current`](crate::Lease::current), each the one on its own key.
//!
//! Only where the source's order leads from one key to another and back is a lease given back in between and taken again. So
//! an invocation never waits for one key while it keeps another, and no two can wait for each other.
//!
//! When a lease is lost, the record that runs is cancelled (see [`on_loss`](super::LeaseLayerBuilder::on_loss)) and fails, as do
//! those of its key that did not begin. What was done before stays done. A record that ends in the moment in which the loss is
//! seen fails, unless [`keep_finished_response`](super::LeaseLayerBuilder::keep_finished_response) says otherwise.
//!
//! After a record that panicked or was ended in the middle the lease goes back as
//! [`on_crash`](super::LeaseLayerBuilder::on_crash) says. With `release` the next records of the key go on; with `expire` they
//! come back, for what was begun may still be under way.
//!
//! # Time
//!
//! Something is kept at the invocation's end, so that there is an answer before Lambda ends everything:
//! [`end_before_deadline`](super::LeaseLayerBuilder::end_before_deadline), or half a second, or a tenth of an invocation that is
//! shorter than 5 s. The rest is shared: a record that begins gets what is left, divided by the rounds that are still to go. That
//! is its own deadline, in its `Context`: it bounds the wait for its key, and its handler is ended there with
//! `RecordOutOfTime` in the log. So a key that is busy, or a record that hangs, costs the others nothing.
//!
//! Set [`reserve`](super::LeaseLayerBuilder::reserve) to what *one* record needs. A record gets that much (and a fifth of a share
//! to wait with) for as long as it is there, however many there are; those for which it is not come back without having been
//! run. Choose the batch size so that this is rare.
//!
//! Only a handler that yields can be ended. Handlers run in one task and take turns: hand computing to
//! `tokio::task::spawn_blocking` with a [`guard`](crate::Lease::guard).
//!
//! # `maxReceiveCount`
//!
//! A message that comes back because its key is busy was received, and SQS counts that. Nothing takes it back, so let
//! `maxReceiveCount` be higher than contention is long. [`change_visibility`](BatchLayerBuilder::change_visibility)
//! lets the message come back when the holder can end, not sooner and not much later. In a FIFO queue what stands
//! behind a message that always fails is received and counted together with it: SQS may move it to the dead-letter
//! queue as well. Smaller batches make that rarer.
//!
//! # One lock for the whole batch
//!
//! Where a batch has one key, or its records have to be seen together, a plain [`LeaseLayer`](crate::LeaseLayer) with a template
//! over the whole event is enough. The handler reports its own failures; [`AnswerFor::whole_batch`](super::AnswerFor::whole_batch)
//! lets the whole batch come back when the key is busy, without an error for alarms to count:
//!
//! ```no_run
//! use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
//! use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
//! use leasehold::LeaseLayer;
//! use leasehold::layer::AnswerFor;
//! use leasehold::layer::batch::ReportBatchItemFailures;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let lease = LeaseLayer::builder("orders:{Records[0].attributes.MessageGroupId}")
//!         .answer_for(AnswerFor::whole_batch(ReportBatchItemFailures))
//!         .build()?;
//!     lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
//! }
//!
//! async fn handler(_batch: LambdaEvent<SqsEvent>) -> Result<SqsBatchResponse, Error> {
//!     Ok(SqsBatchResponse::default())
//! }
//! ```
//!
//! The two can be stacked, the whole-batch layer outside.
//!
//! # When the invocation fails as a whole
//!
//! All comes back then, and nothing was done: the event is no batch (`NotABatch`), no record has a key or the handler's type
//! (`NoUsableRecord`), the reserve is longer than the invocation (`DeadlineTooClose`), there is no keeper, or table, permission
//! or credentials are missing. Alarms on the function's errors see these; they do not see reported records, which
//! [`metrics`](crate::metrics) counts.
//!
//! Tumbling windows (`TimeWindowEvent`), records that a producer library aggregated, Kafka and MQ are not taken apart.

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
mod turns;
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
pub use self::visibility::{BusyMessage, ChangeVisibility, LeaveToQueue, Visibility};
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
    visibility: V,
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
