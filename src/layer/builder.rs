//! The layer's settings in code, and `build`, which tells everything that is wrong with them at once.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use super::answers::{AnswerFor, OnBusy, OnRefusal, Refuse};
use super::core::Core;
use super::key_source::{ByClosure, ByTemplate, TemplateText};
use super::{LeaseLayer, Plan};
use crate::error::{Error, LeaseBusy, SettingsError};
use crate::key::Template;
use crate::session::OnCrash;
use crate::settings::{Draft, Environment, KeeperChoice, MissingPath, OnLoss, OnUnavailable, ReleaseWhen, too_long};

/// A layer's name goes to the keeper in one line with the key, and into the row.
const LONGEST_NAME: usize = 2048;

/// Collects the settings of a [`LeaseLayer`].
///
/// Each has a `LEASEHOLD_*` variable of the same meaning, which holds where the code sets nothing.
/// Durations are spelled `500ms`, `30s`, `2m` or `1h` there. `LEASEHOLD_MODE` (`enforce`, `observe`, `off`) is the
/// environment's alone.
#[must_use = "a layer is made by `build`"]
pub struct LeaseLayerBuilder<T, K = TemplateText, B = Refuse> {
    keys: K,
    answers: B,
    name: Option<String>,
    draft: Draft,
    environment: Option<Environment>,
    payload: PhantomData<fn(T)>,
}

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    pub(super) fn new(keys: K, answers: B) -> Self {
        Self { keys, answers, name: None, draft: Draft::default(), environment: None, payload: PhantomData }
    }

    /// The lock table's name or ARN. It must be set here or in the environment. `LEASEHOLD_TABLE`
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.draft.table = Some(name.into());
        self
    }

    /// The name of the table's partition key; `key` unless set. `LEASEHOLD_KEY_ATTRIBUTE`
    pub fn key_attribute(mut self, name: impl Into<String>) -> Self {
        self.draft.key_attribute = Some(name.into());
        self
    }

    /// The name of the table's sort key and the value that all locks have there, for a table that has one.
    /// `LEASEHOLD_SORT_KEY`, as in `sk=lock`
    pub fn sort_key(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.draft.sort_key = Some((name.into(), value.into()));
        self
    }

    /// The row format that the table speaks, by name: `leasehold/1` unless set; `pydynox/1` shares the table and its keys
    /// with pydynox's distributed locks, in Python. `LEASEHOLD_FORMAT`
    ///
    /// A table speaks one format. Rows of another one are errors and never touched.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use serde_json::Value;
    ///
    /// let lease = LeaseLayer::<Value>::builder("sync:{customer_id}").table("locks").format("pydynox/1").build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn format(mut self, name: impl Into<String>) -> Self {
        self.draft.format = Some(name.into());
        self
    }

    /// What stands before every key, with a `/` after it: stages and teams share a table by it, and IAM's `LeadingKeys`
    /// can tell them apart. `LEASEHOLD_NAMESPACE`
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.draft.namespace = Some(namespace.into());
        self
    }

    /// How long a lease lasts when nobody renews it; 30 s unless set, 500 ms to 24 h. `LEASEHOLD_LEASE_DURATION`
    ///
    /// It bounds how long a key stays locked when a whole environment is lost. It need not cover the work: the lease is
    /// renewed every third of it.
    pub const fn lease_duration(mut self, duration: Duration) -> Self {
        self.draft.lease_duration = Some(duration);
        self
    }

    /// What work and cleanup need of the invocation's time; the rest may be waited away. `LEASEHOLD_RESERVE`
    ///
    /// Unset it is 80 % of what is left when the invocation begins, with one warning: you know better.
    pub const fn reserve(mut self, reserve: Duration) -> Self {
        self.draft.reserve = Some(reserve);
        self
    }

    /// How long is waited for a busy key at most; 2 s unless set, as waiting is billed. 0 tries once.
    /// `LEASEHOLD_MAX_WAIT`
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.draft.max_wait = Some(wait);
        self
    }

    /// How a busy key is looked at: a delay that doubles from the first to the longest, with jitter; 50 ms to 500 ms
    /// unless set. `LEASEHOLD_POLL_FIRST`, `LEASEHOLD_POLL_MAX`
    pub const fn polling(mut self, first: Duration, longest: Duration) -> Self {
        self.draft.polling = Some((first, longest));
        self
    }

    /// Whether the row is freed behind the response, which is the default, or before it. `LEASEHOLD_RELEASE`, `after` or
    /// `before`
    pub const fn release(mut self, when: ReleaseWhen) -> Self {
        self.draft.release = Some(when);
        self
    }

    /// What happens to the lease when the handler crashes, is killed, panics or is dropped: it is freed at once, or left
    /// to end by itself where side effects may still be under way. `LEASEHOLD_ON_CRASH`, `release` or `expire`
    pub const fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.draft.on_crash = Some(on_crash);
        self
    }

    /// What happens to an event without a value at the template's path: an error, or the handler runs unlocked.
    /// `LEASEHOLD_MISSING_PATH`, `error` or `unlocked`
    pub const fn missing_path(mut self, missing_path: MissingPath) -> Self {
        self.draft.missing_path = Some(missing_path);
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

    /// What happens when DynamoDB throttles, fails or can't be reached throughout the budget: the invocation fails, or
    /// the handler runs unlocked. A missing table or permission is an error in any case. `LEASEHOLD_ON_UNAVAILABLE`,
    /// `fail` or `unlocked`
    pub const fn on_unavailable(mut self, on_unavailable: OnUnavailable) -> Self {
        self.draft.on_unavailable = Some(on_unavailable);
        self
    }

    /// Whether an abandoned lease may also be found out by DynamoDB's own clock; it is unless set. Without it a fresh
    /// environment watches an abandoned row for a whole lease before it takes over. `LEASEHOLD_SERVER_TIME`
    pub const fn server_time(mut self, serves: bool) -> Self {
        self.draft.server_time = Some(serves);
        self
    }

    /// For how long a lease is renewed where no deadline ends the work: locally, and on Managed Instances; 15 minutes
    /// unless set. `LEASEHOLD_MAX_HOLD`
    pub const fn max_hold(mut self, limit: Duration) -> Self {
        self.draft.max_hold = Some(limit);
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

    /// Where the keeper is to be. `LEASEHOLD_KEEPER`, `extension`, `in-process` or `auto`
    pub const fn keeper(mut self, keeper: KeeperChoice) -> Self {
        self.draft.keeper = Some(keeper);
        self
    }

    /// The extension's socket; `/tmp/leasehold/keeper.sock` unless set. `LEASEHOLD_SOCKET`
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.draft.socket = Some(path.into());
        self
    }

    /// Lets a test double play the keeper: for unit tests of the handler. Neither a socket nor DynamoDB is needed, and no
    /// variables of the process count; the table is `locks` unless set.
    #[cfg(feature = "testing")]
    pub fn test_keeper(mut self, keeper: &crate::testing::TestKeeper) -> Self {
        self.draft.double = Some(keeper.clone());
        self.draft.table.get_or_insert_with(|| "locks".to_owned());
        self.environment.get_or_insert_default();
        self
    }

    /// The layer's name, for [`Lease::named`](crate::Lease::named) and the log; the key template unless set.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
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

    /// Takes these variables for the environment's, instead of the process's own: for tests, and for settings that come
    /// from elsewhere.
    pub fn environment<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        self.environment = Some(variables.into_iter().collect());
        self
    }

    pub(super) fn without_keys(self) -> (K, LeaseLayerBuilder<T, (), B>) {
        let Self { keys, answers, name, draft, environment, payload } = self;
        (keys, LeaseLayerBuilder { keys: (), answers, name, draft, environment, payload })
    }
}

impl<T, B> LeaseLayerBuilder<T, (), B> {
    /// Checks the settings, and makes the layer if there are keys.
    fn finish<K>(self, origin: String, keys: Result<K, String>) -> Result<LeaseLayer<T, K, B>, SettingsError> {
        self.plan(origin, keys, Vec::new()).map(LeaseLayer::new)
    }

    /// Checks the settings, adding to the problems that there are, and makes of them and the keys what a layer is.
    pub(super) fn plan<K>(
        self,
        origin: String,
        keys: Result<K, String>,
        mut problems: Vec<String>,
    ) -> Result<Plan<K, B>, SettingsError> {
        let keys = keys.map_err(|problem| problems.push(problem));
        let environment = self.environment.unwrap_or_else(Environment::of_process);
        let (settings, warnings) = self.draft.resolve(&environment, &mut problems);
        let name = self.name.unwrap_or(origin);
        if keys.is_ok() {
            problems.extend(too_long("the layer's `name`, which is the key template unless set,", &name, LONGEST_NAME));
        }
        let (Ok(keys), true) = (keys, problems.is_empty()) else { return Err(SettingsError::new(problems)) };
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(Plan { core: Core::new(settings, name), keys, answers: self.answers })
    }
}

impl<T, B> LeaseLayerBuilder<T, TemplateText, B> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is: in the template, in the code's settings and in the environment's.
    pub fn build(self) -> Result<LeaseLayer<T, ByTemplate, B>, SettingsError> {
        let (TemplateText(source), rest) = self.without_keys();
        let template = Template::parse(&source).map_err(|error| error.to_string());
        if let Some(warning) = template.as_ref().ok().and_then(Template::warning) {
            tracing::warn!("{warning}");
        }
        rest.finish(source, template.map(ByTemplate))
    }
}

impl<T, F, B> LeaseLayerBuilder<T, ByClosure<F>, B> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is, in the code's settings and in the environment's.
    pub fn build(self) -> Result<LeaseLayer<T, ByClosure<F>, B>, SettingsError> {
        let (keys, rest) = self.without_keys();
        rest.finish("keyed_by".to_owned(), Ok(keys))
    }
}

impl<T, K, B> fmt::Debug for LeaseLayerBuilder<T, K, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseLayerBuilder").field("name", &self.name).field("set", &self.draft).finish_non_exhaustive()
    }
}
