//! The lines of a session from the handler's side, one JSON object each.
//!
//! The first line of a connection is `hello`, `begin` or `check`. What carries an `id` belongs to one acquisition; several
//! may overlap. Durations are in milliseconds and relative to the line, never moments of somebody's clock, but for the
//! invocation's own deadline.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Error;

use super::acquire::Acquire;
use super::fields::{Fields, unknown};
use super::look::Inspect;
use super::raw_state::RawState;
use super::version::VersionRange;
use crate::protocol::OwnerId;

/// A line from the layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
        deadline_ms: Option<u64>,
        /// Leases that this process lost with an earlier keeper and no longer believes in: their rows may be freed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
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
        wait: bool,
        /// The key is to stay held, for nobody, until so long after it was acquired; with the reason `finished` only.
        #[serde(skip_serializing_if = "Option::is_none")]
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
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<RawState>,
        /// Whether it is written only together with the release, and only if the handler finished.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        on_release: bool,
    },
    /// The session is over and nothing is held.
    End,
}

impl ToKeeper {
    const TYPES: &[&str] = &[
        "hello",
        "begin",
        "check",
        "acquire",
        "progress",
        "release",
        "inspect",
        "count",
        "load_state",
        "save_state",
        "end",
    ];

    fn read(line: &mut Fields) -> Result<Self, Error> {
        Ok(match line.need::<String>("type")?.as_str() {
            "hello" => Self::Hello { versions: line.need_object("versions")? },
            "begin" => Self::Begin {
                versions: line.need_object("versions")?,
                request_id: line.need("request_id")?,
                deadline_ms: line.or_default("deadline_ms")?,
                lost: line.or_default("lost")?,
            },
            "check" => Self::Check { owner: line.need("owner")? },
            "acquire" => Self::Acquire(Box::new(line.all(&["table", "polling", "holder"])?)),
            "progress" => Self::Progress { id: line.need("id")? },
            "release" => Self::Release {
                id: line.need("id")?,
                reason: line.need("reason")?,
                wait: line.or_default("wait")?,
                hold_at_least_ms: line.or_default("hold_at_least_ms")?,
            },
            "inspect" => Self::Inspect(Box::new(line.all(&["table"])?)),
            "count" => Self::Count { id: line.need("id")? },
            "load_state" => Self::LoadState { id: line.need("id")?, call: line.need("call")? },
            "save_state" => Self::SaveState {
                id: line.need("id")?,
                call: line.need("call")?,
                value: line.state(),
                on_release: line.or_default("on_release")?,
            },
            "end" => Self::End,
            other => return Err(unknown("type", other, Self::TYPES)),
        })
    }
}

impl<'de> Deserialize<'de> for ToKeeper {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        Self::read(&mut Fields::deserialize(line)?).map_err(D::Error::custom)
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
