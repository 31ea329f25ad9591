//! Which JSON values may become part of a key, and what the others are called.

use std::borrow::Cow;
use std::fmt;

/// What stood in the event where a string or an integer was needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// `""`
    EmptyString,
    /// A string with half of a surrogate pair, which has no UTF-8.
    LoneSurrogate,
    /// A number with a fraction or an exponent, as the event writes it (long ones shortened), or any number where the
    /// path goes on.
    Number(String),
    /// A string where the path goes on.
    String,
    /// An object where a value was needed, or where the path asks for an array's element.
    Object,
    /// An array where a value was needed, or where the path asks for a name.
    Array,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "the boolean {value}"),
            Self::EmptyString => f.write_str("an empty string"),
            Self::LoneSurrogate => f.write_str("a string with half of a surrogate pair"),
            Self::Number(text) => write!(f, "the number {text}"),
            Self::String => f.write_str("a string"),
            Self::Object => f.write_str("an object"),
            Self::Array => f.write_str("an array"),
        }
    }
}

/// The text that one well-formed JSON value contributes to a key.
///
/// An integer keeps its digits however many it has. `-0` is the integer 0 and gives `0`: writers disagree on keeping
/// its sign, and two spellings of one number must not be two locks. A string of digits and the integer give one text.
pub(super) fn key_text(json: &str) -> Result<Cow<'_, str>, Found> {
    match json.as_bytes().first() {
        Some(b'"') => string_text(json),
        Some(b'-' | b'0'..=b'9') => integer_text(json),
        _ => Err(kind(json)),
    }
}

/// What one well-formed JSON value is, by its first character.
pub(super) fn kind(json: &str) -> Found {
    match json.as_bytes().first() {
        Some(b'"') => Found::String,
        Some(b'{') => Found::Object,
        Some(b'[') => Found::Array,
        Some(b't') => Found::Bool(true),
        Some(b'f') => Found::Bool(false),
        Some(b'-' | b'0'..=b'9') => Found::Number(shortened(json)),
        _ => Found::Null,
    }
}

fn integer_text(json: &str) -> Result<Cow<'_, str>, Found> {
    match json.strip_prefix('-').unwrap_or(json) {
        "0" => Ok(Cow::Borrowed("0")),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(Cow::Borrowed(json)),
        _ => Err(Found::Number(shortened(json))),
    }
}

fn string_text(json: &str) -> Result<Cow<'_, str>, Found> {
    if json == "\"\"" {
        return Err(Found::EmptyString);
    }
    // The scan has checked every escape by itself; only a surrogate without its other half still fails here.
    decoded(json).ok_or(Found::LoneSurrogate)
}

/// A well-formed JSON string's content; `None` where it has no UTF-8.
pub(super) fn decoded(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.as_bytes().contains(&b'\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Enough of a number to recognise it: an event can hold one of a megabyte.
fn shortened(number: &str) -> String {
    const SHOWN: usize = 32;
    match number.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", number.get(..end).unwrap_or_default()),
        None => number.to_owned(),
    }
}
