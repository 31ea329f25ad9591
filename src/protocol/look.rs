//! A look at a row by who wants nothing of it: what one consistent read shows, and what this keeper saw before.

use std::time::Duration;

use super::timing::{CONTENDER_GRACE, shown_until_at_least};
use super::{Answer, Context, Epoch, HeldRow, Outcome, Row, Sample, Subject};
use crate::clock::Now;

/// A consistent read that nothing is decided by.
///
/// What it shows goes into the keeper's memory like every contender's look: who takes over later has seen the row for
/// longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    subject: Subject,
    epoch: Epoch,
    sent: Now,
}

/// For how long a held row was seen as it is, and when it can be taken over if that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// For how long this keeper has seen owner and version unchanged, at least; none at its first look.
    pub unchanged_for: Duration,
    /// When the holder's lease can end.
    pub retry_after: Duration,
}

impl Look {
    /// A look at the lock `subject`, sent now.
    #[must_use]
    pub fn new(subject: Subject, cx: &Context<'_>) -> Self {
        Self { subject, epoch: cx.server_time.epoch(), sent: cx.now }
    }

    /// The store's answer to a [`Read`](super::Request::Read). How a held row stands; nothing for any other.
    pub fn handle_answer(&self, cx: &mut Context<'_>, answer: &Answer, server_time: bool) -> Option<Standing> {
        let sample = answer.date.map(|date| Sample { date, sent: self.sent, answered: cx.now, epoch: self.epoch });
        let sample = sample.filter(|sample| cx.server_time.record(*sample) && server_time);
        match &answer.outcome {
            Outcome::Read { row: Row::Held(held) } => Some(self.standing(cx, held, sample)),
            Outcome::Read { .. } => {
                cx.observations.forget(&self.subject);
                None
            }
            Outcome::Written { .. } | Outcome::Refused { .. } | Outcome::Numbered { .. } | Outcome::Failed(_) => None,
        }
    }

    fn standing(&self, cx: &mut Context<'_>, held: &HeldRow, sample: Option<Sample>) -> Standing {
        let seen = cx.observations.record(&self.subject, held.owner, held.version, held.lease, cx.now);
        let unchanged_for = cx.now.smaller_elapsed(seen.since);
        let observed = held.lease.saturating_sub(unchanged_for);
        let expired = held.expires_at.zip(sample).map(|(expires_at, sample)| {
            shown_until_at_least((expires_at + CONTENDER_GRACE).since(sample.lower(cx.now)))
        });
        Standing { unchanged_for, retry_after: expired.map_or(observed, |expired| expired.min(observed)) }
    }
}
