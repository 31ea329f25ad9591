//! The key itself: text that DynamoDB takes as a partition key.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most bytes a DynamoDB partition key may have.
pub const MAX_KEY_BYTES: usize = 2048;

/// What the key of a lock's state ends with, behind the lock's own key.
const OF_STATES: &str = "#state";

/// The text that names what is locked: 1 to 2,048 bytes of UTF-8, which do not end with `#state`. There the state of
/// another lock is kept, and whoever may choose a key could else lock its holders out of it.
///
/// A [`Template`](super::Template) makes one from an event. Make one yourself where a closure picks the key.
///
/// ```
/// use leasehold::key::LockKey;
///
/// let key = LockKey::new("orders:A-17")?;
/// assert_eq!(key.as_str(), "orders:A-17");
/// assert!(LockKey::new("").is_err());
/// # Ok::<(), leasehold::key::KeyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct LockKey(String);

impl LockKey {
    /// Takes the text as a key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when the text is empty, longer than [`MAX_KEY_BYTES`], or ends with `#state`.
    pub fn new(text: impl Into<String>) -> Result<Self, KeyError> {
        let text = text.into();
        match text.len() {
            0 => Err(KeyError::Empty),
            1..=MAX_KEY_BYTES if text.ends_with(OF_STATES) => Err(KeyError::OfState),
            1..=MAX_KEY_BYTES => Ok(Self(text)),
            bytes => Err(KeyError::TooLong { bytes }),
        }
    }

    /// Takes a text that is known to be neither empty nor long.
    pub(super) const fn of_short_text(text: String) -> Self {
        Self(text)
    }

    /// The key behind a namespace, where both are known to be short.
    pub(crate) fn behind(&self, namespace: &super::Namespace) -> Self {
        Self(format!("{namespace}/{self}"))
    }

    /// The key's text, as it stands in the table.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for LockKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LockKey {
    type Error = KeyError;
    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::new(text)
    }
}

impl From<LockKey> for String {
    fn from(key: LockKey) -> Self {
        key.0
    }
}

/// A text that can't be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no text.
    #[error("a lock key needs at least one character; an empty one would put every event behind one lock")]
    Empty,
    /// DynamoDB would refuse it.
    #[error(
        "the lock key has {bytes} bytes and DynamoDB takes {MAX_KEY_BYTES}: take the key from a shorter value, or hash \
         the value before it becomes part of the event"
    )]
    TooLong {
        /// How many bytes of UTF-8 the text has.
        bytes: usize,
    },
    /// It is where another lock's state is kept.
    #[error(
        "the lock key ends with `{OF_STATES}`, and there the state of the lock without it is kept: take the key from another \
         value, or let the template end with something else"
    )]
    OfState,
}
