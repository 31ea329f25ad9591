//! The session between layer and keeper: JSON lines on a Unix socket.
//!
//! Handler and extension are deployed apart and meet in mixed versions: `begin` offers a range of session versions, the
//! answer picks one, unknown fields are ignored, and each release serves the current and the previous version.

mod frame;
mod message;

pub(crate) use frame::encode;
pub use frame::{FrameError, LineReader, LineWriter, MAX_LINE};
pub use message::{
    Acquire, AnswerTo, CheckAnswer, FailKind, FromKeeper, OnCrash, PollingMs, ReleaseReason, Table, ToKeeper, VERSION,
    VersionRange,
};
