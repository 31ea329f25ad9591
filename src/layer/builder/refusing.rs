//! What is answered where no lease is given.

use super::LeaseLayerBuilder;
use crate::error::{Error, LeaseBusy};
use crate::layer::LayerKeys;
use crate::layer::answers::{AnswerFor, OnBusy, OnRefusal};
use crate::settings::{MissingPath, OnUnavailable};

impl<T, K: LayerKeys, B> LeaseLayerBuilder<T, K, B> {
    /// What happens to an event without a value at the template's path: an error, or the handler runs unlocked.
    /// `LEASEHOLD_MISSING_PATH`, `error` or `unlocked`
    pub const fn missing_path(mut self, missing_path: MissingPath) -> Self {
        self.draft.missing_path = Some(missing_path);
        self
    }

    /// What happens when DynamoDB throttles, fails or can't be reached throughout the budget: the invocation fails, or
    /// the handler runs unlocked. A missing table or permission is an error in any case. `LEASEHOLD_ON_UNAVAILABLE`,
    /// `fail` or `unlocked`
    pub const fn on_unavailable(mut self, on_unavailable: OnUnavailable) -> Self {
        self.draft.on_unavailable = Some(on_unavailable);
        self
    }

    /// Answers a busy key with a response instead of the error `LeaseBusy`: a 409 for an API, or an empty success for an
    /// event that another invocation is working off.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use serde_json::{Value, json};
    ///
    /// let lease = LeaseLayer::<Value>::builder("orders:{detail.orderId}")
    ///     .on_busy(|busy| json!({ "statusCode": 409, "headers": { "retry-after": busy.retry_after.as_secs() + 1 } }))
    ///     .table("locks")
    ///     .build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn on_busy<R, F: Fn(&LeaseBusy) -> R>(self, respond: F) -> LeaseLayerBuilder<T, K, OnBusy<F>> {
        self.with_answers(OnBusy(respond))
    }

    /// Answers refusals as the source of the function's events understands them: with a 423 and `Retry-After`, for
    /// example, where that is an API. [`AnswerFor`] has the table.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use leasehold::layer::AnswerFor;
    /// use serde_json::Value;
    ///
    /// let lease = LeaseLayer::<Value>::builder("orders:{pathParameters.id}")
    ///     .answer_for(AnswerFor::api_gateway_v2())
    ///     .table("locks")
    ///     .build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn answer_for(self, source: AnswerFor) -> LeaseLayerBuilder<T, K, AnswerFor> {
        self.with_answers(source)
    }

    /// Answers whatever the layer refuses with a response that a closure makes; `None` leaves it an error.
    ///
    /// ```
    /// use leasehold::{Error, LeaseLayer};
    /// use serde_json::{Value, json};
    ///
    /// let lease = LeaseLayer::<Value>::builder("orders:{id}")
    ///     .on_refusal(|error| match error {
    ///         Error::LeaseBusy(busy) => Some(json!({ "later": busy.retry_after.as_secs() })),
    ///         Error::KeyNotFound(_) => Some(json!({ "problem": "an order needs an id" })),
    ///         _ => None,
    ///     })
    ///     .table("locks")
    ///     .build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn on_refusal<R, F: Fn(&Error) -> Option<R>>(self, respond: F) -> LeaseLayerBuilder<T, K, OnRefusal<F>> {
        self.with_answers(OnRefusal(respond))
    }

    fn with_answers<A>(self, answers: A) -> LeaseLayerBuilder<T, K, A> {
        let Self { keys, answers: _, name, draft, environment, payload } = self;
        LeaseLayerBuilder { keys, answers, name, draft, environment, payload }
    }
}
