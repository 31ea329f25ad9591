//! Where in an event a value stands.

use std::fmt;

/// The steps from the event's root to one value, such as `detail.items[0].id`.
///
/// It prints as a template would write it; a template's error and a resolution's error name a value by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path(Vec<Segment>);

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Segment {
    /// Into an object, by name.
    Name(String),
    /// Into an array, counted from 0.
    Index(usize),
}

impl Path {
    pub(super) const fn new(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// The steps, the root's first.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The first `steps` of this path; what an error points at.
    pub(super) fn prefix(&self, steps: usize) -> Self {
        Self(self.0.iter().take(steps).cloned().collect())
    }

    /// Whether the path is the event itself.
    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Name(name) if is_plain(name) => write!(f, "{}{name}", if step == 0 { "" } else { "." })?,
                Segment::Name(name) => write!(f, "[{}]", quoted(name))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Whether a name can stand in a template without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_plain_char)
}

/// Whether a plain name may have this character.
pub(super) const fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The name as a JSON string, quotes included.
pub(super) fn quoted(name: &str) -> String {
    // Writing a string as JSON does not fail.
    serde_json::to_string(name).unwrap_or_default()
}
