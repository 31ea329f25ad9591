//! What a double saw, for tests to look back on.

use crate::protocol::FencingToken;
use crate::session::{FailKind, ReleaseReason};

/// One thing that happened at a [`TestKeeper`](super::TestKeeper).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened {
    /// An invocation began, lock or not.
    Began {
        /// Its request id.
        request_id: String,
    },
    /// It asked for a lease. A test that expects none to be asked for looks for this.
    Asked {
        /// On this key.
        key: String,
    },
    /// A key was looked at.
    Inspected {
        /// This one.
        key: String,
    },
    /// It was answered.
    Answered {
        /// About this key.
        key: String,
        /// With this.
        with: Answer,
    },
    /// The handler told of its progress.
    Progress {
        /// Of the lease on this key.
        key: String,
    },
    /// A lease was given back.
    Released {
        /// On this key.
        key: String,
        /// Why: the handler finished, was dropped, or never began.
        reason: ReleaseReason,
    },
    /// A lease was lost.
    Lost {
        /// On this key.
        key: String,
        /// What the handler was told.
        reason: String,
    },
}

/// The answer to a request for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The lease, with this token; `None` where the table's row format has none.
    Granted(Option<FencingToken>),
    /// Somebody else has it.
    Busy,
    /// No lease, for another reason.
    Failed(FailKind),
}
