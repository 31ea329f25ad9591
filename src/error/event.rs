//! What is wrong with an event.

use thiserror::Error;

use crate::key::{PathMissing, ResolveError};

/// The event is not what the handler takes. No lock was asked for.
#[derive(Debug, Error)]
#[error("the event is not the handler's `{expected}`{}: {source}", place(.path))]
#[non_exhaustive]
pub struct EventNotDeserialized {
    /// The handler's payload type.
    pub expected: &'static str,
    /// Where in the event, such as `detail.items[0].id`; `.` for the event itself.
    pub path: String,
    /// What is wrong there.
    pub source: serde_json::Error,
}

fn place(path: &str) -> String {
    if path == "." { String::new() } else { format!(" at `{path}`") }
}

/// The event has no value at a path of the key template. No lock was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no lock key from `{template}`: {missing}")]
#[non_exhaustive]
pub struct KeyNotFound {
    /// The layer's key template.
    pub template: String,
    /// Which path, and how far the event has it.
    #[source]
    pub missing: PathMissing,
}

/// What the event has makes no lock key. No lock was asked for.
#[derive(Debug, Error)]
#[error("no lock key from {origin}: {source}")]
#[non_exhaustive]
pub struct KeyInvalid {
    /// The layer's key template, or its closure.
    pub origin: String,
    /// What is wrong.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl KeyInvalid {
    pub(crate) fn from_template(template: &str, error: ResolveError) -> Self {
        Self { origin: format!("`{template}`"), source: error.into() }
    }

    pub(crate) fn from_closure(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { origin: "the layer's `keyed_by`".to_owned(), source: error.into() }
    }
}
