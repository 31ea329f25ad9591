//! Giving the lease back behind a handler that has come to its end: the keeper's confirmation is waited for, but not long.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::lease::{Hold, note_release};
use crate::session::ReleaseReason;

/// How long an answer waits for the confirmation.
pub(super) const CONFIRM_WITHIN: Duration = Duration::from_secs(1);

/// A release under way. Dropped before its end, it has been sent all the same.
#[derive(Debug)]
pub(super) struct Ending(Hold);

impl Ending {
    /// Gives the lease back, if this was the last share of it and there is something to wait for.
    pub(super) fn begin(hold: Arc<Hold>, reason: ReleaseReason, wait: bool) -> Option<Self> {
        // Taken apart, not dropped: a drop would block. Exactly one of the last two shares gets here if two go at once.
        let hold = Arc::into_inner(hold)?;
        hold.session().owes()?;
        hold.release(reason, wait);
        Some(Self(hold))
    }

    /// Waits for the confirmation.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.session().poll_released(cx).map(|released| note_release(Some(released)))
    }

    /// The confirmation did not come in time; unless it has just come.
    pub(super) fn give_up(&self) {
        self.0.session().look();
        note_release(self.0.session().released());
    }
}
