//! A batch layer's own settings, beside those of the layer that it was begun as.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::visibility::{BusyMessage, ChangeVisibility, LeaveToQueue};
use super::{BatchLayer, ReportBatchItemFailures, Shape};
use crate::error::SettingsError;
use crate::key::Template;
use crate::layer::key_source::{ByClosure, ByRecordTemplate, TemplateText};
use crate::layer::{LayerKeys, LeaseLayerBuilder, Plan};

/// How many groups of records are worked on at a time unless set.
const DEFAULT_CONCURRENCY: usize = 10;

impl<T, K: LayerKeys> LeaseLayerBuilder<T, K> {
    /// Makes it a layer around a handler of single *records*, which locks each record of a batch by its own key: for SQS,
    /// Kinesis and DynamoDB Streams. See [`batch`](crate::layer::batch).
    ///
    /// The template or closure is one over a record then, and `T` is a record's type.
    pub fn per_record(self, _: ReportBatchItemFailures) -> BatchLayerBuilder<T, K> {
        BatchLayerBuilder::new(self)
    }
}

/// Collects the settings of a [`BatchLayer`]; [`LeaseLayerBuilder::per_record`] begins one.
#[must_use = "a layer is made by `build`"]
pub struct BatchLayerBuilder<T, K = TemplateText, V = LeaveToQueue> {
    layer: LeaseLayerBuilder<T, K>,
    concurrency: usize,
    visibility: V,
}

impl<T, K> BatchLayerBuilder<T, K> {
    const fn new(mut layer: LeaseLayerBuilder<T, K>) -> Self {
        layer.draft.per_record = true;
        Self { layer, concurrency: DEFAULT_CONCURRENCY, visibility: LeaveToQueue }
    }
}

impl<T, K, V> BatchLayerBuilder<T, K, V> {
    /// How many keys of a batch are worked on at a time; 10 unless set. There is no variable for it: how many may overlap
    /// is a property of the handler's code.
    ///
    /// Handlers take turns within the invocation's one task: they overlap where they wait, not where they compute. A
    /// shard's records are worked on one after the other whatever is set here; give the event source mapping a
    /// `ParallelizationFactor` for more.
    pub const fn concurrency(mut self, keys_at_a_time: usize) -> Self {
        self.concurrency = keys_at_a_time;
        self
    }

    /// Lets a closure make busy SQS messages visible again when the key's holder can end, instead of when the queue's
    /// visibility timeout is over.
    ///
    /// The closure gets each message whose key is busy, and those that wait behind it in its message group. What it
    /// returns runs beside the other records and is waited for at the end, for a second at most and never into the
    /// margin that is kept before the deadline; that it fails is logged and counted and changes nothing else. The
    /// function's role needs `sqs:ChangeMessageVisibility`.
    ///
    /// **It does not change the receive count.** SQS counts every time that a message is received, this one too, and
    /// `ChangeMessageVisibility` takes none of that back. What it changes is how soon the next time comes: not before the
    /// key may be free, so that a long holder costs few receives where the queue's visibility timeout is shorter than a
    /// lease, and no needless wait where it is longer. Set `maxReceiveCount` high enough for contention all the same, and
    /// use [`receive_count`](BusyMessage::receive_count) to come back later each time.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use leasehold::layer::batch::{BusyMessage, ReportBatchItemFailures};
    /// use serde_json::Value;
    ///
    /// # fn f(sqs: aws_sdk_sqs::Client) -> Result<(), leasehold::SettingsError> {
    /// let locked = LeaseLayer::<Value>::builder("orders:{body.orderId}")
    ///     .table("locks")
    ///     .per_record(ReportBatchItemFailures)
    ///     .change_visibility(move |busy: BusyMessage| {
    ///         let timeout = busy.visibility_timeout();
    ///         let change = sqs.change_message_visibility().queue_url(busy.queue_url);
    ///         let change = change.receipt_handle(busy.receipt_handle).visibility_timeout(timeout);
    ///         async move { change.send().await.map(drop) }
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// # let _ = f;
    /// ```
    pub fn change_visibility<F, C, E>(self, change: F) -> BatchLayerBuilder<T, K, ChangeVisibility<F>>
    where
        F: Fn(BusyMessage) -> C,
        C: Future<Output = Result<(), E>>,
        E: fmt::Debug,
    {
        let Self { layer, concurrency, visibility: _ } = self;
        BatchLayerBuilder { layer, concurrency, visibility: ChangeVisibility(change) }
    }

    fn problems(&self) -> Vec<String> {
        let none_at_a_time = self.concurrency == 0;
        let idle = none_at_a_time
            .then(|| "`concurrency` is 0, so no record would ever be worked on: set 1 or more".to_owned());
        let instead =
            "for single records, drain the queue or stream before the template changes, or lock whole batches";
        idle.into_iter().chain(self.layer.no_also(instead)).collect()
    }
}

impl<T, V> BatchLayerBuilder<T, TemplateText, V> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is: in the template, in the code's settings and in the environment's.
    pub fn build(self) -> Result<BatchLayer<T, ByRecordTemplate, V>, SettingsError> {
        let problems = self.problems();
        let (TemplateText(source), rest) = self.layer.without_keys();
        let template = Template::parse(&source);
        if let Some(warning) = template.as_ref().ok().and_then(Template::warning) {
            tracing::warn!("{warning}");
        }
        let keys = template.map(ByRecordTemplate).map_err(|error| error.to_string());
        let plan = rest.plan(source, keys, problems)?;
        Ok(layer(plan, self.concurrency, self.visibility))
    }
}

impl<T, F, V> BatchLayerBuilder<T, ByClosure<F>, V> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is, in the code's settings and in the environment's.
    pub fn build(self) -> Result<BatchLayer<T, ByClosure<F>, V>, SettingsError> {
        let problems = self.problems();
        let (keys, rest) = self.layer.without_keys();
        let plan = rest.plan("keyed_by".to_owned(), Ok(keys), problems)?;
        Ok(layer(plan, self.concurrency, self.visibility))
    }
}

fn layer<T, K, V>(mut plan: Plan<K>, concurrency: usize, visibility: V) -> BatchLayer<T, K, V> {
    // The batch ends its records itself, each at its own time; that a group of them is ended as well would be one too many.
    let margin = plan.core.settings.end_before_deadline.take();
    plan.core.settings.managed_instances = false;
    BatchLayer::new(Arc::new(plan), Arc::new(Shape { concurrency, margin, visibility }))
}

impl<T, K, V> fmt::Debug for BatchLayerBuilder<T, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchLayerBuilder")
            .field("layer", &self.layer)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}
