//! How a command ends, and what its exit status says of it.

use std::io;
use std::process::ExitCode;

use serde_json::{Value, json};

/// A command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nothing is wrong. 0
    Fine,
    /// It found a problem, or nothing to do its work on. 1
    Problem,
}

/// A command that could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    /// The command line, or what is read from standard input, can't be used. 2
    #[error("{0}")]
    Usage(String),
    /// AWS refused or can't be reached. 3
    #[error("{0}")]
    Aws(String),
    /// One that the JSON document on standard output tells already.
    #[error("{0}")]
    Told(Box<Stop>),
    /// Ctrl-C; what goes on by itself is told. 130
    #[error("{0}")]
    Interrupted(String),
    /// Standard output or the terminal failed. 2
    #[error("the output can't be written: {0}")]
    Output(#[from] io::Error),
}

/// The exit status, as every command's help tells it.
pub(crate) const STATUS: &str = "\
Exit status:
  0  nothing is wrong
  1  a problem was found, or the lock is not as was asked for; it is told
  2  the command line or the input can't be used
  3  AWS refused, or can't be reached";

impl Ended {
    pub(crate) fn code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::Problem => ExitCode::from(1),
        }
    }
}

impl Stop {
    fn status(&self) -> u8 {
        match self {
            // Who reads the output has seen enough, as `head` has.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Usage(_) | Self::Output(_) => 2,
            Self::Aws(_) => 3,
            // The usual one after it.
            Self::Interrupted(_) => 130,
            Self::Told(stop) => stop.status(),
        }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.status())
    }

    /// Whether AWS refused or could not be reached.
    pub(crate) fn is_of_aws(&self) -> bool {
        match self {
            Self::Aws(_) => true,
            Self::Told(stop) => stop.is_of_aws(),
            _ => false,
        }
    }

    /// It as `--json` tells it: with the exit status that it leads to.
    pub(crate) fn json(&self) -> Value {
        json!({ "status": self.status(), "told": self.to_string() })
    }

    /// Whether there is anything to tell.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
