//! What is said about a lease: somebody else's, lost, not known, or none.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::key::LockKey;
use crate::protocol::HolderInfo;

/// Somebody else holds the key, and went on holding it for as long as could be waited.
///
/// The lock works as it should: this is never a throttle, an outage or a refusal of permission.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{key}` is {}; waited {waited:?}, its lease can end in {retry_after:?}: try again then, or raise `max_wait`",
    stands(*.attempts, .holder)
)]
#[non_exhaustive]
pub struct LeaseBusy {
    /// What is locked.
    pub key: LockKey,
    /// What the row says about its holder, or the keeper knows of one of its own. Without `acquired_at`, after no attempts, it
    /// is who was ahead in the environment's line, whom DynamoDB has not answered yet.
    pub holder: Option<Box<HolderInfo>>,
    /// How long was waited.
    pub waited: Duration,
    /// How many writes were sent; none by one that waited in line behind others of its environment all the time.
    pub attempts: u32,
    /// When the holder's lease can end, if it is not renewed.
    pub retry_after: Duration,
}

/// Who holds the key; of one that sent nothing, that it waited in line behind somebody who may not hold it yet.
fn stands(attempts: u32, holder: &Option<Box<HolderInfo>>) -> String {
    match holder.as_deref() {
        Some(first) if attempts == 0 && first.acquired_at.is_none() => format!(
            "wanted by {first} as well, which is ahead in this environment's line and has no answer from DynamoDB yet"
        ),
        Some(holder) => format!("held by {holder}"),
        None => format!("held by {}", HolderInfo::default()),
    }
}

/// The lease was lost while the handler ran: somebody else may work on the key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the lease on `{key}` was lost: {reason}; somebody else may hold it by now, so check what this invocation wrote last, \
     and raise `lease_duration` if renewals come too late"
)]
#[non_exhaustive]
pub struct LeaseLost {
    /// What was locked.
    pub key: LockKey,
    /// Why, for people.
    pub reason: String,
}

/// This invocation holds this very key already, by a layer or by hand: waiting for it would never end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "this invocation holds `{key}` already, and waiting for itself would never end: work under the lease that it has \
     (`Lease::current`, `Lease::named`, or the one that was taken by hand), or give the two layers, or the layer and what is \
     taken by hand, keys, namespaces or tables of their own"
)]
#[non_exhaustive]
pub struct AlreadyHeld {
    /// What is locked.
    pub key: LockKey,
}

/// A lease was given back, and whether its row is free is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the lease on `{key}` may not be free yet: {reason}; others get it when it ends at the latest")]
#[non_exhaustive]
pub struct ReleaseFailed {
    /// What was locked.
    pub key: LockKey,
    /// Why, for people.
    pub reason: String,
}

/// Whether the lease is held could not be found out in time. It may be, or not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "whether the lease on `{key}` is still held could not be confirmed: {reason}; don't take the step now: ask again, or \
     fail and let the event be retried"
)]
#[non_exhaustive]
pub struct Unconfirmed {
    /// What is locked.
    pub key: LockKey,
    /// Why there is no answer, for people.
    pub reason: String,
}

/// There is no lease here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{unlocked}")]
#[non_exhaustive]
pub struct NoLease {
    /// Why there is none.
    pub unlocked: Unlocked,
}

/// The lease has no fencing token, and one was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the lease on `{key}` has no fencing token: {tokenless}")]
#[non_exhaustive]
pub struct NoFencingToken {
    /// What is locked.
    pub key: LockKey,
    /// Why there is none.
    pub tokenless: Tokenless,
}

/// Why a lease has no fencing token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tokenless {
    /// The table speaks a row format of this name, which has none.
    Format(String),
    /// The mode is not `enforce`, and no lease was granted.
    NotGranted,
}

impl fmt::Display for Tokenless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(
                f,
                "the row format `{format}` has none; make the work's writes conditional on the lease \
                 (`Lease::condition_check`), or take a table of the format `leasehold/1`"
            ),
            Self::NotGranted => f.write_str(
                "no lease was granted, as the mode is not `enforce`; use `Lease::token` where the work can do without",
            ),
        }
    }
}

/// Why there is no lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unlocked {
    /// Outside of a layer's handler, or in a task that the handler spawned.
    Outside,
    /// No layer around this handler has this name.
    NoLayerNamed(String),
    /// The event has no key, and the layer was told to run unlocked then.
    MissingPath,
    /// The event gave no key, and the mode is not `enforce`.
    NoKey,
    /// DynamoDB could not be reached, and the layer was told to run unlocked then.
    Unavailable,
    /// The handler's future and every guard are gone, so the lease was given back.
    GivenBack,
}

impl fmt::Display for Unlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => f.write_str(
                "there is no lease here: ask within a handler under a `LeaseLayer`, and hand a `lease.guard()` to tasks \
                 that the handler spawns",
            ),
            Self::NoLayerNamed(name) => {
                write!(f, "no layer around this handler is named `{name}`: a layer's name is its template unless set")
            }
            Self::MissingPath => f.write_str(
                "this invocation runs unlocked, as the event has no key: `missing_path` says so; don't ask for a lease \
                 then, or let it be an error",
            ),
            Self::NoKey => {
                f.write_str("the event gave no key, so there is no lease to ask; with `LEASEHOLD_MODE=enforce` it is refused")
            }
            Self::Unavailable => f.write_str(
                "this invocation runs unlocked, as DynamoDB could not be reached: `on_unavailable` says so; don't ask for \
                 a lease then, or let it fail",
            ),
            Self::GivenBack => {
                f.write_str("the lease was given back: take a `lease.guard()` along where work outlives the handler")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_in_line_in_vain_is_told_behind_whom_and_whether_that_one_holds_the_key() {
        let said = |attempts, acquired_at| {
            let (function, request_id) = ("billing".to_owned(), "r-1".to_owned());
            let holder = HolderInfo { function, request_id, acquired_at, ..HolderInfo::default() };
            let (waited, retry_after) = (Duration::from_secs(2), Duration::from_secs(30));
            let key = LockKey::new("orders:17").unwrap();
            LeaseBusy { key, holder: Some(Box::new(holder)), waited, attempts, retry_after }.to_string()
        };
        let advice = "waited 2s, its lease can end in 30s: try again then, or raise `max_wait`";
        assert_eq!(said(0, Some(1)), format!("`orders:17` is held by billing (request r-1); {advice}"));
        assert_eq!(
            said(1, None),
            format!("`orders:17` is held by billing (request r-1); {advice}"),
            "its row says no more"
        );
        let ahead = "wanted by billing (request r-1) as well, which is ahead in this environment's line and has no answer \
                     from DynamoDB yet";
        assert_eq!(said(0, None), format!("`orders:17` is {ahead}; {advice}"));
    }
}
