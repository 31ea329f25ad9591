//! The lines of a session, one JSON object each.
//!
//! The first line of a connection is `hello`, `begin` or `check`. What carries an `id` belongs to one acquisition; several
//! may overlap. Durations are in milliseconds and relative to the line, never moments of somebody's clock, but for the
//! invocation's own deadline.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::acquire::Acquire;
use super::kinds::{ErrorKind, FailKind};
use super::look::{Counted, Inspect, Inspected};
use super::raw_state::{RawState, beside_state};
use super::version::VersionRange;
use crate::protocol::{FencingToken, HolderInfo, OwnerId};

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line from the layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type", remote = "Self")]
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
    /// The work under a lease that was asked for with `max_silence_ms` goes on. There is no answer.
    Progress {
        /// Which.
        id: u64,
    },
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
    /// Looks at a row without taking it.
    Inspect(Box<Inspect>),
    /// What has a lease taken up to now?
    Count {
        /// Which.
        id: u64,
    },
    /// Asks for the state that the key's last holder left, or this one saved.
    LoadState {
        /// Of which lease.
        id: u64,
        /// Names the question among the lease's, for its answer.
        call: u64,
    },
    /// Leaves a state for the key's next holder.
    SaveState {
        /// Under which lease.
        id: u64,
        /// Names the order among the lease's, for its answer.
        call: u64,
        /// The state; none takes away what is there.
        #[serde(default, skip_serializing_if = "Option::is_none", skip_deserializing)]
        value: Option<RawState>,
        /// Whether it is written only together with the release, and only if the handler finished.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        on_release: bool,
    },
    /// The session is over and nothing is held.
    End,
}

impl<'de> Deserialize<'de> for ToKeeper {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        let (mut message, state) = beside_state(line, Self::deserialize)?;
        if let Self::SaveState { value, .. } = &mut message {
            *value = state;
        }
        Ok(message)
    }
}

impl Serialize for ToKeeper {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Why a lease is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
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
#[serde(rename_all = "snake_case", tag = "type", remote = "Self")]
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
        /// How much of the wait was spent in line, behind other acquisitions of the same keeper, before the first write.
        #[serde(default, skip_serializing_if = "is_zero")]
        queued_ms: u64,
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
    /// Answers `inspect`.
    Inspected(Box<Inspected>),
    /// Answers `count`.
    Counted(Box<Counted>),
    /// Answers `load_state`.
    State {
        /// Of which lease.
        id: u64,
        /// Which question.
        call: u64,
        /// The state, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none", skip_deserializing)]
        value: Option<RawState>,
    },
    /// Answers `save_state`: it is written, or noted for the release.
    StateSaved {
        /// Under which lease.
        id: u64,
        /// Which order.
        call: u64,
    },
    /// Answers `load_state` and `save_state` that could not be served; the lease is as it was.
    StateFailed {
        /// Of which lease.
        id: u64,
        /// Which question or order.
        call: u64,
        /// What kind of failure.
        kind: FailKind,
        /// What happened and what to do about it.
        message: String,
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

impl<'de> Deserialize<'de> for FromKeeper {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        let (mut message, state) = beside_state(line, Self::deserialize)?;
        if let Self::State { value, .. } = &mut message {
            *value = state;
        }
        Ok(message)
    }
}

impl Serialize for FromKeeper {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
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
            | Self::State { id, .. }
            | Self::StateSaved { id, .. }
            | Self::StateFailed { id, .. }
            | Self::Lost { id, .. } => Some(*id),
            Self::Inspected(inspected) => Some(inspected.id),
            Self::Counted(counted) => Some(counted.id),
            Self::Began { .. } | Self::Checked(_) | Self::Error { .. } => None,
        }
    }
}
