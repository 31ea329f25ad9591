//! Between the row taken and the lease granted: what must be confirmed by a renewal first.

use std::time::Duration;

use super::validity::believed;
use super::{Holder, Phase};
use crate::protocol::{Action, Context, FencingToken, Mutant, Verdict, Versions};

/// A version this far below server time was seeded by a wrong clock, or the row has not been used for long.
const LOW_VERSION: Duration = Duration::from_secs(24 * 60 * 60);

impl Holder {
    /// Whether a renewal must be answered before the grant: what the attempt wrote to `expires_at` may already be, or
    /// can't be shown not to be, too early, or the version was, or can't be shown not to be, seeded by a wrong clock. A row
    /// that has neither needs no answer's `Date`.
    pub(super) fn needs_confirmation(&self, cx: &Context<'_>) -> bool {
        let counted = self.settings.format.abilities().versions == Versions::Counted;
        let unchecked = self.acquired.sample.is_none() && (counted || self.acquired.expires_at.is_some());
        unchecked || self.raised(cx).is_some() || self.validity.left(cx.now) < believed(&self.settings) / 3
    }

    /// The counter that the row must have before the grant, where its own is too low for the server's time.
    pub(super) fn raised(&self, cx: &Context<'_>) -> Option<u64> {
        let date = Duration::from_secs(cx.server_time.since(self.acquired.epoch)?.date);
        let low = Duration::from_millis(self.version.counter()?) + LOW_VERSION < date;
        let raise = low && !self.settings.rules.broken(Mutant::LowSeedNotRaised);
        raise.then(|| u64::try_from(date.as_millis()).unwrap_or(u64::MAX))
    }

    /// A renewal before the grant was answered.
    pub(super) fn confirmed(&mut self, cx: &mut Context<'_>) {
        if self.is_past_latest(cx.now) {
            self.fail_grant(cx);
        } else if self.validity.left(cx.now).is_zero() || self.raised(cx).is_some() {
            // It took longer than it can be believed, or its answer was the first to tell that the version is too low.
            self.renew(cx);
        } else {
            self.grant(cx);
        }
    }

    pub(super) fn grant(&mut self, cx: &mut Context<'_>) {
        self.phase = Phase::Held;
        // A first validity that was cut short, for an `expires_at` from a slow wall clock, is renewed the sooner.
        self.next = self.validity.anchor().mono + (self.settings.lease / 3).min(self.validity.length() / 2);
        let has_token = self.settings.format.abilities().fencing_token();
        let token = self.version.counter().filter(|_| has_token).map(FencingToken::new);
        self.actions.push_back(Action::Granted { token, valid_for: self.validity.left(cx.now) });
    }

    /// No grant came of it in time: whoever waits is told, and the row is freed.
    pub(super) fn fail_grant(&mut self, cx: &mut Context<'_>) {
        let verdict = self.last_failure.take().map_or(Verdict::TooLate, Verdict::Failed);
        self.actions.push_back(Action::Verdict(verdict));
        self.free(cx);
    }
}
