//! The requests that make busy messages visible, sent beside the work: a few at a time, and never waited for long.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::CatchUnwind;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::records::message;
use super::visibility::{BusyMessage, Visibility};
use crate::metrics::COUNTERS;

/// How many requests are under way at a time.
const AT_A_TIME: usize = 10;

pub(super) struct Changes<V: Visibility> {
    waiting: VecDeque<BusyMessage>,
    // A panic in one is its own failure: it must not take the answer along, by which what is done does not come again.
    under_way: FuturesUnordered<CatchUnwind<AssertUnwindSafe<V::Change>>>,
}

impl<V: Visibility> Changes<V> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), under_way: FuturesUnordered::new() }
    }

    pub(super) fn push(&mut self, message: BusyMessage) {
        self.waiting.push_back(message);
    }

    /// Goes on with the requests; ready once there is none left.
    pub(super) fn poll(&mut self, visibility: &V, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while self.under_way.len() < AT_A_TIME {
                let Some(busy) = self.waiting.pop_front() else { break };
                match catch_unwind(AssertUnwindSafe(|| visibility.change(busy))) {
                    Ok(change) => self.under_way.extend(change.map(|change| AssertUnwindSafe(change).catch_unwind())),
                    Err(panic) => failed(&format!("it panicked: {}", message(&*panic))),
                }
            }
            match self.under_way.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(Ok(())))) => {}
                Poll::Ready(Some(Ok(Err(error)))) => failed(&format!("{error:?}")),
                Poll::Ready(Some(Err(panic))) => failed(&format!("it panicked: {}", message(&*panic))),
                Poll::Ready(None) if self.waiting.is_empty() => return Poll::Ready(()),
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Gives up what is not done.
    pub(super) fn give_up(&mut self) {
        for _ in 0..self.under_way.len() + self.waiting.len() {
            failed("it was not answered in time");
        }
        self.waiting.clear();
        self.under_way.clear();
    }
}

fn failed(reason: &str) {
    COUNTERS.failed_visibility_changes.add_one();
    tracing::warn!(reason, "a busy message was not made visible; it comes back with the queue's visibility timeout");
}

impl<V: Visibility> fmt::Debug for Changes<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}
