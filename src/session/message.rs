//! The lines of a session, one JSON object each.
//!
//! The first line of a connection is `hello`, `begin` or `check`. What carries an `id` belongs to one acquisition; several
//! may overlap. Durations are in milliseconds and relative to the line, never moments of somebody's clock, but for the
//! invocation's own deadline.

use serde::{Deserialize, Serialize};

use super::acquire::Acquire;
use super::version::VersionRange;
use crate::protocol::{FencingToken, HolderInfo, OwnerId};

/// A line from the layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ToKeeper {
    /// A layer was built into this function's service. Sent once, alone on its connection.
    Hello {
        /// What the layer speaks.
        versions: VersionRange,
    },
    /// An invocation begins; first thing in every call, lock or not.
    Begin {
        /// What the layer speaks.
        versions: VersionRange,
        /// The invocation's request id; not a key, several sessions may name one.
        request_id: String,
        /// The invocation's deadline in milliseconds since the Unix epoch; `None` where it is unknown.
        #[serde(default)]
        deadline_ms: Option<u64>,
        /// Leases that this process lost with an earlier keeper and no longer believes in: their rows may be freed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<OwnerId>,
    },
    /// Is this owner's lease still held? May be asked again on the same connection.
    Check {
        /// The owner that was granted.
        owner: OwnerId,
    },
    /// Takes a lease.
    Acquire(Box<Acquire>),
    /// Frees a lease, or cancels an acquisition that was not answered yet.
    Release {
        /// Which.
        id: u64,
        /// Why.
        reason: ReleaseReason,
        /// Whether `released` is to wait for the write.
        #[serde(default)]
        wait: bool,
        /// The key is to stay held, for nobody, until so long after it was acquired; with the reason `finished` only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold_at_least_ms: Option<u64>,
    },
    /// The session is over and nothing is held.
    End,
}

/// Why a lease is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The handler's future is done, with a response or an error.
    Finished,
    /// The handler's future was dropped or panicked: `on_crash` decides.
    Dropped,
    /// The lease is no longer wanted, before it was granted or before the handler began.
    Cancelled,
}

/// A line from the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum FromKeeper {
    /// Answers `hello` and `begin`: the session speaks this version.
    Began {
        /// The version picked.
        version: u32,
    },
    /// The lease is granted.
    Granted {
        /// Which.
        id: u64,
        /// Whose it is: what `check` asks about, and a transaction's condition.
        owner: OwnerId,
        /// The version at acquisition; `None` where the table's row format has no fencing tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        /// How long it is valid, unrenewed, from when the line was sent.
        valid_for_ms: u64,
        /// How long was waited for it.
        waited_ms: u64,
        /// How many writes that took.
        attempts: u32,
    },
    /// Somebody else holds it.
    Busy {
        /// Which.
        id: u64,
        /// What the row says about its holder.
        #[serde(default)]
        holder: Option<HolderInfo>,
        /// How long was waited.
        waited_ms: u64,
        /// How many writes were sent.
        attempts: u32,
        /// When the holder's lease can end.
        retry_after_ms: u64,
    },
    /// No lease, for a reason that is not somebody else.
    Failed {
        /// Which.
        id: u64,
        /// What kind of failure.
        kind: FailKind,
        /// What happened and what to do about it.
        message: String,
    },
    /// The lease is back; with `wait`, the row is free.
    Released {
        /// Which.
        id: u64,
    },
    /// A third of the validity is left and no renewal was answered.
    AtRisk {
        /// Which.
        id: u64,
    },
    /// A renewal was answered after `at_risk`.
    Secured {
        /// Which.
        id: u64,
    },
    /// The lease is lost, for good.
    Lost {
        /// Which.
        id: u64,
        /// Why, for people.
        reason: String,
    },
    /// Answers `check`.
    Checked(CheckAnswer),
    /// The line could not be served; the keeper closes the connection after it.
    Error {
        /// In what way it could not be.
        #[serde(default)]
        kind: ErrorKind,
        /// What is wrong with it.
        message: String,
    },
}

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

/// The answer to `check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CheckAnswer {
    /// It is held.
    Held {
        /// For how long it is valid, unrenewed, counted from before the question was asked.
        valid_for_ms: u64,
    },
    /// It is lost.
    Lost {
        /// Why, for people.
        reason: String,
    },
    /// This keeper knows no such lease: it is not held.
    Unknown,
}

/// Which acquisition a line is about, if it is about one.
pub trait AnswerTo {
    /// The acquisition's id.
    fn id(&self) -> Option<u64>;
}

impl AnswerTo for FromKeeper {
    fn id(&self) -> Option<u64> {
        match self {
            Self::Granted { id, .. }
            | Self::Busy { id, .. }
            | Self::Failed { id, .. }
            | Self::Released { id }
            | Self::AtRisk { id }
            | Self::Secured { id }
            | Self::Lost { id, .. } => Some(*id),
            Self::Began { .. } | Self::Checked(_) | Self::Error { .. } => None,
        }
    }
}

/// The kinds of failure that a session can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
}
