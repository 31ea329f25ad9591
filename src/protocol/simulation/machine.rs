//! A session's machine, whichever of the two it is, behind one pair of hands: what is fed to it and what it wants.

use std::time::Duration;

use crate::protocol::{Action, Answer, Contender, Context, Holder, RequestId};

/// What runs the protocol for a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Machine {
    Contender(Contender),
    Holder(Holder),
    Done,
}

/// What is fed to a machine.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Start,
    /// A holder starts whose lease nobody wants any more.
    Unwanted,
    Answer(RequestId, Answer),
    Wake,
    Cancel,
    Release,
    Park(Duration),
}

impl Machine {
    /// Feeds it; whether it was there to be fed.
    pub(super) fn feed(&mut self, cx: &mut Context<'_>, input: Input) -> bool {
        match (self, input) {
            (Self::Contender(contender), Input::Start) => contender.start(cx),
            (Self::Contender(contender), Input::Answer(of, answer)) => contender.handle_answer(cx, of, answer),
            (Self::Contender(contender), Input::Wake) => contender.handle_wakeup(cx),
            (Self::Contender(contender), Input::Cancel | Input::Release | Input::Park(_)) => {
                contender.handle_cancel(cx)
            }
            (Self::Holder(holder), Input::Start) => holder.start(cx, false),
            (Self::Holder(holder), Input::Unwanted) => holder.start(cx, true),
            (Self::Holder(holder), Input::Answer(of, answer)) => holder.handle_answer(cx, of, answer),
            (Self::Holder(holder), Input::Wake) => holder.handle_wakeup(cx),
            (Self::Holder(holder), Input::Cancel | Input::Release) => holder.handle_release(cx),
            (Self::Holder(holder), Input::Park(minimum)) => holder.handle_park(cx, minimum),
            (Self::Contender(_), Input::Unwanted) | (Self::Done, _) => return false,
        }
        true
    }

    /// The next thing that it wants done.
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        match self {
            Self::Contender(contender) => contender.poll_action(),
            Self::Holder(holder) => holder.poll_action(),
            Self::Done => None,
        }
    }
}
