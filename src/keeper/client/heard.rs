//! What a session's connection has brought so far.

use std::time::Duration;

use super::lost;
use super::state::States;
use crate::protocol::{FencingToken, HolderInfo, OwnerId};
use crate::session::{AnswerTo as _, ErrorKind, FailKind, FromKeeper, VersionRange};

/// The one acquisition that a layer makes in a session.
pub(super) const ID: u64 = 1;

/// A lease, as it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) owner: OwnerId,
    pub(crate) token: Option<FencingToken>,
    pub(crate) waited: Duration,
    pub(crate) attempts: u32,
}

/// The answer to `acquire`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted(Grant),
    Busy { holder: Option<Box<HolderInfo>>, waited: Duration, attempts: u32, retry_after: Duration },
    Failed { kind: FailKind, message: String },
}

/// How a release ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// The lease is back.
    Done,
    /// The row may not be free; others wait for the lease to end.
    Failed(String),
}

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The other side speaks other versions.
    Version(String),
    /// The other side is gone, or no longer makes sense.
    Gone(String),
    /// This side is done with it.
    Closed,
}

/// Everything that was heard.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The session versions that were offered.
    offered: VersionRange,
    pub(super) began: bool,
    pub(super) answer: Option<Answer>,
    pub(super) at_risk: bool,
    pub(super) lost: Option<String>,
    pub(super) released: Option<Released>,
    pub(super) broken: Option<Broken>,
    pub(super) states: States,
    /// Whether the release was sent: from then on a failure is the release's.
    pub(super) releasing: bool,
}

impl Heard {
    /// Nothing was heard yet.
    pub(super) fn new(offered: VersionRange) -> Self {
        Self {
            offered,
            began: false,
            answer: None,
            at_risk: false,
            lost: None,
            released: None,
            broken: None,
            states: States::default(),
            releasing: false,
        }
    }

    /// Takes in one line.
    pub(super) fn hear(&mut self, line: FromKeeper) {
        match line {
            FromKeeper::Began { version } => match self.offered.pick(VersionRange { min: version, max: version }) {
                Some(_) => self.began = true,
                None => self.break_off(Broken::Version(format!("the keeper answered with session version {version}"))),
            },
            // A message that the keeper does not know, after it picked the version, is another release's as well. And
            // before anything was begun it can only be about `begin`, which no keeper of a version near ours refuses.
            FromKeeper::Error { kind, message }
                if !self.began || matches!(kind, ErrorKind::Versions | ErrorKind::Message) =>
            {
                self.break_off(Broken::Version(message));
            }
            FromKeeper::Error { message, .. } => self.break_off(Broken::Gone(message)),
            line if line.id() == Some(ID) => self.hear_of_the_lease(line),
            // About another acquisition, or an answer to another question: nothing of ours rests on it.
            _ => {}
        }
    }

    fn hear_of_the_lease(&mut self, line: FromKeeper) {
        match line {
            FromKeeper::Granted { owner, token, waited_ms, attempts, .. } => {
                let waited = Duration::from_millis(waited_ms);
                self.answer_with(Answer::Granted(Grant { owner, token, waited, attempts }));
            }
            FromKeeper::Busy { holder, waited_ms, attempts, retry_after_ms, .. } => self.answer_with(Answer::Busy {
                holder: holder.map(Box::new),
                waited: Duration::from_millis(waited_ms),
                attempts,
                retry_after: Duration::from_millis(retry_after_ms),
            }),
            FromKeeper::Failed { message, .. } if self.releasing => self.released = Some(Released::Failed(message)),
            FromKeeper::Failed { message, .. } if self.grant().is_some() => self.lost = Some(message),
            FromKeeper::Failed { kind, message, .. } => self.answer_with(Answer::Failed { kind, message }),
            FromKeeper::Released { .. } => self.released = Some(Released::Done),
            FromKeeper::AtRisk { .. } => self.at_risk = true,
            FromKeeper::Secured { .. } => self.at_risk = false,
            FromKeeper::Lost { reason, .. } => {
                // The first reason is the right one: what comes after follows from it.
                self.lost.get_or_insert(reason);
            }
            line @ (FromKeeper::State { .. } | FromKeeper::StateSaved { .. } | FromKeeper::StateFailed { .. }) => {
                self.states.hear(line);
            }
            FromKeeper::Began { .. } | FromKeeper::Checked(_) | FromKeeper::Error { .. } => {}
        }
    }

    fn answer_with(&mut self, answer: Answer) {
        self.answer.get_or_insert(answer);
    }

    pub(super) fn break_off(&mut self, broken: Broken) {
        if self.broken.is_none()
            && self.released.is_none()
            && matches!(broken, Broken::Gone(_))
            && let Some(grant) = self.grant()
        {
            lost::note(grant.owner);
        }
        self.broken.get_or_insert(broken);
    }

    /// The lease, if one was granted.
    pub(super) fn grant(&self) -> Option<Grant> {
        match self.answer {
            Some(Answer::Granted(grant)) => Some(grant),
            _ => None,
        }
    }
}
