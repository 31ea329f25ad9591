//! What keeps a lease: whoever holds the last share of it gives the lease back by dropping it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::keeper::client::{Owed, Released, Session};
use crate::metrics;
use crate::session::ReleaseReason;

/// How long a drop waits for the keeper to confirm: a drop has no executor to wait with, and blocks.
const DROP_WAITS: Duration = Duration::from_millis(250);

/// An invocation's session and what it owes. The layer's future has a share, each guard has one.
///
/// Completing, cancelling and panicking all come down to the drop of the last share. Only where the layer's future
/// holds that one and the handler is done does it take it apart, to wait for the keeper without blocking.
#[derive(Debug)]
pub(crate) struct Hold {
    session: Arc<Session>,
    /// Whether the handler's future came to its end: what is still held then is held by guards, on purpose.
    finished: AtomicBool,
    /// Whether a part of the work was ended before it was done: the lease goes back as after a crash.
    cut_off: AtomicBool,
    /// For how many milliseconds a drop waits until the row is free; 0 where the keeper's word is enough.
    row_within_ms: AtomicU64,
    /// For how many milliseconds after its acquisition the key is to stay held if the work is done well; 0 for none.
    hold_at_least_ms: AtomicU64,
    /// Whether it is.
    succeeded: AtomicBool,
}

impl Hold {
    pub(crate) const fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            finished: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            row_within_ms: AtomicU64::new(0),
            hold_at_least_ms: AtomicU64::new(0),
            succeeded: AtomicBool::new(false),
        }
    }

    pub(crate) const fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The handler's future came to its end.
    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// The work is done, and well: it is not to be tried again at once.
    pub(crate) fn succeed(&self) {
        self.succeeded.store(true, Ordering::Release);
    }

    /// The key is to stay held for so long after its acquisition if the work is done well.
    pub(crate) fn hold_at_least(&self, minimum: Duration) {
        let ms = u64::try_from(minimum.as_millis()).unwrap_or(u64::MAX);
        self.hold_at_least_ms.store(ms, Ordering::Release);
    }

    /// A part of the work was ended before it was done.
    pub(crate) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Release);
    }

    /// A drop waits until the row is free, for so long at most: the keeper may end with this very process, as a thread of a
    /// program that returns from `main` does.
    pub(crate) fn frees_row_within(&self, limit: Duration) {
        let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.row_within_ms.store(ms, Ordering::Release);
    }

    /// Why the lease goes back now that the handler's future has come to its end.
    pub(crate) fn reason_at_the_end(&self) -> ReleaseReason {
        if self.cut_off.load(Ordering::Acquire) { ReleaseReason::Dropped } else { ReleaseReason::Finished }
    }

    /// Gives back what is held of a lease that will not be whole; the session goes on.
    pub(crate) fn give_up(&self) {
        if self.session.owes().is_some() {
            self.release(ReleaseReason::Cancelled, false);
        }
    }

    /// Gives the lease back, or its request up, and closes the session without waiting for anything.
    pub(crate) fn let_go(&self, reason: ReleaseReason) {
        if self.session.owes().is_some() {
            self.release(reason, false);
        }
        self.session.close();
    }

    /// Sends the release. What was not done well may be tried again at once.
    pub(crate) fn release(&self, reason: ReleaseReason, wait: bool) {
        let succeeded = reason == ReleaseReason::Finished && self.succeeded.load(Ordering::Acquire);
        let minimum = match self.hold_at_least_ms.load(Ordering::Acquire) {
            0 => None,
            ms => succeeded.then_some(Duration::from_millis(ms)),
        };
        self.session.release(reason, wait, minimum);
    }

    fn reason(&self, owed: Owed) -> ReleaseReason {
        match owed {
            Owed::Cancellation => ReleaseReason::Cancelled,
            Owed::Lease if self.finished.load(Ordering::Acquire) && !std::thread::panicking() => {
                self.reason_at_the_end()
            }
            Owed::Lease => ReleaseReason::Dropped,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(owed) = self.session.owes() {
            // Until the keeper has read it, the environment could be frozen with the lease still held.
            let (wait, limit) = match self.row_within_ms.load(Ordering::Acquire) {
                0 => (false, DROP_WAITS),
                ms => (true, Duration::from_millis(ms)),
            };
            self.release(self.reason(owed), wait);
            note_release(self.session.released_within(limit));
        }
        self.session.close();
    }
}

/// Counts and logs a release that did not go well. It changes nobody's answer.
pub(crate) fn note_release(released: Option<Released>) {
    match released {
        Some(Released::Done) => {}
        Some(Released::Failed(reason)) => {
            metrics::COUNTERS.failed_releases.add_one();
            tracing::warn!(reason, "the lease could not be given back; the key is free when the lease ends");
        }
        None => {
            metrics::COUNTERS.late_releases.add_one();
            tracing::warn!("the keeper did not confirm in time that the lease is back");
        }
    }
}
