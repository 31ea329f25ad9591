//! The session between layer and keeper: JSON lines on a Unix socket.
//!
//! Handler and extension are deployed apart and meet in mixed versions: `begin` offers a range of session versions, the
//! answer picks one, unknown fields are ignored, and each release serves the current and the previous version.

mod acquire;
mod fields;
mod frame;
mod kinds;
mod look;
mod message;
mod raw_state;
mod version;

pub use acquire::{Acquire, OnCrash, PollingMs, Table};
pub(crate) use frame::encode;
pub use frame::{FrameError, LineReader, LineWriter, MAX_LINE};
pub use kinds::{ErrorKind, FailKind};
pub use look::{Counted, Inspect, Inspected, RowState};
pub use message::{AnswerTo, CheckAnswer, FromKeeper, ReleaseReason, ToKeeper};
pub use raw_state::RawState;
pub use version::{VERSION, VersionRange};
