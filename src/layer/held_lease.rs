//! A lease that was taken by hand, and how it goes back.

use std::future::poll_fn;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::held_by_hand::Note;
use crate::error::{Error, ReleaseFailed};
use crate::keeper::client::Released;
use crate::lease::{Hold, Lease};
use crate::metrics::COUNTERS;
use crate::session::ReleaseReason;

/// A release that is to be waited for may take a request and its repetition.
const RELEASED_WITHIN: Duration = Duration::from_secs(15);

/// A lease that was taken by hand: it is kept until it is released or dropped.
///
/// # Cancellation
///
/// Dropping it gives the lease back and waits, by blocking, until the keeper has heard of it (some hundred microseconds)
/// or, outside of an invocation, until the row is free (a write to DynamoDB); 250 ms at most. A drop by a panic is a crash: `on_crash` decides.
#[derive(Debug)]
#[must_use = "the lease is kept for as long as this is"]
pub struct HeldLease {
    pub(super) lease: Lease,
    pub(super) hold: Option<Arc<Hold>>,
    pub(super) _note: Note,
}

impl HeldLease {
    /// Gives the lease back and waits until the row is free; with
    /// [`hold_at_least`](crate::LeaseLayerBuilder::hold_at_least), until it is written that the key stays held for so long. A
    /// drop without this frees the key at once, whatever `hold_at_least` says.
    ///
    /// # Errors
    ///
    /// [`ReleaseFailed`] when that is not known: others may have to wait until the lease ends. Also when a
    /// [`guard`](Lease::guard) still keeps the lease: it goes back with the last of them. A lease that was lost is no error
    /// here; ask [`ensure_held`](Lease::ensure_held) before.
    ///
    /// # Cancellation
    ///
    /// The release has been sent all the same.
    pub async fn release(mut self) -> Result<(), Error> {
        let Some(hold) = self.hold.take() else { return Ok(()) };
        let session = hold.session();
        if session.owes().is_none() {
            return Ok(());
        }
        hold.succeed();
        self.not_guarded(&hold)?;
        hold.release(ReleaseReason::Finished, true);
        self.freed(timeout(RELEASED_WITHIN, poll_fn(|cx| session.poll_released(cx))).await.ok())
    }

    /// The same, for code that has no executor to wait with.
    pub(super) fn release_blocking(mut self) -> Result<(), Error> {
        let Some(hold) = self.hold.take() else { return Ok(()) };
        let session = hold.session();
        if session.owes().is_none() {
            return Ok(());
        }
        hold.succeed();
        self.not_guarded(&hold)?;
        hold.release(ReleaseReason::Finished, true);
        self.freed(session.released_within(RELEASED_WITHIN))
    }

    /// What a guard keeps is not this one's to give back: the work under it would go on without the lock.
    fn not_guarded(&self, hold: &Arc<Hold>) -> Result<(), Error> {
        if Arc::strong_count(hold) == 1 {
            return Ok(());
        }
        let reason = "a guard still keeps it, and gives it back when it is dropped".to_owned();
        Err(ReleaseFailed { key: self.lease.key().clone(), reason }.into())
    }

    fn freed(&self, released: Option<Released>) -> Result<(), Error> {
        let reason = match released {
            Some(Released::Done) => return Ok(()),
            Some(Released::Failed(reason)) => reason,
            None => "the keeper did not confirm it in time".to_owned(),
        };
        COUNTERS.failed_releases.add_one();
        Err(ReleaseFailed { key: self.lease.key().clone(), reason }.into())
    }
}

impl Deref for HeldLease {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}
