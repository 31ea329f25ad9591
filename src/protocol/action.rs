//! What a machine wants done, and what it has to tell.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Epoch, Failure, FencingToken, HolderInfo, OwnerId, Request, Sample, Unusable, Version};
use crate::clock::{Now, Wall};

/// Names one request of one machine, to match its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(super) u32);

/// One thing to do or to tell, in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send this once. Exactly one answer must come back: the store's, or a `Timeout` failure after `timeout`, after
    /// which whatever arrives is dropped.
    Send {
        /// Names the request.
        id: RequestId,
        /// What to send.
        request: Request,
        /// How long an answer may take.
        timeout: Duration,
    },
    /// A contender took the row: a [`Holder`](super::Holder) goes on from here. With `unwanted`, nobody waits for it
    /// any more and it is only to be released.
    Acquired {
        /// What was written.
        acquired: Acquired,
        /// Whether it is to be released at once.
        unwanted: bool,
    },
    /// A contender's last word to who waits for it, or a holder's where no grant came of an acquisition. Cleanup may go on.
    Verdict(Verdict),
    /// The lease is granted: the handler may run.
    Granted {
        /// The version at acquisition, where the format makes a fencing token of it.
        token: Option<FencingToken>,
        /// How long it is valid, unrenewed, from now.
        valid_for: Duration,
    },
    /// A third of the validity is left and no renewal was answered.
    AtRisk,
    /// A renewal was answered after `AtRisk`.
    Secured,
    /// The lease is lost, for good.
    Lost(LossReason),
    /// The row is parked: nobody's, and held for all others until the minimum is over.
    Parked,
    /// The row is free of this owner; with a failure, it may not be and costs others one lease.
    Released(Result<(), Failure>),
}

/// A row taken, with what its validity rests on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquired {
    /// The attempt that took it.
    pub owner: OwnerId,
    /// The row's version after the write.
    pub version: Version,
    /// When the write was sent.
    pub sent: Now,
    /// The `expires_at` that was written.
    pub expires_at: Option<Wall>,
    /// The write's own answer about server time.
    pub sample: Option<Sample>,
    /// The session it belongs to.
    pub epoch: Epoch,
    /// How long the contender waited for it.
    pub waited: Duration,
    /// How many writes were sent for it.
    pub attempts: u32,
    /// Whether it was taken from a holder whose lease was over.
    pub took_over: bool,
    /// How long the work under a lease takes, as the row says.
    pub usual_hold: Option<Duration>,
}

/// Why no lease was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Somebody else holds it.
    Busy(Busy),
    /// The store could not be asked, or refuses.
    Failed(Failure),
    /// The row is not ours to touch.
    Unusable(Unusable),
    /// The answer was not there by the latest moment at which the work could still have begun.
    TooLate,
    /// Who asked for it no longer wants it.
    Cancelled,
}

/// Who holds the key, and when trying again makes sense.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Busy {
    /// What the row says about its holder.
    pub holder: Option<Box<HolderInfo>>,
    /// How long was waited.
    pub waited: Duration,
    /// How many writes were sent.
    pub attempts: u32,
    /// When the holder's lease can end, if it is not renewed.
    pub retry_after: Duration,
}

/// Why a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum LossReason {
    /// The row has another owner.
    Stolen {
        /// The new owner.
        by: OwnerId,
    },
    /// The row is gone.
    Deleted,
    /// The row is there, but nobody's: somebody freed it by hand.
    Freed,
    /// The row was overwritten by something that is not a lock of this format.
    Overwritten,
    /// No renewal was answered in time.
    Expired,
    /// It was held for as long as the settings allow at most.
    MaxHold,
    /// Its holder told of no progress for as long as the settings allow.
    MaxSilence,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen { by } => write!(f, "the row now belongs to owner {by}"),
            Self::Deleted => f.write_str("the row was deleted"),
            Self::Freed => f.write_str("the row was freed by somebody else"),
            Self::Overwritten => f.write_str("the row was overwritten by something else"),
            Self::Expired => f.write_str("no renewal was answered before the lease ended"),
            Self::MaxHold => f.write_str("the lease was held for as long as the settings allow (`max_hold`)"),
            Self::MaxSilence => f.write_str(
                "the handler told of no progress for as long as the settings allow (`max_silence`), so it was not renewed any more",
            ),
        }
    }
}
