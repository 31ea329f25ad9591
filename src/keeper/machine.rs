//! A lease's state machine, whichever of the two it is at, or the wait for its turn before them.

use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::protocol::{Action, Answer, Contender, Context, Holder, RequestId, Verdict};

/// A contender, then a holder.
#[derive(Debug)]
pub(super) enum Machine {
    InLine(InLine),
    Contending(Box<Contender>),
    Holding(Box<Holder>),
}

/// A contender that has not begun: others of its keeper are ahead.
#[derive(Debug)]
pub(super) struct InLine {
    /// Taken when it begins.
    pub(super) contender: Option<Box<Contender>>,
    /// When its time is over.
    pub(super) stop: Mono,
    /// When it begins, if its turn has come already.
    pub(super) begins_at: Option<Mono>,
    /// What it is told, if it is not to begin.
    verdict: Option<Verdict>,
    finished: bool,
}

impl InLine {
    pub(super) const fn new(contender: Box<Contender>, stop: Mono) -> Self {
        Self { contender: Some(contender), stop, begins_at: None, verdict: None, finished: false }
    }

    /// Ends without having begun: nothing was sent, so nothing is left to clear up.
    pub(super) fn end(&mut self, verdict: Verdict) {
        if !std::mem::replace(&mut self.finished, true) {
            self.verdict = Some(verdict);
        }
    }
}

impl Machine {
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        match self {
            Self::InLine(in_line) => in_line.verdict.take().map(Action::Verdict),
            Self::Contending(contender) => contender.poll_action(),
            Self::Holding(holder) => holder.poll_action(),
        }
    }

    /// How long until it wants to be woken.
    pub(super) fn poll_wakeup(&self, now: Now) -> Option<Duration> {
        let at: Option<Mono> = match self {
            Self::InLine(in_line) if in_line.finished => None,
            Self::InLine(in_line) => Some(in_line.begins_at.map_or(in_line.stop, |at| at.min(in_line.stop))),
            Self::Contending(contender) => contender.poll_wakeup(),
            Self::Holding(holder) => holder.poll_wakeup(now),
        };
        at.map(|at| at.since(now.mono))
    }

    pub(super) fn handle_answer(&mut self, cx: &mut Context<'_>, id: RequestId, answer: Answer) {
        match self {
            Self::InLine(_) => {}
            Self::Contending(contender) => contender.handle_answer(cx, id, answer),
            Self::Holding(holder) => holder.handle_answer(cx, id, answer),
        }
    }

    pub(super) fn handle_wakeup(&mut self, cx: &mut Context<'_>) {
        match self {
            // Whether it begins or ends is its line's to say.
            Self::InLine(_) => {}
            Self::Contending(contender) => contender.handle_wakeup(cx),
            Self::Holding(holder) => holder.handle_wakeup(cx),
        }
    }

    /// Gives up, or gives back what is done with.
    pub(super) fn handle_finished(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::InLine(in_line) => in_line.end(Verdict::Cancelled),
            Self::Contending(contender) => contender.handle_cancel(cx),
            Self::Holding(holder) => holder.handle_release(cx),
        }
    }

    /// Gives up, or gives back whatever became of the work.
    pub(super) fn handle_unwanted(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::InLine(in_line) => in_line.end(Verdict::Cancelled),
            Self::Contending(contender) => contender.handle_cancel(cx),
            Self::Holding(holder) => holder.handle_unwanted(cx),
        }
    }

    /// Gives up, or gives back but for a key that stays held until so long after it was acquired.
    pub(super) fn handle_kept(&mut self, cx: &mut Context<'_>, minimum: Duration) {
        match self {
            Self::InLine(in_line) => in_line.end(Verdict::Cancelled),
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
            Self::InLine(in_line) => in_line.finished,
            Self::Contending(contender) => contender.is_finished(),
            Self::Holding(holder) => holder.is_finished(),
        }
    }
}
