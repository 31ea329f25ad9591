//! A lease's state machine, whichever of the two it is at.

use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::protocol::{Action, Answer, Contender, Context, Holder, RequestId};

/// A contender, then a holder.
#[derive(Debug)]
pub(super) enum Machine {
    Contending(Box<Contender>),
    Holding(Box<Holder>),
}

impl Machine {
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        match self {
            Self::Contending(contender) => contender.poll_action(),
            Self::Holding(holder) => holder.poll_action(),
        }
    }

    /// How long until it wants to be woken.
    pub(super) fn poll_wakeup(&self, now: Now) -> Option<Duration> {
        let at: Option<Mono> = match self {
            Self::Contending(contender) => contender.poll_wakeup(),
            Self::Holding(holder) => holder.poll_wakeup(now),
        };
        at.map(|at| at.since(now.mono))
    }

    pub(super) fn handle_answer(&mut self, cx: &mut Context<'_>, id: RequestId, answer: Answer) {
        match self {
            Self::Contending(contender) => contender.handle_answer(cx, id, answer),
            Self::Holding(holder) => holder.handle_answer(cx, id, answer),
        }
    }

    pub(super) fn handle_wakeup(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Contending(contender) => contender.handle_wakeup(cx),
            Self::Holding(holder) => holder.handle_wakeup(cx),
        }
    }

    /// Gives up, or gives back what is done with.
    pub(super) fn handle_finished(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Contending(contender) => contender.handle_cancel(cx),
            Self::Holding(holder) => holder.handle_release(cx),
        }
    }

    /// Gives up, or gives back whatever became of the work.
    pub(super) fn handle_unwanted(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Contending(contender) => contender.handle_cancel(cx),
            Self::Holding(holder) => holder.handle_unwanted(cx),
        }
    }

    /// Gives up, or gives back but for a key that stays held until so long after it was acquired.
    pub(super) fn handle_kept(&mut self, cx: &mut Context<'_>, minimum: Duration) {
        match self {
            Self::Contending(contender) => contender.handle_cancel(cx),
            Self::Holding(holder) => holder.handle_park(cx, minimum),
        }
    }

    /// Lets go of the lease without freeing the row.
    pub(super) fn abandon(&mut self) {
        if let Self::Holding(holder) = self {
            holder.handle_abandon();
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        match self {
            Self::Contending(contender) => contender.is_finished(),
            Self::Holding(holder) => holder.is_finished(),
        }
    }
}
