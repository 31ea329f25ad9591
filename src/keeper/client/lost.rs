//! The leases that this process lost with their keeper, until the next `begin` tells its successor.
//!
//! An extension that was killed leaves notes of what it held. The next one must not free them while a handler may still
//! believe; once that handler's process says that it no longer does, nothing stands against it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::OwnerId;

/// More than an environment can lose at once; a forgotten one ends by itself.
const MOST: usize = 64;

static LOST: Mutex<VecDeque<OwnerId>> = Mutex::new(VecDeque::new());

/// A lease whose keeper is gone is no longer believed here.
pub(super) fn note(owner: OwnerId) {
    let mut lost = lost();
    if lost.len() == MOST {
        lost.pop_front();
    }
    lost.push_back(owner);
}

/// What to tell the next keeper, each once.
pub(super) fn take() -> Vec<OwnerId> {
    lost().drain(..).collect()
}

fn lost() -> MutexGuard<'static, VecDeque<OwnerId>> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}
