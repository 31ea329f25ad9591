//! What can go wrong, one type a failure, summed in [`Error`]; and how each looks to Lambda.
//!
//! Every failure has an `errorType` that stays the same from release to release, for alarms, retry policies and Step
//! Functions to match on, and a message that says what to change. The handler's own errors are passed on as they are:
//! [`InvocationError`] keeps the two apart.

mod batch;
mod blocking;
mod deployment;
mod event;
mod invocation;
mod settings;
mod standing;
mod state;
mod store;
mod time;
mod transaction;

use std::fmt;

use lambda_runtime::Diagnostic;
use thiserror::Error as ThisError;

pub use crate::budget::DeadlineTooClose;
#[cfg(feature = "dynamodb")]
pub use crate::lease::TransactionError;
pub use batch::{NoUsableRecord, NotABatch, RecordOutOfTime};
pub use blocking::BlockingInAsync;
pub use deployment::{KeeperGone, KeeperMissing, VersionMismatch};
pub use event::{EventNotDeserialized, KeyInvalid, KeyNotFound, RouteNotMatched};
pub use invocation::InvocationError;
pub use settings::SettingsError;
pub use standing::{
    AlreadyHeld, LeaseBusy, LeaseLost, NoFencingToken, NoLease, ReleaseFailed, Tokenless, Unconfirmed, Unlocked,
};
pub use state::{StateNotSerialized, StateTooDeep, StateTooLarge, StateUnconfirmed, StateUnsupported};
pub(crate) use store::refused;
pub use store::{
    AccessDenied, AcquireRefused, ForeignRow, MalformedRow, MissingCredentials, StoreRejected, StoreThrottled,
    StoreUnavailable, TableNotFound, TransactionConflict, WrongKeySchema,
};
pub use time::{GrantTooLate, OutOfTime};
pub use transaction::{LockRowInTransaction, TransactionFull};

macro_rules! sum {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Whatever a layer or a lease refuses with.
        ///
        /// Match on it in an `on_busy` path or in a test; in a handler convert it into the handler's own error with
        /// `From<leasehold::Error>`, or let `?` box it.
        ///
        /// ```
        /// use leasehold::{Error, Lease};
        ///
        /// enum OrderError {
        ///     NotMineAnyMore(Error),
        /// }
        ///
        /// impl From<Error> for OrderError {
        ///     fn from(error: Error) -> Self {
        ///         Self::NotMineAnyMore(error)
        ///     }
        /// }
        ///
        /// fn before_the_charge() -> Result<(), OrderError> {
        ///     Lease::current()?.ensure_held()?;
        ///     Ok(())
        /// }
        /// # let _ = before_the_charge;
        /// ```
        #[derive(ThisError)]
        #[non_exhaustive]
        pub enum Error {
            $($(#[$doc])* #[error(transparent)] $name(#[from] $name),)+
        }

        impl Error {
            /// The `errorType` that Lambda is told; it does not change from release to release.
            #[must_use]
            pub const fn error_type(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)+
                }
            }
        }

        $(impl From<$name> for Diagnostic {
            fn from(error: $name) -> Self {
                Error::from(error).into()
            }
        })+
    };
}

sum! {
    /// Somebody else holds the key.
    LeaseBusy,
    /// The lease was lost while the handler ran.
    LeaseLost,
    /// An outer layer of this invocation holds the key already.
    AlreadyHeld,
    /// Whether the lease is held could not be found out.
    Unconfirmed,
    /// There is no lease to ask.
    NoLease,
    /// The lease has no fencing token.
    NoFencingToken,
    /// Too little time is left to take the lock and do the work.
    DeadlineTooClose,
    /// The lease came too late for the work to begin.
    GrantTooLate,
    /// The handler was ended shortly before the deadline.
    OutOfTime,
    /// The handler of one record was ended, as its share of the invocation's time was over.
    RecordOutOfTime,
    /// The event is no batch of a source that can be told which records failed.
    NotABatch,
    /// None of a batch's records can be worked on.
    NoUsableRecord,
    /// The event is not what the handler takes.
    EventNotDeserialized,
    /// The event has no value at a path of the key template.
    KeyNotFound,
    /// The event's values make no key.
    KeyInvalid,
    /// A request's path is none of the routes of the layer around its handler.
    RouteNotMatched,
    /// There is no keeper.
    KeeperMissing,
    /// The keeper vanished.
    KeeperGone,
    /// Layer and keeper are too many releases apart.
    VersionMismatch,
    /// DynamoDB throttled every attempt.
    StoreThrottled,
    /// DynamoDB could not be reached, or did not serve.
    StoreUnavailable,
    /// Transactions held the lock's row throughout.
    TransactionConflict,
    /// There is no such table.
    TableNotFound,
    /// The table's key is not the one in the settings.
    WrongKeySchema,
    /// IAM says no.
    AccessDenied,
    /// There are no credentials that serve.
    MissingCredentials,
    /// DynamoDB refused the request for another reason.
    StoreRejected,
    /// The row belongs to another program or another row format.
    ForeignRow,
    /// The row is of this format but broken.
    MalformedRow,
    /// The keeper can't serve what the layer asks for.
    AcquireRefused,
    /// A transaction has no room for the lease's condition.
    TransactionFull,
    /// A transaction works on the lock's own row.
    LockRowInTransaction,
    /// It is not known whether a lease that was given back is free.
    ReleaseFailed,
    /// A blocking call was made within an async runtime.
    BlockingInAsync,
    /// A state is longer than what is kept.
    StateTooLarge,
    /// A state goes deeper than can be read.
    StateTooDeep,
    /// The lock can have no state.
    StateUnsupported,
    /// A state is no JSON, or not of the type that was asked for.
    StateNotSerialized,
    /// It is not known whether a state was saved.
    StateUnconfirmed,
}

impl Error {
    /// Whether DynamoDB could not be reached or did not serve: the one case in which a layer may be told to run unlocked
    /// instead. A missing table or permission does not get better by running without a lock.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::StoreThrottled(_) | Self::StoreUnavailable(_))
    }
}

impl Error {
    /// Whether somebody has to set something up: every other record and invocation fares no better.
    pub(crate) const fn is_of_the_setup(&self) -> bool {
        matches!(
            self,
            Self::KeeperMissing(_)
                | Self::VersionMismatch(_)
                | Self::TableNotFound(_)
                | Self::WrongKeySchema(_)
                | Self::AccessDenied(_)
                | Self::MissingCredentials(_)
                | Self::StoreRejected(_)
                | Self::AcquireRefused(_)
        )
    }
}

/// Its name and its message: `lambda_runtime` logs what an invocation fails with by its `Debug`, and that line may be all
/// that a log shows.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.error_type())
    }
}

impl From<Error> for Diagnostic {
    fn from(error: Error) -> Self {
        Self { error_type: error.error_type().to_owned(), error_message: error.to_string() }
    }
}
