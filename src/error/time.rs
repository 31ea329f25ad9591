//! What is refused for want of time.

use std::time::Duration;

use thiserror::Error;

use crate::key::LockKey;

/// The lease came after the latest moment at which the work could have begun; it was given back at once.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the lease on `{key}` came too late to begin the work before the deadline ({reason}), so it was given back: raise the \
     function's timeout, or lower `reserve` or `max_wait`"
)]
#[non_exhaustive]
pub struct GrantTooLate {
    /// What was to be locked.
    pub key: LockKey,
    /// What happened, for people.
    pub reason: String,
}

/// The handler was still at work a margin before the invocation's deadline, and was ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the handler was ended {margin:?} before the invocation's deadline: raise the function's timeout, make the work \
     shorter, or change `end_before_deadline`"
)]
#[non_exhaustive]
pub struct OutOfTime {
    /// How long before the deadline.
    pub margin: Duration,
}
