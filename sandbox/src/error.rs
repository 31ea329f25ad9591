//! What can go wrong with the sandbox itself; a function's own failures are an [`InvocationError`].

use std::{io, path::PathBuf, time::Duration};

use crate::{EnvironmentId, InvocationError};

/// A failure of the sandbox: a wrong setting, a program that can't be started, a wait that was in vain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that is to run doesn't exist or is no executable file.
    #[error("{role} {path} {problem}; build it first, or give the path of an executable file", path = path.display())]
    Program {
        /// `function` or `extension`.
        role: &'static str,
        /// The path as it was given.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// No function was named.
    #[error("no function was given; call `SandboxBuilder::function` with the path of its binary")]
    NoFunction,

    /// A setting contradicts another or is out of bounds.
    #[error("{setting} {problem}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },

    /// The sandbox's directory, port or thread could not be had.
    #[error("could not {action}: {source}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: io::Error,
    },

    /// The embedded DynamoDB did not start.
    #[error("the embedded DynamoDB did not start: {0}; give an endpoint of your own instead")]
    EmbeddedDynamoDb(String),

    /// A request to DynamoDB failed.
    #[error("DynamoDB refused to {action}: {problem}")]
    DynamoDb {
        /// What was asked.
        action: String,
        /// What the service answered.
        problem: String,
    },

    /// There is no such environment and the limit forbids to create it.
    #[error(
        "environment {index} does not exist and at most {limit} may run at once; raise `SandboxBuilder::environments`"
    )]
    NoSuchEnvironment {
        /// The number that was asked for.
        index: usize,
        /// How many environments may live at once.
        limit: usize,
    },

    /// The environment was shut down or has vanished.
    #[error("{0} has ended; invoke the function again to get a new environment")]
    EnvironmentEnded(EnvironmentId),

    /// The addressed process does not run at the moment.
    #[error("{environment} has no running {process}; start it with `Environment::start` or an invocation")]
    NotRunning {
        /// The environment that was asked.
        environment: EnvironmentId,
        /// The process that was addressed.
        process: String,
    },

    /// A signal could not be sent.
    #[error("could not signal {process}: {source}")]
    Signal {
        /// The process that was addressed.
        process: String,
        /// Why it failed.
        source: io::Error,
    },

    /// The environment's initialization failed.
    #[error("initialization failed: {0}")]
    Init(InvocationError),

    /// The awaited event did not come in time.
    #[error("no such event within {limit:?}; what happened:\n{timeline}")]
    NotSeen {
        /// How long it was waited for.
        limit: Duration,
        /// All events up to now.
        timeline: String,
    },

    /// The awaited requests did not come to the fault proxy in time.
    #[error("fewer than {count} requests met the fault within {limit:?}")]
    NoRequest {
        /// How many were awaited.
        count: usize,
        /// How long they were waited for.
        limit: Duration,
    },

    /// Events did not come in the expected order.
    #[error("expected {expected} after {after}; what happened:\n{timeline}")]
    OutOfOrder {
        /// The step that is missing.
        expected: String,
        /// The step before it.
        after: String,
        /// All events up to now.
        timeline: String,
    },
}

impl Error {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}
