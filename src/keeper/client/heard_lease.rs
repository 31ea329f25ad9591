//! What was heard of one acquisition in a session.

use std::time::Duration;

use super::heard::Which;
use crate::protocol::{FencingToken, HolderInfo, OwnerId};
use crate::session::{Counted, FailKind, FromKeeper};

/// A lease, as it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) owner: OwnerId,
    pub(crate) token: Option<FencingToken>,
    pub(crate) waited: Duration,
    pub(crate) attempts: u32,
    /// How much of the wait was spent in the keeper's own line, before the first write.
    pub(crate) queued: Duration,
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

/// One acquisition.
#[derive(Debug)]
pub(super) struct HeardLease {
    pub(super) which: Which,
    pub(super) answer: Option<Answer>,
    pub(super) at_risk: bool,
    pub(super) lost: Option<String>,
    pub(super) released: Option<Released>,
    /// Whether the release was sent: from then on a failure is the release's.
    pub(super) releasing: bool,
    /// How often its counts were asked for.
    pub(super) counts_asked: u64,
    /// How often they were told.
    pub(super) counts_told: u64,
    /// The last that were.
    pub(super) counted: Option<Counted>,
}

impl HeardLease {
    /// It was asked for, and nothing was heard of it yet.
    pub(super) const fn asked(which: Which) -> Self {
        Self {
            which,
            answer: None,
            at_risk: false,
            lost: None,
            released: None,
            releasing: false,
            counts_asked: 0,
            counts_told: 0,
            counted: None,
        }
    }

    /// The lease, if it was granted.
    pub(super) const fn grant(&self) -> Option<Grant> {
        match self.answer {
            Some(Answer::Granted(grant)) => Some(grant),
            _ => None,
        }
    }

    /// Takes in one line about it.
    pub(super) fn hear(&mut self, line: FromKeeper) {
        match line {
            FromKeeper::Granted { owner, token, waited_ms, attempts, queued_ms, .. } => {
                let (waited, queued) = (Duration::from_millis(waited_ms), Duration::from_millis(queued_ms));
                self.answer_with(Answer::Granted(Grant { owner, token, waited, attempts, queued }));
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
            FromKeeper::Counted(counted) => {
                self.counted = Some(*counted);
                self.counts_told += 1;
            }
            // What is about no lease is heard elsewhere.
            _ => {}
        }
    }

    fn answer_with(&mut self, answer: Answer) {
        self.answer.get_or_insert(answer);
    }

    /// Whether the keeper is to hear that it is no longer wanted: it is held, or may be yet.
    pub(super) const fn is_open(&self) -> bool {
        !self.releasing && self.lost.is_none() && matches!(self.answer, None | Some(Answer::Granted(_)))
    }

    /// How its release ended, on a connection that broke for this reason, if it did; there is nothing to wait for where it
    /// was refused, and nothing to free any more where a loss crosses the release.
    pub(super) fn ended(&self, gone: Option<&String>) -> Option<Released> {
        let is_refused = matches!(self.answer, Some(Answer::Busy { .. } | Answer::Failed { .. })) && !self.releasing;
        match (&self.released, gone) {
            (Some(released), _) => Some(released.clone()),
            (None, Some(reason)) => Some(Released::Failed(reason.clone())),
            (None, None) => (is_refused || self.lost.is_some()).then_some(Released::Done),
        }
    }
}
