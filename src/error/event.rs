//! What is wrong with an event.

use thiserror::Error;

use crate::key::{Found, KeyError, Path, PathMissing, ResolveError, Segment};

/// The event is not what the handler takes. No lock was asked for.
#[derive(Debug, Error)]
#[error("the event is not the handler's `{expected}`{}: {}", place(.path), brief(.source.to_string()))]
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
    if path == "." { String::new() } else { format!(" at `{}`", brief(path.to_owned())) }
}

/// The beginning and the end of a text that holds a value of the event: the value may be as long as the event is, and what
/// was expected stands behind it.
fn brief(text: String) -> String {
    const BEGINNING: usize = 400;
    const END: usize = 200;
    if text.len() <= BEGINNING + END {
        return text;
    }
    let (beginning, end) = (text.floor_char_boundary(BEGINNING), text.ceil_char_boundary(text.len() - END));
    format!("{}…{}", &text[..beginning], &text[end..])
}

/// The event has no value at a path of the key template. No lock was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no lock key from `{template}`: {missing}{}", instead(.missing, .has))]
#[non_exhaustive]
pub struct KeyNotFound {
    /// The layer's key template.
    pub template: String,
    /// Which path, and how far the event has it.
    #[source]
    pub missing: PathMissing,
    /// The names that the event has where the path ends, for people; `None` where it has none there.
    pub has: Option<String>,
}

fn instead(missing: &PathMissing, has: &Option<String>) -> String {
    // A path into a record, as they are written for batches, that was looked for in the whole event.
    let is_of_a_record = has.as_deref() == Some("`Records`") || leads_into_records(&missing.path);
    let batch = if is_of_a_record { PER_RECORD } else { "" };
    has.as_ref().map_or_else(|| batch.to_owned(), |has| format!("; what it has there is {has}{batch}"))
}

/// What to do about a path into a batch.
const PER_RECORD: &str = "; SQS messages and a stream's records have a key each with `per_record`, whose template begins \
                          within the record and looks into bodies and data as well";

/// Whether a path of the whole event goes into one of its records.
fn leads_into_records(path: &Path) -> bool {
    matches!(path.segments(), [Segment::Name(name), Segment::Index(_), ..] if name == "Records")
}

/// A request came to a route's layer whose path is none of the layer's routes. No lock was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no lock key from `{template}`: the request's path `{}` is none of the layer's routes ({}): put the layer around those \
     only, or name this one too, with `route`", brief(.path.clone()), quoted(.routes)
)]
#[non_exhaustive]
pub struct RouteNotMatched {
    /// The layer's name: its key template unless set.
    pub template: String,
    /// The request's path, as it came to the layer.
    pub path: String,
    /// The layer's routes.
    pub routes: Vec<String>,
}

impl RouteNotMatched {
    /// The same without the request's path, where keys may be made of it that are not to be told.
    pub(crate) fn without_path(self) -> Self {
        Self { path: "(not told, as keys are hashed)".to_owned(), ..self }
    }
}

fn quoted(routes: &[String]) -> String {
    routes.iter().map(|route| format!("`{route}`")).collect::<Vec<_>>().join(", ")
}

/// What the event has makes no lock key. No lock was asked for.
#[derive(Debug, Error)]
#[error("no lock key from {origin}: {source}{}", within(&**.source))]
#[non_exhaustive]
pub struct KeyInvalid {
    /// The layer's key template, or its closure, or the key that was taken by hand.
    pub origin: String,
    /// What is wrong.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A body is a text for a layer around the whole batch: its template can't go on from there.
fn within(source: &(dyn std::error::Error + Send + Sync + 'static)) -> &'static str {
    match source.downcast_ref::<ResolveError>() {
        Some(ResolveError::Unusable(unusable))
            if unusable.at != unusable.path && leads_into_records(&unusable.path) =>
        {
            PER_RECORD
        }
        _ => "",
    }
}

impl KeyInvalid {
    pub(crate) fn from_template(template: &str, error: ResolveError) -> Self {
        Self { origin: format!("`{template}`"), source: error.into() }
    }

    /// The same, without the value that makes no key.
    pub(crate) fn without_value(mut self) -> Self {
        if let Some(ResolveError::Unusable(unusable)) = self.source.downcast_mut::<ResolveError>()
            && let Found::Number(text) = &mut unusable.found
        {
            "that stands there, which is not told as keys are hashed,".clone_into(text);
        }
        self
    }

    pub(crate) fn from_closure(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { origin: "the layer's `keyed_by`".to_owned(), source: error.into() }
    }

    pub(crate) fn by_hand(error: KeyError) -> Self {
        Self { origin: "the text that was given by hand".to_owned(), source: error.into() }
    }
}
