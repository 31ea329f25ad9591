//! What stands in front of every key, so that stages and teams can share a table.

use std::fmt;

use thiserror::Error;

/// The most bytes a namespace may have: it must leave the key itself room.
const MAX_BYTES: usize = 255;

/// A prefix for keys: `billing-prod` turns the key `orders:7` into `billing-prod/orders:7`.
///
/// Use one wherever two stages, teams or functions share a table. It is not framed, so an IAM policy can grant a role
/// `dynamodb:LeadingKeys` of `billing-prod/*`. That is also why it has few characters: a `/` would let one namespace
/// begin with another, and `*`, `?` and `$` mean something in a policy.
///
/// ```
/// use leasehold::key::Namespace;
///
/// assert_eq!(Namespace::parse("billing-prod")?.to_string(), "billing-prod");
/// assert!(Namespace::parse("billing/prod").is_err());
/// # Ok::<(), leasehold::key::NamespaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace(String);

impl Namespace {
    /// Checks the text and takes it as a namespace.
    ///
    /// # Errors
    ///
    /// [`NamespaceError`] unless it has 1 to 255 ASCII letters, digits, `-`, `_` and `.`.
    pub fn parse(text: &str) -> Result<Self, NamespaceError> {
        if text.is_empty() {
            return Err(NamespaceError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(NamespaceError::TooLong { bytes: text.len() });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match text.char_indices().find(|&(_, c)| !allowed(c)) {
            Some((offset, found)) => Err(NamespaceError::Character { offset, found }),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The namespace without the `/` that follows it in a key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that can't be a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// There is no text.
    #[error("the namespace is empty: leave it unset, or name the stage or team, such as `billing-prod`")]
    Empty,
    /// It would leave too little of the key.
    #[error("the namespace has {bytes} bytes: shorten it to {MAX_BYTES} at most")]
    TooLong {
        /// How many bytes the text has.
        bytes: usize,
    },
    /// A character that could end the namespace early or means something in an IAM policy.
    #[error("the namespace has {found:?} at byte {offset}: use ASCII letters, digits, `-`, `_` and `.` only")]
    Character {
        /// Where, in bytes from the start.
        offset: usize,
        /// The character.
        found: char,
    },
}
