//! The queue of what is to happen, by true time; what falls on one moment happens in the order in which it was queued.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Micros;
use crate::clock::Mono;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A keeper's next session begins.
    Begin { keeper: u32 },
    /// A request reaches the store.
    Apply { flight: u32 },
    /// An answer reaches the keeper.
    Answer { flight: u32 },
    /// A request's time is over.
    Timeout { flight: u32 },
    /// A machine wanted to be woken.
    Wake { session: u32, at: Mono },
    /// Who asked for the lease no longer wants it.
    Cancel { session: u32 },
    /// The handler is at its end.
    Finish { session: u32 },
    /// A freeze of a session's environment.
    Freeze { session: u32 },
    /// A keeper's environment goes on.
    Thaw { keeper: u32 },
    /// A step of the wall clock.
    Step { keeper: u32 },
    /// An environment is gone.
    Vanish { keeper: u32 },
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Micros, u32, Event)>>,
    last: u32,
}

impl Queue {
    pub(super) fn push(&mut self, at: Micros, event: Event) {
        self.last += 1;
        self.heap.push(Reverse((at, self.last, event)));
    }

    pub(super) fn pop(&mut self) -> Option<(Micros, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
