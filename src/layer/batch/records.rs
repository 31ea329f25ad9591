//! One group's records, one after the other, under the lease that they share.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use futures_util::FutureExt as _;
use futures_util::future::CatchUnwind;
use lambda_runtime::{Context, LambdaEvent};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower::Service;

use super::ledger::Cause;
use super::work::{Slot, Work};
use crate::error::{Error, RecordOutOfTime};
use crate::lease::Lease;

/// What a lease is taken for: records with one key.
#[derive(Debug)]
pub(super) struct Records<T> {
    pub(super) todo: VecDeque<Todo<T>>,
    /// The first one's time, which began before the lease was asked for.
    pub(super) first: Option<Slot>,
}

/// A record to be worked on.
#[derive(Debug)]
pub(super) struct Todo<T> {
    pub(super) record: usize,
    pub(super) payload: T,
}

/// A record's handler as one for a whole group. It never fails: what becomes of the records goes to the ledger.
#[derive(Debug)]
pub(super) struct GroupHandler<S> {
    pub(super) service: S,
    pub(super) work: Arc<Work>,
}

impl<S, T> Service<LambdaEvent<Records<T>>> for GroupHandler<S>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
{
    type Response = ();
    type Error = std::convert::Infallible;
    type Future = Handling<S, T>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<Records<T>>) -> Self::Future {
        let (Records { todo, first }, context) = event.into_parts();
        Handling {
            service: self.service.clone(),
            work: self.work.clone(),
            context,
            todo,
            first,
            was_cut_off: None,
            current: None,
            stage: Stage::Idle,
            timer: None,
        }
    }
}

pin_project! {
    pub(super) struct Handling<S, T>
    where
        S: Service<LambdaEvent<T>>,
    {
        service: S,
        work: Arc<Work>,
        context: Context,
        todo: VecDeque<Todo<T>>,
        first: Option<Slot>,
        // The record that was ended in the middle, if one was.
        was_cut_off: Option<usize>,
        current: Option<Current>,
        #[pin]
        stage: Stage<S, T>,
        #[pin]
        timer: Option<Sleep>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<S, T>
    where
        S: Service<LambdaEvent<T>>,
    {
        Idle,
        // The handler may not be ready.
        Readying { call: Option<(S, LambdaEvent<T>)> },
        Running { #[pin] handler: CatchUnwind<AssertUnwindSafe<S::Future>> },
    }
}

/// The record that is being worked on.
#[derive(Clone, Copy, Debug)]
struct Current {
    record: usize,
    slot: Option<Slot>,
}

/// How a record's handler ended.
enum End<E> {
    Done,
    Failed(E),
    Panicked(Box<dyn Any + Send>),
    OutOfTime,
}

impl<S, T> Handling<S, T>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
{
    /// Takes up the next record that may still be worked on; whether there was one.
    fn take_up_the_next(self: Pin<&mut Self>) -> bool {
        let mut this = self.project();
        while let Some(Todo { record, payload }) = this.todo.pop_front() {
            if this.work.ledger().is_settled(record) {
                continue;
            }
            // Nothing begins under a lease that is lost, whatever `on_loss` lets go on.
            if let Some(loss) = Lease::current().ok().and_then(|lease| lease.loss()) {
                this.work.fail(record, Cause::Error(Arc::new(loss)));
                continue;
            }
            if let Some(before) = this.was_cut_off.filter(|_| this.work.stops_when_cut_off) {
                this.work.fail(record, Cause::Behind(before));
                continue;
            }
            let slot = match this.first.take() {
                Some(slot) => Ok(Some(slot)),
                None => this.work.slot(record, this.todo.len() + 1),
            };
            match slot {
                Ok(slot) => {
                    let context = this.work.context(this.context, slot);
                    let call = (this.service.clone(), LambdaEvent::new(payload, context));
                    this.timer.set(slot.map(|slot| sleep(this.work.left_of(slot))));
                    this.stage.set(Stage::Readying { call: Some(call) });
                    *this.current = Some(Current { record, slot });
                    return true;
                }
                Err(error) => drop(this.work.fail(record, Cause::Error(Arc::new(error.into())))),
            }
        }
        false
    }

    /// Polls what is under way; how it ended.
    fn poll_end(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<End<S::Error>> {
        let mut this = self.project();
        loop {
            let polled = match this.stage.as_mut().project() {
                StageProj::Idle => return Poll::Pending,
                StageProj::Readying { call } => {
                    let Some((mut service, event)) = call.take() else { return Poll::Pending };
                    match catch_unwind(AssertUnwindSafe(|| service.poll_ready(cx))) {
                        Err(panic) => return Poll::Ready(End::Panicked(panic)),
                        Ok(Poll::Ready(Err(error))) => return Poll::Ready(End::Failed(error)),
                        Ok(Poll::Pending) => {
                            *call = Some((service, event));
                            Poll::Pending
                        }
                        Ok(Poll::Ready(Ok(()))) => match catch_unwind(AssertUnwindSafe(|| service.call(event))) {
                            Err(panic) => return Poll::Ready(End::Panicked(panic)),
                            Ok(handler) => {
                                let handler = AssertUnwindSafe(handler).catch_unwind();
                                this.stage.set(Stage::Running { handler });
                                continue;
                            }
                        },
                    }
                }
                StageProj::Running { handler } => handler.poll(cx).map(|ended| match ended {
                    Ok(Ok(_)) => End::Done,
                    Ok(Err(error)) => End::Failed(error),
                    Err(panic) => End::Panicked(panic),
                }),
            };
            if polled.is_ready() {
                return polled;
            }
            // Without a deadline there is no timer, and nothing to end it.
            return match this.timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(cx).map(|()| End::OutOfTime),
                None => Poll::Pending,
            };
        }
    }

    /// Settles the record that has come to an end.
    fn settle(self: Pin<&mut Self>, end: End<S::Error>) {
        let mut this = self.project();
        // What is left of the handler goes first, still under the lease.
        let dropped = catch_unwind(AssertUnwindSafe(|| this.stage.set(Stage::Idle)));
        this.timer.set(None);
        let Some(Current { record, slot }) = this.current.take() else { return };
        let end = match dropped {
            Ok(()) => end,
            Err(panic) => End::Panicked(panic),
        };
        let lease = Lease::current().ok();
        let cause = match end {
            End::Done => match lease.as_ref().and_then(Lease::loss).filter(|_| this.work.takes_back_answers) {
                None => return this.work.ledger().done(record),
                Some(loss) => Cause::Error(Arc::new(loss)),
            },
            End::Failed(error) => Cause::Handler(format!("{error:?}")),
            End::Panicked(panic) => {
                *this.was_cut_off = Some(record);
                Cause::Panicked(message(&*panic))
            }
            End::OutOfTime => {
                *this.was_cut_off = Some(record);
                let share = slot.map_or(std::time::Duration::ZERO, |slot| slot.share);
                let error: Error = RecordOutOfTime { share }.into();
                Cause::Error(Arc::new(error))
            }
        };
        if let (Some(_), Some(lease)) = (*this.was_cut_off, lease) {
            lease.cut_off();
        }
        this.work.fail(record, cause);
    }
}

impl<S, T> Future for Handling<S, T>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
{
    type Output = Result<(), std::convert::Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        loop {
            if self.current.is_none() && !self.as_mut().take_up_the_next() {
                return Poll::Ready(Ok(()));
            }
            let end = ready!(self.as_mut().poll_end(cx));
            self.as_mut().settle(end);
        }
    }
}

/// What a panic said.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "without a message".to_owned(),
    }
}
