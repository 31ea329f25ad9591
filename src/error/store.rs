//! What DynamoDB, or the row, had against a lease.

use thiserror::Error;

use crate::key::LockKey;
use crate::session::FailKind;

// The keeper knows what was found and says what to do about it; the advice here is what only the layer can offer.
macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident $(, $advice:literal)?;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Error)]
        #[error("no lease or state on `{key}`: {message}{}", concat!($($advice)?))]
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
    "; raise the table's throughput or make it on-demand; or choose keys that spread over more partitions";
    /// DynamoDB could not be reached, did not answer, or answered with server errors throughout the budget.
    StoreUnavailable,
    "; `on_unavailable` can let the handler run unlocked meanwhile";
    /// Transactions held the lock's row throughout the budget.
    TransactionConflict,
    "; raise `max_wait`, or keep the lock's row out of transactions but for the lease's own condition";
    /// There is no such table.
    TableNotFound;
    /// The table's key is not the one in the settings.
    WrongKeySchema;
    /// IAM says no.
    AccessDenied;
    /// There are no credentials, or they do not serve; or this host's clock is off, so that nothing it signs does.
    MissingCredentials;
    /// DynamoDB refused the request for another reason.
    StoreRejected;
    /// The row belongs to another program or another row format, and is left alone.
    ForeignRow;
    /// The row is of this format but does not hold what it asks for, and is left alone.
    MalformedRow;
    /// The keeper can't serve what the layer asks for.
    AcquireRefused,
    "; correct the layer's settings, or deploy function and extension of one release";
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
        FailKind::BadRequest | FailKind::Cancelled | FailKind::Other => AcquireRefused { key, message }.into(),
        FailKind::AlreadyHeld => super::AlreadyHeld { key }.into(),
        FailKind::TooLate => super::GrantTooLate { key, reason: message }.into(),
        FailKind::NotHeld => super::LeaseLost { key, reason: message }.into(),
        FailKind::Unconfirmed => super::StateUnconfirmed { key, reason: message }.into(),
        FailKind::ShuttingDown => super::KeeperGone { reason: message }.into(),
    }
}
