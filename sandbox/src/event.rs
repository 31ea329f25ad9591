//! What happens in a sandbox, one typed event a step.

use std::time::Duration;

use rustix::process::Signal;

use crate::{EnvironmentId, Exit, Process, ShutdownReason, Stream};

/// One step, when and where it happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its place in the log, from 0.
    pub index: usize,
    /// Monotonic time since the sandbox was started.
    pub at: Duration,
    /// The environment it happened in.
    pub environment: Option<EnvironmentId>,
    /// The environment's how many-th initialization it belongs to; 0 before the first.
    pub init: u32,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// The invocation this event is about, if it is about one.
    pub fn request_id(&self) -> Option<&str> {
        use EventKind as K;
        match &self.kind {
            K::InvocationQueued { request_id }
            | K::InvocationStarted { request_id, .. }
            | K::RuntimeInvoked { request_id }
            | K::ExtensionInvoked { request_id, .. }
            | K::ResponseStarted { request_id }
            | K::ResponsePosted { request_id, .. }
            | K::ErrorPosted { request_id, .. }
            | K::AnswerRefused { request_id, .. }
            | K::InvocationAnswered { request_id, .. }
            | K::DeadlineReached { request_id } => Some(request_id),
            _ => None,
        }
    }

    /// Whether the sandbox or a test sent this signal to that process.
    pub fn is_signal(&self, to: &Process, sent: Signal) -> bool {
        matches!(&self.kind, EventKind::SignalSent { process, signal, .. } if process == to && *signal == sent)
    }

    /// Whether this is the end of that process.
    pub fn is_exit(&self, of: &Process) -> bool {
        matches!(&self.kind, EventKind::Exited { process, .. } if process == of)
    }

    /// Whether a process wrote a line that contains `text`.
    pub fn is_output(&self, text: &str) -> bool {
        matches!(&self.kind, EventKind::Output { line, .. } if line.contains(text))
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The embedded DynamoDB listens.
    DynamoDbStarted {
        /// Its endpoint.
        url: String,
    },
    /// An environment was created; nothing runs in it yet.
    EnvironmentCreated {
        /// The port of its Runtime and Extensions API.
        port: u16,
    },
    /// An initialization begins: extensions first, then the runtime.
    InitStarted,
    /// A process was started.
    ProcessStarted {
        /// Which.
        process: Process,
        /// Its process id, which is its group's id as well.
        pid: i32,
    },
    /// An extension registered.
    ExtensionRegistered {
        /// Its name.
        name: String,
        /// The events it wants.
        events: Vec<String>,
    },
    /// A registration was refused.
    RegistrationRefused {
        /// The name in the request.
        name: String,
        /// Why.
        reason: String,
    },
    /// The runtime asked for the next invocation.
    RuntimeNext,
    /// An extension asked for the next event.
    ExtensionNext {
        /// Its name.
        name: String,
    },
    /// Runtime and extensions are ready.
    InitDone,
    /// The initialization failed.
    InitFailed {
        /// The error's type as Lambda would report it.
        error_type: String,
        /// What happened.
        message: String,
    },
    /// A process reported an error of its own, by `init/error` or `exit/error`.
    ErrorReported {
        /// Who.
        process: Process,
        /// The type it gave.
        error_type: String,
    },
    /// All environments are busy; the invocation waits for one.
    InvocationQueued {
        /// Which.
        request_id: String,
    },
    /// The invocation begins in an environment that is ready.
    InvocationStarted {
        /// Which.
        request_id: String,
        /// Its deadline, epoch milliseconds.
        deadline_ms: u64,
    },
    /// The runtime got the invocation.
    RuntimeInvoked {
        /// Which.
        request_id: String,
    },
    /// An extension got the INVOKE event.
    ExtensionInvoked {
        /// The extension.
        name: String,
        /// Which.
        request_id: String,
    },
    /// The first byte of a streamed response came.
    ResponseStarted {
        /// Which.
        request_id: String,
    },
    /// The runtime's response is complete.
    ResponsePosted {
        /// Which.
        request_id: String,
        /// Its length.
        bytes: usize,
        /// Whether it was streamed.
        streamed: bool,
    },
    /// The runtime reported that the handler failed.
    ErrorPosted {
        /// Which.
        request_id: String,
        /// The error's type.
        error_type: String,
    },
    /// The runtime's answer was not taken: too late, twice, too large or for an unknown invocation.
    AnswerRefused {
        /// Which.
        request_id: String,
        /// The HTTP status the runtime got.
        status: u16,
    },
    /// The caller has the outcome.
    InvocationAnswered {
        /// Which.
        request_id: String,
        /// The error's type, unless it succeeded.
        error_type: Option<String>,
    },
    /// The invocation's time is over and somebody is still at it.
    DeadlineReached {
        /// Which.
        request_id: String,
    },
    /// Runtime and extensions are done with the invocation: the environment is idle.
    Idle,
    /// All processes were stopped, as Lambda freezes an idle environment.
    Frozen,
    /// All processes run again.
    Thawed,
    /// The environment's processes are being ended; the environment stays.
    ResetStarted {
        /// Why.
        reason: ShutdownReason,
    },
    /// A process or its whole group was signalled.
    SignalSent {
        /// Which.
        process: Process,
        /// With what.
        signal: Signal,
        /// Whether the whole process group got it.
        group: bool,
    },
    /// An extension got the SHUTDOWN event.
    ShutdownSent {
        /// Its name.
        name: String,
        /// The reason it was told.
        reason: ShutdownReason,
        /// When it will be killed, epoch milliseconds.
        deadline_ms: u64,
    },
    /// A process ended.
    Exited {
        /// Which.
        process: Process,
        /// How.
        exit: Exit,
    },
    /// No process is left; the next invocation initializes the environment again, over the same files.
    ResetDone,
    /// Everything was killed at once, as when a host is lost.
    Vanished,
    /// The environment is gone for good.
    EnvironmentEnded,
    /// A process wrote a line.
    Output {
        /// Who.
        process: Process,
        /// Where.
        stream: Stream,
        /// The line, without its end.
        line: String,
    },
    /// A remark of the test or the demo.
    Note(String),
}
