//! What is wrong with how handler and keeper were deployed, or became of it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// There is no keeper to ask.
#[derive(Debug, Error)]
#[error("no keeper answers at {}: {source}; {advice}", .socket.display())]
#[non_exhaustive]
pub struct KeeperMissing {
    /// Where it was looked for.
    pub socket: PathBuf,
    /// What to do about it here.
    pub advice: &'static str,
    /// What the operating system said.
    pub source: io::Error,
}

impl KeeperMissing {
    pub(crate) const ON_LAMBDA: &'static str = "add the leasehold extension's layer to the function (if it is there, its own log lines say why it can't be reached), or set LEASEHOLD_KEEPER=in-process and build with the feature `in-process`";
    pub(crate) const ELSEWHERE: &'static str =
        "start the leasehold extension, or build with the feature `in-process` to need none";
    #[cfg(feature = "in-process")]
    pub(crate) const NO_THREAD: &'static str = "the keeper's thread in this process could not be started or reached";
}

/// The keeper vanished, or stopped answering. A lease that it held for the handler counts as lost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the keeper is gone ({reason}), and a lease that it held counts as lost: look for its last words in the function's \
     log; where it was killed for memory, raise the function's"
)]
#[non_exhaustive]
pub struct KeeperGone {
    /// What was seen of it, for people.
    pub reason: String,
}

/// Layer and keeper are too many releases apart to understand each other.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "layer and keeper speak different versions ({reason}): deploy the function and the extension's layer of one release"
)]
#[non_exhaustive]
pub struct VersionMismatch {
    /// What each speaks, for people.
    pub reason: String,
}
