//! What a session asks about its lease's state, and the answers that came.

use std::task::{Context, Poll};

use super::heard::{Loss, Which};
use super::session::Session;
use crate::session::{FailKind, FromKeeper, RawState, ToKeeper};

/// What the keeper answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StateAnswer {
    /// The state, if there is one.
    Loaded(Option<RawState>),
    /// It is written, or noted for the release.
    Saved,
    /// It could not be served.
    Failed { kind: FailKind, message: String },
}

/// The questions that are not answered, and the answers that are not read.
#[derive(Debug, Default)]
pub(super) struct States {
    asked: u64,
    answers: Vec<(u64, Option<StateAnswer>)>,
}

impl States {
    /// Names the next question; its answer is kept if somebody waits for it.
    fn ask(&mut self, is_waited_for: bool) -> u64 {
        self.asked += 1;
        if is_waited_for {
            self.answers.push((self.asked, None));
        }
        self.asked
    }

    /// Takes in a line, if it answers something that is waited for.
    pub(super) fn hear(&mut self, line: FromKeeper) {
        let (call, answer) = match line {
            FromKeeper::State { call, value, .. } => (call, StateAnswer::Loaded(value)),
            FromKeeper::StateSaved { call, .. } => (call, StateAnswer::Saved),
            FromKeeper::StateFailed { call, kind, message, .. } => (call, StateAnswer::Failed { kind, message }),
            _ => return,
        };
        if let Some((_, slot)) = self.answers.iter_mut().find(|(asked, _)| *asked == call) {
            *slot = Some(answer);
        }
    }
}

/// A question that is waited for; dropping it forgets the answer.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    session: &'a Session,
    call: u64,
}

impl Session {
    /// Asks for the state.
    pub(crate) fn load_state(&self) -> Question<'_> {
        self.ask(true, |call| ToKeeper::LoadState { id: Which::Main.id(), call })
    }

    /// Has a state written, or taken away.
    pub(crate) fn save_state(&self, value: Option<RawState>) -> Question<'_> {
        self.ask(true, |call| ToKeeper::SaveState { id: Which::Main.id(), call, value, on_release: false })
    }

    /// Has a state written with the release, or taken away. The keeper's answer says nothing that is not known here.
    pub(crate) fn save_state_on_release(&self, value: Option<RawState>) {
        let _unheard =
            self.ask(false, |call| ToKeeper::SaveState { id: Which::Main.id(), call, value, on_release: true });
    }

    fn ask(&self, is_waited_for: bool, line: impl FnOnce(u64) -> ToKeeper) -> Question<'_> {
        let call = self.say(|heard| {
            let call = heard.states.ask(is_waited_for);
            (call, line(call))
        });
        Question { session: self, call }
    }
}

impl Question<'_> {
    /// Waits for the answer, or for the end of the lease: a loss, or none where it was given back.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<StateAnswer, Option<Loss>>> {
        let call = self.call;
        self.session.poll_for_answer(cx, move |heard| {
            heard.states.answers.iter().find(|(asked, _)| *asked == call).and_then(|(_, answer)| answer.clone())
        })
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let call = self.call;
        self.session.forget(move |heard| heard.states.answers.retain(|(asked, _)| *asked != call));
    }
}
