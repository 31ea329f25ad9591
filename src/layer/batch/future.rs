//! One batch under a layer, from its first poll to its answer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lambda_runtime::LambdaEvent;
use pin_project_lite::pin_project;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::{Sleep, sleep};
use tower::Service;

use super::groups::Groups;
use super::open::open;
use super::visibility::Visibility;
use super::{BatchItemFailure, BatchResponse, Shape};
use crate::error::Error;
use crate::layer::Plan;
use crate::layer::key_source::KeySource;
use crate::lease::Hold;
use crate::metrics::COUNTERS;
use crate::settings::Mode;

/// How long an answer waits for messages to be made visible.
const CHANGES_WITHIN: Duration = Duration::from_secs(1);

pin_project! {
    /// The response of a [`BatchService`](super::BatchService).
    ///
    /// # Cancellation
    ///
    /// Before its first poll, dropping it does nothing. Later it drops the handlers that run and gives back their leases
    /// as `on_crash` says, each as with [`ResponseFuture`](crate::layer::ResponseFuture): Lambda has no answer then, and
    /// the whole batch comes back.
    #[must_use = "futures do nothing unless polled"]
    pub struct BatchFuture<S, T, K, V>
    where
        S: Service<LambdaEvent<T>>,
        S: Clone,
        S::Error: fmt::Debug,
        V: Visibility,
    {
        plan: Arc<Plan<K>>,
        shape: Arc<Shape<V>>,
        stage: Stage<S, T, K, V>,
        // When there has to be an answer.
        #[pin]
        timer: Option<Sleep>,
        // Whether only the requests for busy messages are still waited for.
        is_settled: bool,
    }
}

enum Stage<S, T, K, V>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    V: Visibility,
{
    /// Nothing was done yet.
    Fresh(Box<(S, LambdaEvent<Box<RawValue>>)>),
    /// Records are worked on. The invocation's own session stands behind those of the groups, and is dropped last.
    Running(Box<Groups<S, T, K, V>>, Option<Arc<Hold>>),
    Over,
}

impl<S, T, K, V> BatchFuture<S, T, K, V>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    V: Visibility,
{
    pub(super) fn new(plan: Arc<Plan<K>>, shape: Arc<Shape<V>>, service: S, event: LambdaEvent<Box<RawValue>>) -> Self {
        Self { plan, shape, stage: Stage::Fresh(Box::new((service, event))), timer: None, is_settled: false }
    }
}

/// The first poll: the session begins before anything else, lock or not.
fn begin<S, T, K, V>(
    plan: &Arc<Plan<K>>,
    shape: &Arc<Shape<V>>,
    service: S,
    event: LambdaEvent<Box<RawValue>>,
) -> Result<Stage<S, T, K, V>, Error>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    T: DeserializeOwned,
    K: KeySource<T>,
    V: Visibility,
{
    let core = &plan.core;
    let session = match core.mode() {
        Mode::Off => None,
        Mode::Enforce => Some(core.begin(&event.context)?),
        _ => core.begin(&event.context).ok(),
    };
    let (raw, context) = event.into_parts();
    let batch = open(plan, &raw, &context)?;
    let groups = Groups::new(plan.clone(), shape.clone(), service, batch, context)?;
    Ok(Stage::Running(Box::new(groups), session))
}

impl<S, T, K, V> Future for BatchFuture<S, T, K, V>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    T: DeserializeOwned,
    K: KeySource<T>,
    V: Visibility,
{
    type Output = Result<BatchResponse, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match std::mem::replace(this.stage, Stage::Over) {
                Stage::Fresh(fresh) => match begin(this.plan, this.shape, fresh.0, fresh.1) {
                    Ok(running) => {
                        if let Stage::Running(groups, _) = &running {
                            this.timer.set(groups.answer_within().map(sleep));
                        }
                        *this.stage = running;
                    }
                    Err(error) => {
                        COUNTERS.refused.add_one();
                        return Poll::Ready(Err(error));
                    }
                },
                Stage::Running(mut groups, session) => {
                    let mut polled = groups.poll_settled(cx);
                    if polled.is_ready() {
                        if !std::mem::replace(this.is_settled, true) {
                            let within =
                                groups.answer_within().map_or(CHANGES_WITHIN, |within| within.min(CHANGES_WITHIN));
                            this.timer.set(Some(sleep(within)));
                        }
                        polled = groups.changes.poll(&this.shape.visibility, cx);
                    }
                    if polled.is_pending() && poll_timer(this.timer.as_mut(), cx).is_pending() {
                        *this.stage = Stage::Running(groups, session);
                        return Poll::Pending;
                    }
                    groups.changes.give_up();
                    return Poll::Ready(answer(*groups));
                }
                Stage::Over => {
                    debug_assert!(false, "polled after it was done");
                    return Poll::Pending;
                }
            }
        }
    }
}

fn answer<S, T, K, V>(groups: Groups<S, T, K, V>) -> Result<BatchResponse, Error>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    V: Visibility,
{
    let source = groups.source();
    let ledger = groups.into_ledger();
    let failed = ledger.reported(source).into_iter();
    let failed = failed.map(|item_identifier| BatchItemFailure { item_identifier }).collect();
    match ledger.into_error_of_the_setup() {
        // All comes back either way; as an error it is seen.
        Some(error) => Err(error),
        None => Ok(BatchResponse { batch_item_failures: failed }),
    }
}

/// Waits for the timer; without one, for ever.
fn poll_timer(timer: Pin<&mut Option<Sleep>>, cx: &mut Context<'_>) -> Poll<()> {
    timer.as_pin_mut().map_or(Poll::Pending, |timer| timer.poll(cx))
}

impl<S, T, K, V> fmt::Debug for BatchFuture<S, T, K, V>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    V: Visibility,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Fresh(..) => "fresh",
            Stage::Running(..) => "running",
            Stage::Over => "over",
        };
        f.debug_struct("BatchFuture").field("stage", &stage).finish_non_exhaustive()
    }
}
