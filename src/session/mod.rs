//! The session between layer and keeper: JSON lines on a Unix socket.
//!
//! Handler and extension are deployed apart and meet in mixed versions: `begin` offers a range of session versions, the
//! answer picks one, unknown fields are ignored, and each release serves the current and the previous version.

mod frame;
mod message;
mod version;

pub(crate) use frame::encode;
pub use frame::{FrameError, LineReader, LineWriter, MAX_LINE};
pub use message::{
    Acquire, AnswerTo, CheckAnswer, ErrorKind, FailKind, FromKeeper, OnCrash, PollingMs, ReleaseReason, Table, ToKeeper,
};
pub use version::{VERSION, VersionRange};
