//! Where a session leaves its one order for a lease, and reads how the lease's task is doing.
//!
//! A session and a lease's task never wait for each other: an order is left here and the task is nudged; the task works
//! it off when it next looks.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::flights::Flight;
use super::state::{Ask, MOST_WAITING};

/// Why a lease is to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GiveBack {
    /// The handler is done.
    Finished,
    /// The handler is done, and the key is to stay held until so long after it was acquired.
    Kept(Duration),
    /// The handler did not finish, and said so.
    Dropped,
    /// Nobody wants it any more.
    Cancelled,
    /// The session's connection ended without a word.
    Crash,
    /// The keeper shuts down.
    Shutdown,
}

impl GiveBack {
    /// Whether `on_crash` decides what happens to the row.
    pub(super) const fn is_crash(self) -> bool {
        matches!(self, Self::Dropped | Self::Crash | Self::Shutdown)
    }

    /// As it stands in the log.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Finished | Self::Kept(_) => "finished",
            Self::Dropped => "dropped",
            Self::Cancelled => "cancelled",
            Self::Crash => "crash",
            Self::Shutdown => "shutdown",
        }
    }
}

/// The order and the state of one lease.
#[derive(Debug, Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    nudge: Notify,
    progress: Notify,
    /// Told when something is asked about the state: whoever waits for an order must not take it for one.
    asked: Notify,
}

#[derive(Debug, Default)]
struct State {
    order: Option<GiveBack>,
    /// How many `released` lines wait for the write.
    answers_due: u32,
    /// The release that is owed to the store since the order was left, until the task takes it.
    debt: Option<Flight>,
    stage: Stage,
    asks: VecDeque<Ask>,
}

/// How far a lease has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// No answer yet.
    #[default]
    Asked,
    /// Granted, and not lost or given back.
    Granted,
    /// Lost, refused or on its way back: the key is free for this session.
    Over,
    /// Its task is done.
    Ended,
}

impl Desk {
    /// Leaves the order to give the lease back, unless there is one already. With `answer_later` the task tells
    /// `released` when the row is written; `owe` notes the write as in flight from this moment on. Returns whether there
    /// is a task left to see it.
    pub(super) fn give_back(&self, order: GiveBack, answer_later: bool, owe: impl FnOnce() -> Flight) -> bool {
        let mut state = self.state();
        if state.stage == Stage::Ended {
            return false;
        }
        if answer_later {
            state.answers_due = state.answers_due.saturating_add(1);
        }
        if state.order.is_none() {
            state.order = Some(order);
            state.debt = Some(owe());
            state.stage = Stage::Over;
            self.nudge.notify_one();
        }
        true
    }

    /// Leaves a question or an order about the state of a lease that is held; whether there was room and a lease for it.
    pub(super) fn ask(&self, ask: Ask) -> bool {
        let mut state = self.state();
        let taken = state.stage == Stage::Granted && state.asks.len() < MOST_WAITING;
        if taken {
            state.asks.push_back(ask);
            self.asked.notify_one();
        }
        taken
    }

    /// Waits for the next question or order about the state.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn asked(&self) -> Ask {
        loop {
            let ask = self.state().asks.pop_front();
            if let Some(ask) = ask {
                return ask;
            }
            self.asked.notified().await;
        }
    }

    /// Waits for an order.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: the order stays until it is read.
    pub(super) async fn order(&self) -> GiveBack {
        loop {
            let order = self.state().order;
            if let Some(order) = order {
                return order;
            }
            self.nudge.notified().await;
        }
    }

    /// The handler told of its progress.
    pub(super) fn tell_progress(&self) {
        self.progress.notify_one();
    }

    /// Waits until the handler has told of its progress since the last time.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn progress(&self) {
        self.progress.notified().await;
    }

    /// The release that is owed since the order was left; the task owes it from here.
    pub(super) fn take_debt(&self) -> Option<Flight> {
        self.state().debt.take()
    }

    pub(super) fn stage(&self) -> Stage {
        self.state().stage
    }

    /// The task tells how far the lease has come, and `tell`s the session, unless an order was left: who gave the order
    /// may have been answered already, and a grant told after `released` would confuse it. Returns whether it was told.
    pub(super) fn advance(&self, stage: Stage, tell: impl FnOnce()) -> bool {
        let mut state = self.state();
        let wanted = state.order.is_none() && state.stage < Stage::Over;
        if wanted {
            state.stage = stage;
            tell();
        }
        wanted
    }

    /// The task is done; `answer`s what waits for that.
    pub(super) fn end(&self, answer: impl Fn()) {
        let mut state = self.state();
        state.stage = Stage::Ended;
        state.debt = None;
        for _ in 0..std::mem::take(&mut state.answers_due) {
            answer();
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::flights::Flights;

    #[test]
    fn the_first_order_counts_and_nothing_is_told_after_it() {
        let (desk, flights) = (Desk::default(), Flights::new());
        assert!(desk.advance(Stage::Granted, || {}));
        assert!(desk.give_back(GiveBack::Finished, true, || flights.owe()));
        assert!(desk.give_back(GiveBack::Crash, true, || flights.owe()));
        assert_eq!(flights.count().owed, 1);
        assert!(!desk.advance(Stage::Granted, || unreachable!("told after the order")));
        let mut order = tokio_test::task::spawn(desk.order());
        tokio_test::assert_ready_eq!(order.poll(), GiveBack::Finished);
        let answered = std::cell::Cell::new(0);
        desk.end(|| answered.set(answered.get() + 1));
        assert_eq!(answered.get(), 2);
        assert!(!desk.give_back(GiveBack::Crash, true, || flights.owe()));
        assert_eq!(flights.count().total(), 0);
    }
}
