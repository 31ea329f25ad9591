//! One invocation under a layer, from its first poll to its answer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use lambda_runtime::LambdaEvent;
use pin_project_lite::pin_project;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::task::futures::TaskLocalFuture;
use tokio::time::{Sleep, sleep};
use tower::Service;

use super::Plan;
use super::acquisition::Acquisition;
use super::answers::{self, Answers};
use super::core::TimeLimit;
use super::ending::Ending;
use super::key_source::KeySource;
use super::moves::{self, Answer, Call, Move};
use super::step::Opened;
use super::watch::Watch;
use crate::error::InvocationError;
use crate::lease::{Hold, SCOPE, Scope};

pin_project! {
    /// The response of a [`LeaseService`](super::LeaseService).
    ///
    /// # Cancellation
    ///
    /// Before its first poll, dropping it does nothing: nothing was sent. While it waits for the lease, dropping it takes
    /// the request back. While the handler runs, dropping it, or a panic of the handler, drops the handler's future first
    /// and then gives the lease back as `on_crash` says. Both wait, by blocking, until the keeper has heard of it: some
    /// hundred microseconds, 250 ms at most. Work that goes on elsewhere, in a spawned task or a streaming body, is not
    /// covered unless it has a [`guard`](crate::Lease::guard).
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, T, K, B>
    where
        S: Service<LambdaEvent<T>>,
    {
        plan: Arc<Plan<K, B>>,
        #[pin]
        stage: Stage<S, T, K, B>,
        // What the stage waits for at most.
        #[pin]
        timer: Option<Sleep>,
        // Whether the answer waits until the row is free, whatever the settings say.
        frees_first: bool,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<S, T, K, B>
    where
        S: Service<LambdaEvent<T>>,
    {
        // Nothing was done yet.
        Fresh { call: Option<(S, LambdaEvent<Box<RawValue>>)>, begin: Begin<S, T, K, B> },
        // The session has begun and the event was read; the handler may not be ready.
        Readying { call: Option<Call<S, T>>, opened: Option<Opened> },
        // The lease is asked for.
        Acquiring { call: Option<Call<S, T>>, acquisition: Acquisition, hold: Option<Arc<Hold>> },
        // The handler runs. Its future stands before what keeps its lease, and so is dropped before it.
        Running { #[pin] handler: TaskLocalFuture<Scope, S::Future>, watch: Watch, limit: Option<TimeLimit> },
        // The answer is there, the keeper's confirmation not yet.
        Ending { answer: Option<Answer<S, T>>, ending: Ending },
        Over,
    }
}

/// How a raw event begins; kept as what it is, so that only who begins with one has to be able to read it.
type Begin<S, T, K, B> = fn(&Plan<K, B>, S, LambdaEvent<Box<RawValue>>) -> Move<S, T>;

impl<S, T, K, B> ResponseFuture<S, T, K, B>
where
    S: Service<LambdaEvent<T>>,
{
    pub(super) const fn new(plan: Arc<Plan<K, B>>, service: S, event: LambdaEvent<Box<RawValue>>) -> Self
    where
        T: DeserializeOwned,
        K: KeySource<T>,
    {
        let begin: Begin<S, T, K, B> = moves::begin::<S, T, K, B>;
        Self { plan, stage: Stage::Fresh { call: Some((service, event)), begin }, timer: None, frees_first: false }
    }

    /// One whose session has begun already, and whose event was read; with `frees_first`, who asks for the same key once
    /// it is done finds it free.
    pub(super) const fn opened(plan: Arc<Plan<K, B>>, call: Call<S, T>, opened: Opened, frees_first: bool) -> Self {
        let stage = Stage::Readying { call: Some(call), opened: Some(opened) };
        Self { plan, stage, timer: None, frees_first }
    }

    /// Makes a move; the answer, if that was the last one.
    fn make(self: Pin<&mut Self>, next: Move<S, T>) -> Option<Answer<S, T>> {
        let mut this = self.project();
        match next {
            Move::GetReady(call, opened) => {
                this.stage.set(Stage::Readying { call: Some(call), opened: Some(opened) });
            }
            Move::Acquire { call, acquisition, hold, patience } => {
                this.timer.set(Some(sleep(patience)));
                this.stage.set(Stage::Acquiring { call: Some(call), acquisition, hold: Some(hold) });
            }
            Move::Run { call: Call { mut service, event }, watch, lease } => {
                let limit = this.plan.core.time_limit(&event.context);
                let scope = this.plan.core.scope(lease);
                let handler = SCOPE.sync_scope(scope.clone(), || service.call(event));
                this.timer.set(limit.map(|limit| sleep(limit.within)));
                this.stage.set(Stage::Running { handler: SCOPE.scope(scope, handler), watch, limit });
            }
            Move::End { hold, reason, confirm_within, answer } => {
                // First of all what is left of the handler goes: it still has the lease.
                this.stage.set(Stage::Over);
                this.timer.set(None);
                let wait = *this.frees_first || this.plan.core.releases_before_response();
                match hold.and_then(|hold| Ending::begin(hold, reason, wait)) {
                    None => return Some(answer),
                    Some(ending) => {
                        this.timer.set(Some(sleep(confirm_within)));
                        this.stage.set(Stage::Ending { answer: Some(answer), ending });
                    }
                }
            }
            Move::Answer(answer) => {
                this.stage.set(Stage::Over);
                this.timer.set(None);
                return Some(answer);
            }
        }
        None
    }
}

impl<S, T, K, B> Future for ResponseFuture<S, T, K, B>
where
    S: Service<LambdaEvent<T>>,
    B: Answers<S::Response>,
{
    type Output = Result<B::Response, InvocationError<S::Error>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let this = self.as_mut().project();
            let (plan, timer) = (&**this.plan, this.timer);
            let next = match this.stage.project() {
                StageProj::Fresh { call, begin } => call.take().map(|(service, event)| begin(plan, service, event)),
                StageProj::Readying { call, opened } => {
                    let is_ready = match call {
                        Some(Call { service, .. }) => ready!(service.poll_ready(cx)),
                        None => Ok(()),
                    };
                    call.take().zip(opened.take()).map(|(call, opened)| moves::readied(plan, is_ready, call, opened))
                }
                StageProj::Acquiring { call, acquisition, hold } => {
                    let answer = match acquisition.poll(cx) {
                        Poll::Ready(answer) => answer,
                        Poll::Pending => {
                            ready!(poll_timer(timer, cx));
                            acquisition.give_up(cx)
                        }
                    };
                    call.take()
                        .zip(hold.take())
                        .map(|(call, hold)| moves::answered(plan, answer, acquisition, call, hold))
                }
                StageProj::Running { handler, watch, limit } => Some(match handler.poll(cx) {
                    // A response that is ready wins over a loss that is seen in the same poll.
                    Poll::Ready(answer) => moves::finished(plan, answer, std::mem::take(watch)),
                    Poll::Pending => match watch.poll_cancelled(cx) {
                        Poll::Ready(error) => moves::lost(error, std::mem::take(watch)),
                        Poll::Pending => {
                            ready!(poll_timer(timer, cx));
                            moves::out_of_time(*limit, std::mem::take(watch))
                        }
                    },
                }),
                StageProj::Ending { answer, ending } => {
                    if ending.poll(cx).is_pending() {
                        ready!(poll_timer(timer, cx));
                        ending.give_up();
                    }
                    answer.take().map(Move::Answer)
                }
                StageProj::Over => None,
            };
            let Some(next) = next else {
                debug_assert!(false, "polled after it was done");
                return Poll::Pending;
            };
            if let Some(answer) = self.as_mut().make(next) {
                return Poll::Ready(answers::last(&self.plan.answers, answer));
            }
        }
    }
}

/// Waits for the timer; without one, for ever.
fn poll_timer(timer: Pin<&mut Option<Sleep>>, cx: &mut Context<'_>) -> Poll<()> {
    timer.as_pin_mut().map_or(Poll::Pending, |timer| timer.poll(cx))
}

impl<S, T, K, B> fmt::Debug for ResponseFuture<S, T, K, B>
where
    S: Service<LambdaEvent<T>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Fresh { .. } => "fresh",
            Stage::Readying { .. } => "readying",
            Stage::Acquiring { .. } => "acquiring",
            Stage::Running { .. } => "running",
            Stage::Ending { .. } => "ending",
            Stage::Over => "over",
        };
        f.debug_struct("ResponseFuture").field("stage", &stage).finish_non_exhaustive()
    }
}
