//! Who waits for a session: whoever reads its connection wakes all others.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// The tasks that wait for one session. It wakes them all, since any of them may be the one that reads next.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    waiting: Mutex<Vec<Waker>>,
}

impl Wakers {
    /// The task waits, until the next time all are woken.
    pub(super) fn add(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    /// Wakes all.
    pub(super) fn wake_all(&self) {
        // Woken outside the lock: a waker may poll at once, and come back here.
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}
