//! A DynamoDB lock per key around AWS Lambda handlers.
//!
//! [`LeaseLayer`] is one line around the handler that you have. For each invocation it picks a key out of the event, takes
//! the key's lock in DynamoDB, runs the handler under it and gives it back. While the handler runs, a Lambda extension (or
//! a thread, where there is no extension) renews the lock, whatever the handler does; when the handler crashes or is
//! killed, it frees it.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use lambda_runtime::tower::ServiceBuilder;
//! use lambda_runtime::{Error, LambdaEvent};
//! use leasehold::{Lease, LeaseLayer};
//! use serde_json::{Value, json};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let lease = LeaseLayer::builder("orders:{detail.orderId}")
//!         .reserve(Duration::from_secs(5)) // the work needs this much; the rest may be waited away
//!         .build()?; // every wrong setting in one message, here and not at the first event
//!     lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
//! }
//!
//! async fn handler(event: LambdaEvent<Value>) -> Result<Value, Error> {
//!     let lease = Lease::current()?; // only who wants it
//!     lease.ensure_held()?; // before a step that can't be taken back
//!     Ok(json!({ "order": event.payload["detail"]["orderId"], "fence": lease.token() }))
//! }
//! ```
//!
//! A lock is not idempotency: it keeps two invocations from working on one key at the same time. An event that is
//! delivered again runs again once the lock is free. And a lease alone does not stop the write of a holder that was paused
//! for longer than it lasts: [`Lease::ensure_held`] makes that window small, a [guarded write](guide::fencing) closes it.
//!
//! # The guide
//!
//! [`guide`] goes through all of it, a chapter at a time, with examples that run. The usual way in:
//!
//! 1. [Why](guide::why), and [when you need no lock](guide::no_lock).
//! 2. [Wrap a handler](guide::wrap), [choose the key](guide::keys) and [the times](guide::times).
//! 3. What your source of events needs: [answers](guide::answers), [HTTP](guide::http), [batches](guide::batches),
//!    [schedules](guide::scheduled).
//! 4. What a holder has to know: [losses](guide::losing), [fencing](guide::fencing), [state](guide::state),
//!    [the shape of a hold](guide::holds), [spawned work](guide::spawned), [two keys](guide::order).
//! 5. [Leases by hand](guide::by_hand), where a layer does not fit.
//! 6. [Tests](guide::testing) and [rollout](guide::rollout).
//!
//! # Settings
//!
//! In code on the [builder](LeaseLayerBuilder), or in the function's environment; code wins, but for the mode. All that is
//! wrong is told at once by `build`. A variable that nothing reads is a warning, an error with `LEASEHOLD_STRICT=1`.
//!
//! | setting | variable | unless set |
//! |---|---|---|
//! | [`table`](LeaseLayerBuilder::table) | `LEASEHOLD_TABLE` | must be set |
//! | [`key_attribute`](LeaseLayerBuilder::key_attribute) | `LEASEHOLD_KEY_ATTRIBUTE` | `key` |
//! | [`sort_key`](LeaseLayerBuilder::sort_key) | `LEASEHOLD_SORT_KEY`, `name=value` | the table has none |
//! | [`format`](LeaseLayerBuilder::format) | `LEASEHOLD_FORMAT`, `leasehold/1` or `pydynox/1` | `leasehold/1` |
//! | [`namespace`](LeaseLayerBuilder::namespace) | `LEASEHOLD_NAMESPACE` | none |
//! | [`hashed_keys`](LeaseLayerBuilder::hashed_keys) | `LEASEHOLD_HASHED_KEYS` | `false` |
//! | [`key_secret`](LeaseLayerBuilder::key_secret) | `LEASEHOLD_KEY_SECRET` | none |
//! | [`also`](LeaseLayerBuilder::also) | | none |
//! | [`lease_duration`](LeaseLayerBuilder::lease_duration) | `LEASEHOLD_LEASE_DURATION` | `30s` |
//! | [`reserve`](LeaseLayerBuilder::reserve) | `LEASEHOLD_RESERVE` | 80 % of what is left, with a warning |
//! | [`max_wait`](LeaseLayerBuilder::max_wait) | `LEASEHOLD_MAX_WAIT` | `2s` |
//! | [`polling`](LeaseLayerBuilder::polling) | `LEASEHOLD_POLLING`, `tickets` or `backoff` | `tickets` |
//! | its delays, with `backoff` | `LEASEHOLD_POLL_FIRST`, `LEASEHOLD_POLL_MAX` | `50ms`, `500ms` |
//! | [`release`](LeaseLayerBuilder::release) | `LEASEHOLD_RELEASE`, `after` or `before` | `after` the response |
//! | [`on_crash`](LeaseLayerBuilder::on_crash) | `LEASEHOLD_ON_CRASH`, `release` or `expire` | `release` |
//! | [`missing_path`](LeaseLayerBuilder::missing_path) | `LEASEHOLD_MISSING_PATH`, `error` or `unlocked` | `error` |
//! | [`on_loss`](LeaseLayerBuilder::on_loss) | `LEASEHOLD_ON_LOSS`, `cancel` or `signal` | `cancel` |
//! | [`keep_finished_response`](LeaseLayerBuilder::keep_finished_response) | `LEASEHOLD_KEEP_FINISHED_RESPONSE` | `false` |
//! | [`on_busy`](LeaseLayerBuilder::on_busy), [`answer_for`](LeaseLayerBuilder::answer_for), [`on_refusal`](LeaseLayerBuilder::on_refusal) | | refusals are errors |
//! | [`concurrency`](BatchLayerBuilder::concurrency), with `per_record` | | 10 keys at a time |
//! | [`change_visibility`](BatchLayerBuilder::change_visibility), with `per_record` | | left to the queue |
//! | [`on_unavailable`](LeaseLayerBuilder::on_unavailable) | `LEASEHOLD_ON_UNAVAILABLE`, `fail` or `unlocked` | `fail` |
//! | [`server_time`](LeaseLayerBuilder::server_time) | `LEASEHOLD_SERVER_TIME` | `true` |
//! | [`max_hold`](LeaseLayerBuilder::max_hold) | `LEASEHOLD_MAX_HOLD` | `15m` |
//! | [`max_silence`](LeaseLayerBuilder::max_silence) | `LEASEHOLD_MAX_SILENCE` | without end |
//! | [`hold_at_least`](LeaseLayerBuilder::hold_at_least) | `LEASEHOLD_HOLD_AT_LEAST` | none |
//! | [`end_before_deadline`](LeaseLayerBuilder::end_before_deadline) | `LEASEHOLD_END_BEFORE_DEADLINE` | the handler is not ended |
//! | [`state_retention`](LeaseLayerBuilder::state_retention) | `LEASEHOLD_STATE_RETENTION` | states are kept without end |
//! | [`holder_note`](LeaseLayerBuilder::holder_note), [`attribute`](LeaseLayerBuilder::attribute) | | none |
//! | [`keeper`](LeaseLayerBuilder::keeper) | `LEASEHOLD_KEEPER`, `extension`, `in-process` or `auto` | `extension` on Lambda, `auto` elsewhere |
//! | [`socket`](LeaseLayerBuilder::socket) | `LEASEHOLD_SOCKET` | `/tmp/leasehold/keeper.sock` |
//! | [`name`](LeaseLayerBuilder::name) | | the key template |
//! | the extension's metrics | `LEASEHOLD_METRICS`, `on`, `full` or `off` | `on` |
//! | [`Mode`] | `LEASEHOLD_MODE`, `enforce`, `observe` or `off` | `enforce` |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none | the layer and the socket's client; no AWS SDK |
//! | `dynamodb` | `Lease::guard_transaction`, `fence_update` and `condition_check`: writes that a stale holder can't make |
//! | `in-process` | the keeper on a thread of the handler's process, where there is no extension |
//! | `http` | `per_route`: a layer over `http::Request` that locks single routes, for axum and `lambda_http` |
//! | `testing` | a keeper in memory, for your own unit tests of a handler under a layer |
//!
//! # The map of the rest
//!
//! | module | what it is for |
//! |---|---|
//! | [`guide`] | all of it, to be read |
//! | [`layer`] | around the handler: the layer, its builder, service and response future; leases by hand |
//! | [`layer::batch`] | around a handler of single records: batches of SQS, Kinesis and DynamoDB Streams |
//! | `layer::route` | around routes of an HTTP service: single routes locked, the others let through (feature `http`) |
//! | [`key`] | key templates: from an event to a key |
//! | [`error`] | one type a failure, and how each looks to Lambda |
//! | [`metrics`] | what layers count |
//!
//! There are more public modules, which this documentation does not show: the layer's peers (the extension, the sandbox
//! and their tests) use them. A handler needs none of them, and they may change with any release. Clients in other
//! languages go by `docs/session.md`.
// Set by docs.rs, whose compiler marks what needs a feature.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

// `doc(hidden)`: for the layer's peers, which are released together with it. What handlers see of these modules is
// re-exported below, in `error` and in `testing`.
#[doc(hidden)]
pub mod budget;
#[doc(hidden)]
pub mod clock;
pub mod error;
// Its examples take these features; without them they are not run, and the chapters are there all the same.
#[cfg_attr(docsrs, doc(auto_cfg = false))]
#[cfg(any(not(doctest), all(feature = "dynamodb", feature = "http", feature = "in-process", feature = "testing")))]
pub mod guide;
#[doc(hidden)]
pub mod keeper;
pub mod key;
pub mod layer;
mod lease;
pub mod metrics;
#[doc(hidden)]
pub mod operator;
#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod session;
mod settings;
#[cfg(feature = "in-process")]
#[doc(hidden)]
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use error::{Error, InvocationError, SettingsError};
pub use layer::batch::{BatchLayer, BatchLayerBuilder};
#[cfg(feature = "http")]
pub use layer::route::{RouteLayer, RouteLayerBuilder};
pub use layer::{BlockingLease, HeldLease, KeyState, LeaseLayer, LeaseLayerBuilder, Leasehold};
#[cfg(feature = "dynamodb")]
pub use lease::GuardedTransaction;
pub use lease::{Lease, LeaseGuard, LeaseMetrics};
pub use protocol::{FencingToken, HolderInfo, OwnerId};
pub use session::OnCrash;
pub use settings::{KeeperChoice, MissingPath, Mode, OnLoss, OnUnavailable, Polling, Release};

/// The README's code compiles, with the features that it asks for.
#[cfg(all(doctest, feature = "testing", feature = "dynamodb", feature = "http"))]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct ReadmeExamples;
