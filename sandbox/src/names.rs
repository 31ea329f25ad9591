//! The words events are made of: environments, processes, outputs, ends and reasons.

use std::fmt;

use rustix::process::Signal;

/// Names an environment of a sandbox; the first is 0, numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnvironmentId(pub usize);

impl fmt::Display for EnvironmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "env{}", self.0)
    }
}

/// One of an environment's processes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Process {
    /// The function with its runtime.
    Runtime,
    /// An extension, by its name.
    Extension(String),
}

impl Process {
    /// Whether this is an extension.
    pub fn is_extension(&self) -> bool {
        matches!(self, Self::Extension(_))
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime => f.write_str("runtime"),
            Self::Extension(name) => write!(f, "extension {name}"),
        }
    }
}

/// Which of a process's two outputs a line was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited by itself, with this code.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(number) => match Signal::from_named_raw(*number) {
                Some(signal) => write!(f, "{}", signal_name(signal)),
                None => write!(f, "signal {number}"),
            },
        }
    }
}

/// Why an environment's processes are told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownReason {
    /// The environment is not needed any more.
    Spindown,
    /// An invocation outlived its deadline.
    Timeout,
    /// A process ended that should not have.
    Failure,
}

impl ShutdownReason {
    /// The word that the Extensions API sends.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spindown => "spindown",
            Self::Timeout => "timeout",
            Self::Failure => "failure",
        }
    }
}

impl fmt::Display for ShutdownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The usual name of a signal.
pub(crate) fn signal_name(signal: Signal) -> String {
    let name = match signal {
        Signal::TERM => "SIGTERM",
        Signal::KILL => "SIGKILL",
        Signal::STOP => "SIGSTOP",
        Signal::CONT => "SIGCONT",
        Signal::ABORT => "SIGABRT",
        Signal::INT => "SIGINT",
        Signal::SEGV => "SIGSEGV",
        Signal::HUP => "SIGHUP",
        Signal::QUIT => "SIGQUIT",
        Signal::PIPE => "SIGPIPE",
        Signal::ILL => "SIGILL",
        Signal::BUS => "SIGBUS",
        Signal::USR1 => "SIGUSR1",
        Signal::USR2 => "SIGUSR2",
        other => return format!("signal {}", other.as_raw()),
    };
    name.to_owned()
}
