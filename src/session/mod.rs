//! The session between layer and keeper: JSON lines on a Unix socket.
//!
//! Handler and extension are deployed apart and meet in mixed versions: `begin` offers a range of session versions, the
//! answer picks one, unknown fields are ignored, and each release serves the current and the previous version.

mod acquire;
mod fields;
mod frame;
mod from_keeper;
mod kinds;
mod look;
mod raw_state;
mod to_keeper;
mod version;

pub use acquire::{Acquire, OnCrash, PollingMs, Table};
pub(crate) use frame::encode;
pub use frame::{FrameError, LineReader, LineWriter, MAX_LINE};
pub use from_keeper::{AnswerTo, CheckAnswer, FromKeeper};
pub use kinds::{ErrorKind, FailKind};
pub use look::{Counted, Inspect, Inspected, RowState};
pub use raw_state::RawState;
pub use to_keeper::{ReleaseReason, ToKeeper};
pub use version::{VERSION, VersionRange};
