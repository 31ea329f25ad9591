//! Why an event gives no key: one type a failure.

use thiserror::Error;

use super::context::ContextField;
use super::found::Found;
use super::lock_key::KeyError;
use super::path::{Path, Segment};

/// An event that a template can't be resolved against.
///
/// [`is_missing`](Self::is_missing) tells the one case in which a layer may be told to run unlocked. Where an event has
/// several faults, a missing path is reported only if it is the only kind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The event has no value at a path.
    #[error(transparent)]
    Missing(#[from] PathMissing),
    /// A value is neither a string nor an integer, or the path leads through something that has no parts.
    #[error(transparent)]
    Unusable(#[from] UnusableValue),
    /// A name on a path stands twice, so that readers disagree on its value.
    #[error(transparent)]
    Duplicate(#[from] DuplicateName),
    /// The invocation's context lacks a value.
    #[error(transparent)]
    Context(#[from] ContextMissing),
    /// The event is not JSON.
    #[error(transparent)]
    Event(#[from] EventUnreadable),
    /// The values were found, but what they make is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl ResolveError {
    /// Whether a path is missing and nothing else is wrong.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }
}

/// A path that the event does not have. A null is not missing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the event has no `{path}`{}: correct the path, or let `missing_path` (LEASEHOLD_MISSING_PATH) run such events unlocked", place(.path, *.depth))]
#[non_exhaustive]
pub struct PathMissing {
    /// The whole path.
    pub path: Path,
    /// How many of its steps the event does have.
    pub depth: usize,
}

/// Something at a path, or on the way, that can't be part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", unusable(self))]
#[non_exhaustive]
pub struct UnusableValue {
    /// The whole path.
    pub path: Path,
    /// The steps to what was found: the path itself, or where it could not go on.
    pub at: Path,
    /// What was found there.
    pub found: Found,
}

/// A name on a path that stands twice in its object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the event has `{at}` twice, so readers may disagree on the lock key's `{path}`: let the sender write each name once"
)]
#[non_exhaustive]
pub struct DuplicateName {
    /// The whole path.
    pub path: Path,
    /// The steps to the name that stands twice.
    pub at: Path,
}

/// A value of the context that this invocation does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the invocation has no `{field}`{}", context_hint(*.field))]
#[non_exhaustive]
pub struct ContextMissing {
    /// Which one.
    pub field: ContextField,
}

/// An event that is not JSON, or not all of it.
#[derive(Debug, Error)]
#[error("the event can't be read as JSON, so it has no lock key: {0}")]
pub struct EventUnreadable(#[from] serde_json::Error);

/// Tells how far the event goes along, where that is not the last step.
fn place(path: &Path, depth: usize) -> String {
    if depth + 1 >= path.segments().len() {
        return String::new();
    }
    format!(" (it ends before `{}`)", path.prefix(depth + 1))
}

fn unusable(error: &UnusableValue) -> String {
    let UnusableValue { path, at, found } = error;
    if at == path {
        return format!("the lock key's `{path}` is {found}: it must be a string that is not empty, or an integer");
    }
    let place = if at.is_root() { "the event".to_owned() } else { format!("`{at}`") };
    let wanted = match path.segments().get(at.segments().len()) {
        Some(Segment::Index(_)) => "an array",
        _ => "an object",
    };
    format!(
        "{place} is {found}, so the event has no `{path}` for the lock key: it must be {wanted}, or the path be corrected"
    )
}

const fn context_hint(field: ContextField) -> &'static str {
    match field {
        ContextField::TenantId => ": turn on tenant isolation for the function, or take the tenant from the event",
        _ => ": outside Lambda, set it before the invocation, or take it out of the key template",
    }
}
