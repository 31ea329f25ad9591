//! A line that a process wrote as JSON: what function and keeper say of themselves.

use serde_json::Value;

use crate::{Event, EventKind};

/// A line that a process wrote as JSON: a message with fields.
#[derive(Debug, Clone)]
pub struct Said {
    /// The message.
    pub message: String,
    fields: Value,
}

impl Said {
    /// The line in this event, if it is one.
    pub fn in_event(event: &Event) -> Option<Self> {
        let EventKind::Output { line, .. } = &event.kind else { return None };
        let line: Value = serde_json::from_str(line).ok()?;
        // Field by field or nested under `fields`: both are usual.
        let fields = if line["fields"].is_object() { line["fields"].clone() } else { line };
        let message = fields["message"].as_str()?.to_owned();
        Some(Self { message, fields })
    }

    /// A field as text.
    pub fn field(&self, name: &str) -> Option<String> {
        match &self.fields[name] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// When it was written, in microseconds of wall time, where it says so: lines of two processes may be read in another
    /// order than they were written in.
    pub fn at_us(&self) -> Option<u64> {
        self.fields["at_us"].as_u64()
    }

    /// Whether it names this invocation.
    pub fn is_about(&self, request_id: &str) -> bool {
        ["request_id", "request"].iter().any(|name| self.fields[*name] == request_id)
    }

    /// Whether a lease was taken from a holder whose lease was over.
    pub fn took_over(&self) -> bool {
        self.fields["took_over"] == true || self.fields["took_over"] == "true"
    }

    pub(super) fn invocation(&self) -> Option<&str> {
        ["request_id", "request"].iter().find_map(|name| self.fields[*name].as_str())
    }
}
