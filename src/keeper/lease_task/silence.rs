//! A handler that has to tell of its progress: its lease is renewed while it does, and runs out when it does not.
//!
//! The row is not freed for a silence. Whoever is silent may be at work all the same, so the key is left to be free when
//! the lease is over, as with a holder that can't be reached.

use super::LeaseTask;
use crate::keeper::event_log;
use crate::keeper::machine::Machine;
use crate::protocol::{LossReason, Renewals};

/// Until when a handler's last word counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    renewals: Renewals,
    /// Whether it was noted that the silence has lasted too long.
    too_long: bool,
}

impl LeaseTask {
    /// The lease was granted, or the handler told of its progress.
    pub(super) fn hear_progress(&mut self) {
        if self.to.terms.max_silence.is_none() {
            return;
        }
        // A word that comes after the lease is over does not bring it back; and what it was lost by is told as it was.
        self.to.shared.with_context(|cx| self.machine.handle_wakeup(cx));
        self.pump();
        let Machine::Holding(holder) = &mut self.machine else { return };
        let Some(row) = self.row.as_mut().filter(|_| holder.validity().is_some()) else { return };
        let renewals = self.to.terms.renewals_after(self.to.shared.now().mono);
        holder.limit_renewals(renewals);
        if row.heard.is_some_and(|heard| heard.too_long) {
            event_log::progress_again(&self.to.terms.lock, row.owner);
        }
        row.heard = Some(Heard { renewals, too_long: false });
    }

    /// Notes once that a silence has lasted too long, so that renewals have ended.
    pub(super) fn note_silence(&mut self) {
        let now = self.to.shared.now().mono;
        let Some(row) = self.row.as_mut().filter(|row| !row.lost) else { return };
        let (owner, heard) = (row.owner, &mut row.heard);
        if let Some(heard) = heard.as_mut().filter(|heard| !heard.too_long)
            && heard.renewals.then == LossReason::MaxSilence
            && now >= heard.renewals.until
        {
            heard.too_long = true;
            event_log::silent(&self.to.terms.lock, owner, self.to.terms.max_silence);
        }
    }
}
