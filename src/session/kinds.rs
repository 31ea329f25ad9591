//! The kinds of what can go wrong, as a session's lines name them.

use serde::{Deserialize, Serialize};

/// In what way a line could not be served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The two sides have no session version in common.
    Versions,
    /// It is no line: not JSON, not UTF-8, or too long.
    Line,
    /// It is no message that this keeper knows: an unknown type, or a field that is missing or of another kind.
    Message,
    /// It is a message that has no place here.
    Order,
    /// The connection's first line did not come in time.
    Silence,
    /// A kind that this release does not know, or none.
    #[default]
    #[serde(other)]
    Other,
}

/// The kinds of failure that a session can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailKind {
    /// DynamoDB throttled every attempt within the budget.
    Throttled,
    /// Transactions held the row throughout the budget.
    TransactionConflict,
    /// DynamoDB answered with server errors throughout the budget.
    Server,
    /// DynamoDB did not answer within the budget.
    Timeout,
    /// DynamoDB could not be reached within the budget.
    Connection,
    /// There is no such table.
    MissingTable,
    /// The table's key is not the one in the settings.
    WrongKeySchema,
    /// IAM says no.
    AccessDenied,
    /// There are no credentials, or they do not serve.
    Credentials,
    /// Any other refusal of DynamoDB's.
    Rejected,
    /// The row belongs to another program or another row format.
    ForeignRow,
    /// The row is of our format but does not hold what it asks for.
    MalformedRow,
    /// The answer would have come after the latest moment at which the work could begin.
    TooLate,
    /// This session holds, or asks for, this key already.
    AlreadyHeld,
    /// The acquisition was cancelled.
    Cancelled,
    /// The acquisition's own settings can't be served.
    BadRequest,
    /// The keeper is shutting down.
    ShuttingDown,
    /// The lease is not held any more.
    NotHeld,
    /// Whether a state was written is not known.
    Unconfirmed,
    /// A kind that this release does not know: a failure like any other.
    #[serde(other)]
    Other,
}
