//! The lines of a session from the keeper's side, one JSON object each. Durations are in milliseconds and relative to the line.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Error;

use super::fields::{Fields, unknown};
use super::kinds::{ErrorKind, FailKind};
use super::look::{Counted, Inspected};
use super::raw_state::RawState;
use crate::protocol::{FencingToken, HolderInfo, OwnerId};

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line from the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        /// How long it is valid, unrenewed, from when the line was sent.
        valid_for_ms: u64,
        /// How long was waited for it.
        waited_ms: u64,
        /// How many writes that took.
        attempts: u32,
        /// How much of the wait was spent in line, behind other acquisitions of the same keeper, before the first write.
        #[serde(skip_serializing_if = "is_zero")]
        queued_ms: u64,
    },
    /// Somebody else holds it.
    Busy {
        /// Which.
        id: u64,
        /// What the row says about its holder.
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
        #[serde(skip_serializing_if = "Option::is_none")]
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
        kind: ErrorKind,
        /// What is wrong with it.
        message: String,
    },
}

impl FromKeeper {
    const TYPES: &[&str] = &[
        "began",
        "granted",
        "busy",
        "failed",
        "released",
        "at_risk",
        "secured",
        "lost",
        "inspected",
        "counted",
        "state",
        "state_saved",
        "state_failed",
        "checked",
        "error",
    ];

    fn read(line: &mut Fields) -> Result<Self, Error> {
        Ok(match line.need::<String>("type")?.as_str() {
            "began" => Self::Began { version: line.need("version")? },
            "granted" => Self::Granted {
                id: line.need("id")?,
                owner: line.need("owner")?,
                token: line.or_default("token")?,
                valid_for_ms: line.need("valid_for_ms")?,
                waited_ms: line.need("waited_ms")?,
                attempts: line.need("attempts")?,
                queued_ms: line.or_default("queued_ms")?,
            },
            "busy" => Self::Busy {
                id: line.need("id")?,
                holder: line.holder()?,
                waited_ms: line.need("waited_ms")?,
                attempts: line.need("attempts")?,
                retry_after_ms: line.need("retry_after_ms")?,
            },
            "failed" => Self::Failed { id: line.need("id")?, kind: line.need("kind")?, message: line.need("message")? },
            "released" => Self::Released { id: line.need("id")? },
            "at_risk" => Self::AtRisk { id: line.need("id")? },
            "secured" => Self::Secured { id: line.need("id")? },
            "lost" => Self::Lost { id: line.need("id")?, reason: line.need("reason")? },
            "inspected" => Self::Inspected(Box::new(Inspected::read(line)?)),
            "counted" => Self::Counted(Box::new(Counted::read(line)?)),
            "state" => Self::State { id: line.need("id")?, call: line.need("call")?, value: line.state() },
            "state_saved" => Self::StateSaved { id: line.need("id")?, call: line.need("call")? },
            "state_failed" => Self::StateFailed {
                id: line.need("id")?,
                call: line.need("call")?,
                kind: line.need("kind")?,
                message: line.need("message")?,
            },
            "checked" => Self::Checked(CheckAnswer::read(line)?),
            "error" => Self::Error { kind: line.or_default("kind")?, message: line.need("message")? },
            other => return Err(unknown("type", other, Self::TYPES)),
        })
    }
}

impl<'de> Deserialize<'de> for FromKeeper {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        Self::read(&mut Fields::deserialize(line)?).map_err(D::Error::custom)
    }
}

/// The answer to `check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

impl CheckAnswer {
    fn read(line: &mut Fields) -> Result<Self, Error> {
        Ok(match line.need::<String>("state")?.as_str() {
            "held" => Self::Held { valid_for_ms: line.need("valid_for_ms")? },
            "lost" => Self::Lost { reason: line.need("reason")? },
            "unknown" => Self::Unknown,
            other => return Err(unknown("state", other, &["held", "lost", "unknown"])),
        })
    }
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
