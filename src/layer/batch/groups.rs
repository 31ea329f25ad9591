//! The groups of a batch: which runs, which waits, and what a group's end means for its records.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use lambda_runtime::LambdaEvent;
use pin_project_lite::pin_project;
use tower::Service;

use super::Shape;
use super::changes::Changes;
use super::ledger::{Cause, Ledger};
use super::open::{Batch, Readied};
use super::records::{GroupHandler, Records, Todo};
use super::source::Source;
use super::turns::Turns;
use super::visibility::{BusyMessage, Visibility};
use super::work::Work;
use crate::error::{Error, InvocationError};
use crate::layer::moves::Call;
use crate::layer::step::Opened;
use crate::layer::{Plan, Refuse, ResponseFuture};
use crate::settings::Mode;

pin_project! {
    /// A group under way: its records' handler under a lease of its own.
    struct Running<S, T, K>
    where
        S: Service<LambdaEvent<T>>,
        S: Clone,
        S::Error: fmt::Debug,
    {
        group: usize,
        #[pin]
        future: ResponseFuture<GroupHandler<S>, Records<T>, K, Refuse>,
    }
}

impl<S, T, K> Future for Running<S, T, K>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
{
    type Output = (usize, Option<Error>);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let group = *this.group;
        this.future.poll(cx).map(|answer| match answer {
            Err(InvocationError::Lease { error, .. }) => (group, Some(error)),
            Ok(()) | Err(InvocationError::Handler(_)) => (group, None),
        })
    }
}

/// All groups of a batch.
pub(super) struct Groups<S, T, K, V>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    V: Visibility,
{
    // First, so that what runs is dropped before anything else.
    running: FuturesUnordered<Running<S, T, K>>,
    pub(super) changes: Changes<V>,
    plan: Arc<Plan<K>>,
    shape: Arc<Shape<V>>,
    service: S,
    context: lambda_runtime::Context,
    batch: Batch<T>,
    work: Arc<Work>,
    turns: Turns,
}

impl<S, T, K, V> Groups<S, T, K, V>
where
    S: Service<LambdaEvent<T>> + Clone,
    S::Error: fmt::Debug,
    V: Visibility,
{
    /// Takes up a batch.
    ///
    /// # Errors
    ///
    /// When there is not even time for one record of it.
    pub(super) fn new(
        plan: Arc<Plan<K>>,
        shape: Arc<Shape<V>>,
        service: S,
        mut batch: Batch<T>,
        context: lambda_runtime::Context,
    ) -> Result<Self, Error> {
        let turns = Turns::new(&batch.order);
        let order = &mut batch.order;
        let ledger = Ledger::new(std::mem::take(&mut batch.ids), &std::mem::take(&mut order.behind));
        let to_the_end = std::mem::take(&mut order.to_the_end);
        let work = Work::new(&plan.core, ledger, to_the_end, shape.margin, shape.concurrency, &context);
        if !batch.records.is_empty() {
            work.check_reserve(&plan.core)?;
        }
        for (record, readied) in batch.records.iter().enumerate() {
            if let Readied::Unusable(cause) = readied {
                work.fail(record, cause.clone());
            }
        }
        Ok(Self {
            running: FuturesUnordered::new(),
            changes: Changes::new(),
            plan,
            shape,
            service,
            context,
            batch,
            work: Arc::new(work),
            turns,
        })
    }

    pub(super) const fn source(&self) -> Source {
        self.batch.source
    }

    /// After how long the answer is given, whatever is not done by then.
    pub(super) fn answer_within(&self) -> Option<Duration> {
        self.work.answer_within()
    }

    pub(super) fn into_ledger(self) -> Ledger {
        self.work.take_ledger()
    }

    /// Works on the batch until each record has an outcome.
    pub(super) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.begin_what_may();
            match self.running.poll_next_unpin(cx) {
                Poll::Ready(Some((group, error))) => self.end(group, error),
                Poll::Ready(None) => {
                    debug_assert!(self.turns.is_empty(), "each group may begin once those before it are over");
                    return Poll::Ready(());
                }
                // A record that came to its end may be what a group waits for.
                Poll::Pending if self.work.ledger().has_newly_settled() => {}
                Poll::Pending => {
                    let _ = self.changes.poll(&self.shape.visibility, cx);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Begins groups for as long as one may begin and is not one too many.
    fn begin_what_may(&mut self) {
        loop {
            for record in self.work.ledger().take_newly_settled() {
                self.turns.record_is_settled(record);
            }
            if self.running.len() >= self.shape.concurrency {
                return;
            }
            let Some(group) = self.turns.next() else { return };
            if !self.begin(group) {
                self.turns.group_is_over(group);
            }
        }
    }

    /// Begins a group, if there is still something to do in it.
    fn begin(&mut self, group: usize) -> bool {
        let records = self.records(group);
        let mut todo = VecDeque::with_capacity(records.len());
        let mut group_key = None;
        for record in records {
            let Some(readied) = self.batch.records.get_mut(record) else { continue };
            if self.work.ledger().is_settled(record) {
                continue;
            }
            if let Readied::Usable { payload, key } = readied.take() {
                group_key.get_or_insert(key);
                todo.push_back(Todo { record, payload });
            }
        }
        let first = loop {
            let Some(next) = todo.front().map(|todo| todo.record) else { return false };
            match self.work.slot(next, todo.len()) {
                Ok(slot) => break slot,
                Err(error) => drop(self.work.fail(next, Cause::Error(Arc::new(error.into())))),
            }
            todo.pop_front();
        };
        let Some(key) = group_key else { return false };
        let core = &self.plan.core;
        // Begun with the invocation's own deadline, by which the keeper judges; what follows counts by the first record's.
        let hold = (core.mode() != Mode::Off).then(|| core.begin(&self.context));
        let context = self.work.context(&self.context, first);
        let service = GroupHandler { service: self.service.clone(), work: self.work.clone() };
        let call = Call { service, event: LambdaEvent::new(Records { todo, first }, context) };
        let is_waited_for = self.turns.is_waited_for(group);
        let future = ResponseFuture::opened(self.plan.clone(), call, Opened { hold, key, also: None }, is_waited_for);
        self.running.push(Running { group, future });
        true
    }

    /// A group is over; what of it has no outcome shares the group's.
    fn end(&mut self, group: usize, error: Option<Error>) {
        self.turns.group_is_over(group);
        let Some(error) = error.map(Arc::new) else { return };
        for record in self.records(group) {
            let failed = self.work.fail(record, Cause::Error(error.clone()));
            let Error::LeaseBusy(busy) = &*error else { continue };
            for message in failed {
                self.make_visible(message, busy.retry_after);
            }
        }
    }

    fn make_visible(&mut self, record: usize, retry_after: Duration) {
        if let Some(message) = self.batch.messages.get_mut(record).and_then(Option::take) {
            let id = self.work.ledger().id(record).to_owned();
            self.changes.push(BusyMessage::new(message, id, retry_after));
        }
    }

    fn records(&self, group: usize) -> Vec<usize> {
        self.batch.order.groups.get(group).map(|group| group.records.clone()).unwrap_or_default()
    }
}
