//! When a held row may be taken over: observed unchanged for its lease, or expired by server time.

use std::time::Duration;

use super::Contender;
use crate::protocol::timing::{CONTENDER_GRACE, shown_until_at_least};
use crate::protocol::{Context, HeldRow, Mutant, Sample};

impl Contender {
    pub(super) fn may_take_over(&self, cx: &Context<'_>) -> bool {
        self.until_takeover(cx).is_some_and(|left| left.is_zero())
    }

    /// How long until the held row may be taken over, by whichever rule allows it first.
    pub(super) fn until_takeover(&self, cx: &Context<'_>) -> Option<Duration> {
        let held = self.held.as_ref()?;
        match (self.until_observed(cx, held), self.until_expired(cx, held)) {
            (Some(observed), Some(expired)) => Some(observed.min(expired)),
            (observed, expired) => observed.or(expired),
        }
    }

    /// (a) Owner and version stayed unchanged for the row's lease, by the smaller elapsed time since the answer that
    /// first showed them. No claim while the wall clock is earlier than it was then: the next look starts again.
    fn until_observed(&self, cx: &Context<'_>, held: &HeldRow) -> Option<Duration> {
        let seen = cx.observations.get(&self.subject)?;
        if seen.owner != held.owner || seen.version != held.version {
            return None;
        }
        if self.settings.rules.broken(Mutant::ContenderByLargerClock) {
            return Some(seen.lease.saturating_sub(cx.now.larger_elapsed(seen.since)));
        }
        (cx.now.wall >= seen.since.wall).then(|| seen.lease.saturating_sub(cx.now.smaller_elapsed(seen.since)))
    }

    /// (b) Server time is past `expires_at` by the grace, by answers to requests that were sent since this session
    /// began.
    fn until_expired(&self, cx: &Context<'_>, held: &HeldRow) -> Option<Duration> {
        let over = held.expires_at? + CONTENDER_GRACE;
        let left = over.since(self.server_sample(cx)?.lower(cx.now));
        // By this clock, for which the bound moves more slowly than its own time: who woke earlier would only look
        // again, and with every answer the bound falls back to the second that its `Date` says.
        Some(shown_until_at_least(left))
    }

    pub(super) fn server_sample(&self, cx: &Context<'_>) -> Option<Sample> {
        if !self.settings.server_time {
            None
        } else if self.settings.rules.broken(Mutant::AnswerFromBeforeFreeze) {
            cx.server_time.newest()
        } else {
            cx.server_time.since(self.epoch)
        }
    }
}
