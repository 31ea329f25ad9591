//! A state that is left with the release, or in its place where the row stays held.

use super::{Ask, NotLeft, States};
use crate::clock::Now;
use crate::keeper::entropy::KernelEntropy;
use crate::protocol::{Entropy as _, OwnerId};
use crate::store::{SeenState, StateItem, StateOutcome, StateWrite, WithRelease};

/// How often a release is sent together with a state before it is sent without.
const MOST_RELEASES: u32 = 5;

impl States {
    /// What was to be written with the release is written now, as there will be none.
    pub(in crate::keeper) fn leave(&mut self) {
        if let Some(value) = self.on_release.take() {
            self.waiting.push_back(Ask::Leave { value });
        }
    }

    /// Whether the end of the lease is to wait, for a moment: for a transaction under way, or for a state to be left.
    pub(in crate::keeper) fn holds_up_the_end(&self) -> bool {
        self.is_writing() || self.has_to_leave()
    }

    /// Whether a state that was to be left is not written yet.
    fn has_to_leave(&self) -> bool {
        let asks = self.current.iter().map(|current| &current.ask).chain(&self.waiting);
        asks.into_iter().any(|ask| matches!(ask, Ask::Leave { .. }))
    }

    /// What is told of a state that was to be left, if the lease ends now and for this reason.
    pub(in crate::keeper) fn left_behind(&self, reason: &str) -> Option<NotLeft> {
        let current = self.current.as_ref().filter(|current| matches!(current.ask, Ask::Leave { .. }));
        let is_unknown =
            current.is_some_and(|current| current.unknown || (current.in_flight && current.write.is_some()));
        let not_left = if is_unknown { NotLeft::Unknown } else { NotLeft::No };
        self.has_to_leave().then(|| not_left(reason.to_owned()))
    }

    /// The transaction that the release is to be sent as, if a state was to be left with it.
    pub(in crate::keeper) fn release(&mut self, now: Now, owner: OwnerId, release: WithRelease) -> Option<StateWrite> {
        if self.leaving.is_none() {
            let value = self.on_release.take()?;
            // One that was sent and not answered may have counted it on; it can't land after this one.
            let unknown = self.current.as_ref().is_some_and(|current| current.write.is_some());
            self.leaving = Some(StateWrite {
                id: KernelEntropy.owner(),
                owner,
                seen: self.seen.filter(|_| !unknown).unwrap_or(SeenState::Unread),
                at: now.wall,
                ttl: self.ttl(now, value.is_none()),
                value,
                release: Some(release),
            });
        }
        self.releases += 1;
        self.leaving.clone()
    }

    /// What came of the release's transaction; why the state is not left, if it is given up so that the row is freed all
    /// the same.
    ///
    /// A refusal is sure even after an attempt without an answer: that one, had it been applied, would have been found by
    /// its token, and meets the same condition if it comes late.
    pub(in crate::keeper) fn handle_released(&mut self, outcome: &StateOutcome) -> Option<NotLeft> {
        if let StateOutcome::Failed(failure) = outcome {
            self.leaving_unknown |= failure.kind.may_have_landed();
            if failure.kind.is_transient() && self.releases < MOST_RELEASES {
                return None;
            }
        }
        let reason = match outcome {
            StateOutcome::Written | StateOutcome::Read(_) => None,
            StateOutcome::Failed(failure) if self.leaving_unknown => {
                self.leaving = None;
                return Some(NotLeft::Unknown(failure.to_string()));
            }
            StateOutcome::Failed(failure) => Some(failure.to_string()),
            StateOutcome::NotHeld(_) => Some("the lease was not held any more".to_owned()),
            StateOutcome::Changed(StateItem::Unusable(unusable)) => Some(unusable.to_string()),
            StateOutcome::Changed(_) => Some("the state is not the one that was read".to_owned()),
        };
        self.leaving = None;
        reason.map(NotLeft::No)
    }
}
