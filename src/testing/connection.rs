//! A session's connection to a double: what is said is heard at once, and answers wait in memory.

use std::task::{Context, Poll, Waker};

use super::TestKeeper;
use crate::session::{FromKeeper, ToKeeper};

/// One session at a double; dropping it is the connection's end.
#[derive(Debug)]
pub(crate) struct Connection {
    keeper: TestKeeper,
    session: u64,
}

impl Connection {
    /// Opens one. The waker is woken whenever there is something to hear.
    pub(crate) fn open(keeper: TestKeeper, waker: Waker) -> Self {
        let session = keeper.with(|state| state.open(waker));
        Self { keeper, session }
    }

    pub(crate) fn say(&self, line: ToKeeper) {
        self.keeper.with(|state| state.hear(self.session, line));
    }

    /// The next line; `None` where the keeper is gone.
    pub(crate) fn poll_next(&self, _cx: &mut Context<'_>) -> Poll<Option<FromKeeper>> {
        self.keeper.with(|state| state.next_line(self.session))
    }

    pub(crate) fn close(&self) {
        self.keeper.with(|state| state.close(self.session));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}
