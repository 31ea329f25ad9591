//! How an invocation under a layer ends: by its response, by a loss of the lease, or by its deadline.

use std::time::Duration;

use super::LeaseLayerBuilder;
use crate::layer::LayerKeys;
use crate::settings::{OnLoss, Release};

impl<T, K: LayerKeys, B> LeaseLayerBuilder<T, K, B> {
    /// Whether the row is freed behind the response, which is the default, or before it. `LEASEHOLD_RELEASE`, `after` or
    /// `before`
    pub const fn release(mut self, when: Release) -> Self {
        self.draft.release = Some(when);
        self
    }

    /// What happens to the handler when the lease is lost: it is cancelled and answered with `LeaseLost`, or only told.
    /// `LEASEHOLD_ON_LOSS`, `cancel` or `signal`
    pub const fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.draft.on_loss = Some(on_loss);
        self
    }

    /// Whether a response that was ready in the moment in which the loss was seen is given all the same. Unless set it is
    /// not: the caller gets `LeaseLost`, as the last of the work may have overlapped with another's.
    /// `LEASEHOLD_KEEP_FINISHED_RESPONSE`, `true` or `false`
    pub const fn keep_finished_response(mut self, keep: bool) -> Self {
        self.draft.keep_finished_response = Some(keep);
        self
    }

    /// Ends a handler that is still at work this long before the invocation's deadline, with `OutOfTime`: a slow handler
    /// is a typed error then, and not a killed environment. `LEASEHOLD_END_BEFORE_DEADLINE`
    ///
    /// Only a handler that yields can be ended. On Managed Instances, where Lambda does not kill it, every handler is
    /// ended at its deadline at the latest.
    pub const fn end_before_deadline(mut self, margin: Duration) -> Self {
        self.draft.end_before_deadline = Some(margin);
        self
    }
}
