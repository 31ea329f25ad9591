//! A line that a process wrote as JSON: what function and keeper say of themselves.

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use serde_json::Value;

use crate::{Event, EventKind};

/// A line that a process wrote as JSON: a message with fields.
#[derive(Debug, Clone)]
pub struct Said {
    /// The message.
    pub message: String,
    fields: Value,
    /// The line's own time stamp, which stands beside the fields.
    stamp_us: Option<u64>,
}

impl Said {
    /// The line in this event, if it is one.
    pub fn in_event(event: &Event) -> Option<Self> {
        let EventKind::Output { line, .. } = &event.kind else { return None };
        let line: Value = serde_json::from_str(line).ok()?;
        let stamp_us = line["timestamp"].as_str().and_then(micros);
        // Field by field or nested under `fields`: both are usual.
        let fields = if line["fields"].is_object() { line["fields"].clone() } else { line };
        let message = fields["message"].as_str()?.to_owned();
        Some(Self { message, fields, stamp_us })
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
        self.fields["at_us"].as_u64().or(self.stamp_us)
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

/// A time stamp as loggers write it, in microseconds of wall time.
fn micros(text: &str) -> Option<u64> {
    let stamp = DateTime::from_str(text, DateTimeFormat::DateTime).ok()?;
    u64::try_from(stamp.as_nanos() / 1_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_timed_by_its_field_or_else_by_its_stamp() {
        let said = |line: &str| {
            let kind = EventKind::Output {
                process: crate::Process::Runtime,
                stream: crate::Stream::Stdout,
                line: line.to_owned(),
            };
            Said::in_event(&Event { index: 0, at: std::time::Duration::ZERO, environment: None, init: 1, kind })
                .unwrap()
        };
        let stamped = r#"{"timestamp":"2026-03-01T00:00:00.000250Z","message":"released"}"#;
        assert_eq!(said(stamped).at_us(), Some(1_772_323_200_000_250));
        let told = r#"{"timestamp":"2026-03-01T00:00:00Z","fields":{"message":"work began","at_us":7}}"#;
        assert_eq!(said(told).at_us(), Some(7));
        assert_eq!(said(r#"{"timestamp":"noon","message":"m"}"#).at_us(), None);
    }
}
