//! Why an environment can't go on, and how its callers are told.

use crate::{EnvironmentId, Exit, InvocationError, Process};

/// The first thing that went wrong.
#[derive(Debug, Clone)]
pub(super) enum Broken {
    /// A process ended that should have stayed.
    Exited(Process, Exit),
    /// A process reported that it can't go on.
    Reported(InvocationError),
}

impl Broken {
    /// The error for the caller of this invocation, worded as Lambda words it.
    pub(super) fn error(&self, request_id: &str) -> InvocationError {
        match self {
            Self::Exited(Process::Runtime, Exit::Code(0)) => {
                platform("Runtime.ExitError", request_id, "Runtime exited without providing a reason")
            }
            Self::Exited(Process::Runtime, exit) => {
                platform("Runtime.ExitError", request_id, &format!("Runtime exited with error: {exit}"))
            }
            Self::Exited(Process::Extension(name), exit) => {
                platform("Extension.Crash", request_id, &format!("extension {name} exited: {exit}"))
            }
            Self::Reported(error) => error.clone(),
        }
    }
}

/// The function's time was over.
pub(super) fn timed_out(request_id: &str, timeout: std::time::Duration) -> InvocationError {
    let seconds = timeout.as_secs_f64();
    platform("Sandbox.Timedout", request_id, &format!("Task timed out after {seconds:.2} seconds"))
}

/// An initialization's time was over; `missing` names who wasn't ready.
pub(super) fn init_timed_out(request_id: &str, limit: std::time::Duration, missing: &str) -> InvocationError {
    let text = format!("initialization took longer than {limit:?}, still waiting for {missing}");
    platform("Sandbox.Timedout", request_id, &text)
}

/// The host is lost; Lambda's callers see its own fault.
pub(super) fn vanished(request_id: &str, environment: EnvironmentId) -> InvocationError {
    platform("ServiceException", request_id, &format!("{environment} has vanished"))
}

/// The environment ended before the invocation could begin.
pub(super) fn ended(request_id: &str, environment: EnvironmentId) -> InvocationError {
    platform("Sandbox.EnvironmentEnded", request_id, &format!("{environment} was shut down"))
}

pub(super) fn platform(error_type: &str, request_id: &str, text: &str) -> InvocationError {
    InvocationError::new(error_type, format!("RequestId: {request_id} Error: {text}"))
}
