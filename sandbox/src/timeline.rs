//! Events as lines for people: time, environment, what happened; colour only where it is asked for.

use std::fmt;

use crate::{Event, EventKind, Exit, Stream, names::signal_name};

/// A printable copy of the log.
#[derive(Debug, Clone)]
pub struct Timeline {
    events: Vec<Event>,
    colour: bool,
}

impl Timeline {
    pub(crate) fn new(events: Vec<Event>) -> Self {
        Self { events, colour: false }
    }

    /// With terminal colours.
    pub fn coloured(mut self, colour: bool) -> Self {
        self.colour = colour;
        self
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "{}", Line { event, colour: self.colour })?;
        }
        Ok(())
    }
}

/// One event as a line; with colours when the terminal understands them.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// What to print.
    pub event: &'a Event,
    /// Whether to colour it.
    pub colour: bool,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.event.at.as_secs_f64();
        let environment = self.event.environment.map(|id| id.to_string()).unwrap_or_default();
        let (start, end) = if self.colour { (colour(&self.event.kind), "\u{1b}[0m") } else { ("", "") };
        let (dim, plain) = if self.colour { ("\u{1b}[2m", "\u{1b}[0m") } else { ("", "") };
        write!(f, "{dim}{seconds:>9.4}s {environment:<6}{plain}{start}{}{end}", self.event.kind)
    }
}

/// Red for failures, yellow for force, green for success, cyan for freezing, grey for the processes' own words.
fn colour(kind: &EventKind) -> &'static str {
    use EventKind as K;
    match kind {
        K::InvocationAnswered { error_type: Some(_), .. }
        | K::InitFailed { .. }
        | K::ErrorReported { .. }
        | K::ErrorPosted { .. }
        | K::AnswerRefused { .. }
        | K::RegistrationRefused { .. }
        | K::DeadlineReached { .. }
        | K::Vanished => "\u{1b}[31m",
        K::Exited { exit, .. } if *exit != Exit::Code(0) => "\u{1b}[31m",
        K::ResetStarted { .. } | K::SignalSent { .. } | K::ShutdownSent { .. } => "\u{1b}[33m",
        K::InvocationAnswered { .. } | K::InitDone => "\u{1b}[32m",
        K::Frozen | K::Thawed => "\u{1b}[36m",
        K::Output { .. } => "\u{1b}[90m",
        K::Note(_) => "\u{1b}[1m",
        _ => "",
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DynamoDbStarted { url } => write!(f, "embedded DynamoDB listens on {url}"),
            Self::EnvironmentCreated { port } => write!(f, "environment created, Runtime API on port {port}"),
            Self::InitStarted => f.write_str("init starts"),
            Self::ProcessStarted { process, pid } => write!(f, "{process} started, pid {pid}"),
            Self::ExtensionRegistered { name, events } => {
                write!(f, "extension {name} registered for {}", events.join(", "))
            }
            Self::RegistrationRefused { name, reason } => write!(f, "registration of {name} refused: {reason}"),
            Self::RuntimeNext => f.write_str("runtime calls Next"),
            Self::ExtensionNext { name } => write!(f, "extension {name} calls Next"),
            Self::InitDone => f.write_str("init done"),
            Self::InitFailed { error_type, message } => write!(f, "init failed: {error_type}: {message}"),
            Self::ErrorReported { process, error_type } => write!(f, "{process} reports {error_type}"),
            Self::InvocationQueued { request_id } => write!(f, "{} waits for an environment", short(request_id)),
            Self::InvocationStarted { request_id, .. } => write!(f, "{} begins", short(request_id)),
            Self::RuntimeInvoked { request_id } => write!(f, "{} delivered to runtime", short(request_id)),
            Self::ExtensionInvoked { name, request_id } => {
                write!(f, "{} INVOKE to extension {name}", short(request_id))
            }
            Self::ResponseStarted { request_id } => write!(f, "{} response begins to stream", short(request_id)),
            Self::ResponsePosted { request_id, bytes, streamed } => {
                let how = if *streamed { ", streamed" } else { "" };
                write!(f, "{} response of {bytes} bytes{how}", short(request_id))
            }
            Self::ErrorPosted { request_id, error_type } => {
                write!(f, "{} handler failed: {error_type}", short(request_id))
            }
            Self::AnswerRefused { request_id, status } => {
                write!(f, "{} answer refused with {status}", short(request_id))
            }
            Self::InvocationAnswered { request_id, error_type: None } => {
                write!(f, "{} succeeded", short(request_id))
            }
            Self::InvocationAnswered { request_id, error_type: Some(error_type) } => {
                write!(f, "{} failed: {error_type}", short(request_id))
            }
            Self::DeadlineReached { request_id } => write!(f, "{} reached its deadline", short(request_id)),
            Self::Idle => f.write_str("idle"),
            Self::Frozen => f.write_str("frozen"),
            Self::Thawed => f.write_str("thawed"),
            Self::ResetStarted { reason } => write!(f, "processes are ended, reason {reason}"),
            Self::SignalSent { process, signal, group } => {
                let whole = if *group { "'s process group" } else { "" };
                write!(f, "{} to {process}{whole}", signal_name(*signal))
            }
            Self::ShutdownSent { name, reason, .. } => write!(f, "SHUTDOWN ({reason}) to extension {name}"),
            Self::Exited { process, exit } => write!(f, "{process} ended: {exit}"),
            Self::ResetDone => f.write_str("no process left, files stay"),
            Self::Vanished => f.write_str("vanished: everything killed at once"),
            Self::EnvironmentEnded => f.write_str("environment ended"),
            Self::Output { process, stream, line } => {
                let mark = if *stream == Stream::Stderr { "!" } else { "|" };
                write!(f, "{process} {mark} {line}")
            }
            Self::Note(text) => f.write_str(text),
        }
    }
}

/// Request ids are long; their beginning tells them apart.
fn short(request_id: &str) -> &str {
    request_id.get(..8).unwrap_or(request_id)
}
