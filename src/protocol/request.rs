//! What the machines ask of a store, and what it may answer.

use std::time::Duration;

use super::{Hints, OwnerId, Row, Version};
use crate::clock::Wall;

/// One request: each is a single conditional write or a consistent read. What is told of the attributes is for the format
/// `leasehold/1`; another format writes what it has of them, on the same condition.
///
/// A store sends it once, never retries it by itself, and carries out exactly the condition that is described here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Take the row if it is absent, free, or held by one of `unknown`. SETs `format`, `owner`, `lease_ms`, `holder` and
    /// `version = if_not_exists(version, at in ms) + 1`, SETs or REMOVEs `expires_at`, REMOVEs `ttl`.
    Acquire {
        /// The attempt's fresh identity.
        owner: OwnerId,
        /// The version that the row gets, where the store does not count it on.
        version: Option<Version>,
        /// Wall time of the attempt: the seed of a new row's version, and `acquired_at`.
        at: Wall,
        /// The lease's length.
        lease: Duration,
        /// What to write to `expires_at`; `None` REMOVEs it.
        expires_at: Option<Wall>,
        /// This acquisition's attempts whose outcome is not known.
        unknown: Vec<OwnerId>,
        /// What to write to the hint `served`; `None` leaves it.
        served: Option<u64>,
    },
    /// Take the row from the owner seen on it: like `Acquire`, on the condition `owner = seen AND version = seen`.
    TakeOver {
        /// The attempt's fresh identity.
        owner: OwnerId,
        /// The version that the row gets, where the store does not count it on.
        version: Option<Version>,
        /// Wall time of the attempt.
        at: Wall,
        /// The lease's length.
        lease: Duration,
        /// What to write to `expires_at`; `None` REMOVEs it.
        expires_at: Option<Wall>,
        /// Whose the row must still be.
        seen_owner: OwnerId,
        /// The version it must still have.
        seen_version: Version,
        /// What to write to the hint `served`; `None` leaves it.
        served: Option<u64>,
    },
    /// Extend the lease, on the condition `owner = :me AND version = :v`. SETs `version`, SETs or REMOVEs `expires_at`,
    /// REMOVEs `ttl`; `lease_ms` and `holder` stay.
    Renew {
        /// The holder's identity.
        owner: OwnerId,
        /// The version that the row must have.
        version: Version,
        /// The version that it gets: one higher, or more where a seed from a wrong clock is raised; a fresh one where versions
        /// are no counters.
        new_version: Version,
        /// What to write to `expires_at`; `None` REMOVEs it.
        expires_at: Option<Wall>,
    },
    /// Keep the row held for nobody, on the condition `owner = :me AND version = :v`. SETs `owner`, `version`, `lease_ms`
    /// and `holder`, SETs or REMOVEs `expires_at`, REMOVEs `ttl`.
    Park {
        /// The holder's identity.
        owner: OwnerId,
        /// The version that the row must have.
        version: Version,
        /// Whose the row is from then on: an identity that is nobody's, and never used again.
        parked: OwnerId,
        /// The version that it gets, as with a renewal.
        new_version: Version,
        /// Wall time of the acquisition: `acquired_at` stays as it was.
        at: Wall,
        /// For how long the row is to stay held.
        lease: Duration,
        /// What to write to `expires_at`; `None` REMOVEs it.
        expires_at: Option<Wall>,
    },
    /// Free the row, on the condition `owner IN owners`: REMOVEs `owner`, `holder`, `expires_at`, SETs or leaves `ttl`; or
    /// deletes it, where the format keeps no free rows.
    Release {
        /// Whose row it may be.
        owners: Vec<OwnerId>,
        /// Epoch seconds after which DynamoDB may sweep the row; `None` where no safe moment is known.
        ttl: Option<u64>,
        /// What to write to the hint `hold_ms`; `None` leaves it.
        hold: Option<Duration>,
    },
    /// Take the next number of those who wait, on the condition that the row is held: ADDs 1 to the hint `tickets`, and
    /// changes nothing else.
    Ticket,
    /// A consistent read.
    Read,
}

/// A store's answer to one request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// What came of it.
    pub outcome: Outcome,
    /// The answer's `Date` header in seconds since the Unix epoch; `None` where there was none that serves.
    pub date: Option<u64>,
    /// What the request consumed, in millionths of a capacity unit; `None` where the store does not tell. Nothing is
    /// decided by it.
    pub consumed: Option<u64>,
}

impl Answer {
    /// An answer that tells nothing of what it consumed.
    #[must_use]
    pub const fn new(outcome: Outcome, date: Option<u64>) -> Self {
        Self { outcome, date, consumed: None }
    }
}

impl Outcome {
    /// A write was applied, and its answer says no more than the row's version.
    #[must_use]
    pub fn written(version: Version) -> Self {
        Self::Written { version, hints: Hints::default() }
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A write was applied; the row now has this version (`Counter(0)` after a release, which does not look at it).
    Written {
        /// The row's new version.
        version: Version,
        /// What a row that was taken says of those who wait, as far as the answer tells.
        hints: Hints,
    },
    /// A ticket was taken; the row as it is since then (`ALL_NEW`).
    Numbered {
        /// The row, whose `tickets` is the number that was taken.
        row: Row,
    },
    /// A write's condition did not hold; the row as it was found (`ALL_OLD`).
    Refused {
        /// The row that refused it.
        row: Row,
    },
    /// What a read found.
    Read {
        /// The row.
        row: Row,
    },
    /// No usable answer.
    Failed(Failure),
}

/// Why there was no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What the service or the client said, and what to do about it.
    pub message: String,
}

/// The kinds of failure, by what follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The table or the account's rate is used up. Not written; tried again.
    #[error("DynamoDB throttled the request")]
    Throttled,
    /// A transaction held the row. Not written; tried again.
    #[error("a transaction held the row")]
    TransactionConflict,
    /// A 5xx answer: it may have been written. Tried again.
    #[error("DynamoDB answered with a server error")]
    Server,
    /// No answer in time: it may have been written. Tried again.
    #[error("DynamoDB did not answer in time")]
    Timeout,
    /// The connection could not be made or broke: it may have been written. Tried again.
    #[error("the connection to DynamoDB failed")]
    Connection,
    /// The request's signature was out of date: this host's clock is off, or the request was held up after it was signed,
    /// as a freeze does. Not written; tried again, with a new signature.
    #[error("the request's time was refused")]
    Clock,
    /// There is no such table, or it is not ready yet.
    #[error("the lock table does not exist or is not ready")]
    MissingTable,
    /// The table's key is not the one in the settings.
    #[error("the lock table's key is not as configured")]
    WrongKeySchema,
    /// IAM says no.
    #[error("permission denied")]
    AccessDenied,
    /// There are no credentials, or they do not serve.
    #[error("no usable AWS credentials")]
    Credentials,
    /// The row has no room for the write, or a number that can't be counted on. Not written.
    #[error("the row can't be written")]
    MalformedRow,
    /// An attempt was applied to a row with a version that no condition can tell from a good one. It is to be freed, not
    /// tried again.
    #[error("the row is broken")]
    BrokenVersion,
    /// Any other refusal that trying again won't change.
    #[error("DynamoDB refused the request")]
    Rejected,
}

impl Failure {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl FailureKind {
    /// Whether the same request may succeed a moment later.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Throttled | Self::TransactionConflict | Self::Server | Self::Timeout | Self::Connection | Self::Clock
        )
    }

    /// Whether a write that failed so may have been applied all the same, now or later.
    #[must_use]
    pub const fn may_have_landed(self) -> bool {
        matches!(self, Self::Server | Self::Timeout | Self::Connection | Self::BrokenVersion)
    }
}
