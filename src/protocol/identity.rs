//! Who holds a lease: the owner of one attempt, its fencing token, and what people are told about it.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The identity of one acquisition attempt: a fresh UUID, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerId(Uuid);

// Handlers are told an identity and make none: what is hidden is for the layer's peers and their tests.
impl OwnerId {
    /// A new identity from the kernel's randomness (a snapshot would clone a generator of the process's own).
    #[doc(hidden)]
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The identity with these bits, for tests that need to name one.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_u128(bits: u128) -> Self {
        Self(Uuid::from_u128(bits))
    }

    /// Its bits.
    #[doc(hidden)]
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0.as_u128()
    }

    /// Reads an identity as it stands on a row.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// The row's version at acquisition; the next holder's is always higher.
///
/// Hand it to the systems that the work writes to: one that remembers the highest token it saw can refuse a writer
/// whose lease went to somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The token with this value.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The token's number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a row says about its holder, for people: nothing is decided by it.
///
/// Fields will be added: write `..HolderInfo::default()` behind those that you set, and `..` behind those that you match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct HolderInfo {
    /// The Lambda function's name.
    pub function: String,
    /// The Lambda function's version.
    pub version: String,
    /// The invocation's request id.
    pub request_id: String,
    /// The key template as its author wrote it.
    pub template: String,
    /// What the layer's author wrote for people, if anything.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// When the lease was acquired, by the holder's wall clock, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquired_at: Option<u64>,
    /// Whether its work is done, and the key only stays held until a minimum (`hold_at_least`) is over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
}

impl fmt::Display for HolderInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.function.as_str(), self.request_id.as_str()) {
            ("", "") => f.write_str("an unnamed holder"),
            (function, "") => f.write_str(function),
            ("", request) => write!(f, "request {request}"),
            (function, request) => write!(f, "{function} (request {request})"),
        }?;
        if self.parked { f.write_str(", which is done and keeps the key for its `hold_at_least`") } else { Ok(()) }
    }
}
