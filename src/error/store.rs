//! What DynamoDB, or the row, had against a lease.

use thiserror::Error;

use crate::key::LockKey;
use crate::session::FailKind;

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident, $advice:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Error)]
        #[error("no lease on `{key}`: {message}; {}", $advice)]
        #[non_exhaustive]
        pub struct $name {
            /// What was to be locked.
            pub key: LockKey,
            /// What the keeper says about it.
            pub message: String,
        }
    )+};
}

failures! {
    /// DynamoDB throttled every attempt within the budget.
    StoreThrottled,
    "raise the table's throughput or make it on-demand; or choose keys that spread over more partitions";
    /// DynamoDB could not be reached, did not answer, or answered with server errors throughout the budget.
    StoreUnavailable,
    "check the function's network (a VPC needs a DynamoDB endpoint) and AWS's status; `on_unavailable` can let the handler run unlocked";
    /// Transactions held the lock's row throughout the budget.
    TransactionConflict,
    "raise `max_wait`, or keep the lock's row out of transactions but for the lease's own condition";
    /// There is no such table.
    TableNotFound,
    "create the table, or correct `table` (LEASEHOLD_TABLE) and the Region";
    /// The table's key is not the one in the settings.
    WrongKeySchema,
    "set `key_attribute` (and `sort_key`) to the names in the table, or take a table of its own whose partition key is the string `key`";
    /// IAM says no.
    AccessDenied,
    "allow the function's role what the table's row format needs";
    /// There are no credentials, or they do not serve.
    MissingCredentials,
    "give the function a role, or this machine credentials";
    /// DynamoDB refused the request for another reason.
    StoreRejected,
    "the message is DynamoDB's own";
    /// The row belongs to another program or another row format, and is left alone.
    ForeignRow,
    "take a table or a `namespace` of its own for these locks";
    /// The row is of this format but does not hold what it asks for, and is left alone.
    MalformedRow,
    "look at the row and delete it once nobody works on its key";
    /// The keeper can't serve what the layer asks for.
    AcquireRefused,
    "correct the layer's settings, or deploy function and extension of one release";
}

/// The error for a failure that the keeper told of.
pub(crate) fn refused(key: LockKey, kind: FailKind, message: String) -> super::Error {
    match kind {
        FailKind::Throttled => StoreThrottled { key, message }.into(),
        FailKind::Server | FailKind::Timeout | FailKind::Connection => StoreUnavailable { key, message }.into(),
        FailKind::TransactionConflict => TransactionConflict { key, message }.into(),
        FailKind::MissingTable => TableNotFound { key, message }.into(),
        FailKind::WrongKeySchema => WrongKeySchema { key, message }.into(),
        FailKind::AccessDenied => AccessDenied { key, message }.into(),
        FailKind::Credentials => MissingCredentials { key, message }.into(),
        FailKind::Rejected => StoreRejected { key, message }.into(),
        FailKind::ForeignRow => ForeignRow { key, message }.into(),
        FailKind::MalformedRow => MalformedRow { key, message }.into(),
        FailKind::BadRequest | FailKind::Cancelled => AcquireRefused { key, message }.into(),
        FailKind::AlreadyHeld => super::AlreadyHeld { key }.into(),
        FailKind::TooLate => super::GrantTooLate { key, reason: message }.into(),
        FailKind::ShuttingDown => super::KeeperGone { reason: message }.into(),
    }
}
