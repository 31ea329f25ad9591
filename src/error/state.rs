//! What can go wrong with a state that one holder leaves for the next.

use thiserror::Error;

use crate::key::LockKey;

/// The state is longer than what is kept. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the state for `{key}` has {bytes} bytes of JSON, and at most {limit} are kept: leave less, or put it elsewhere (S3, \
     a table of your own) and leave where it is"
)]
#[non_exhaustive]
pub struct StateTooLarge {
    /// What is locked.
    pub key: LockKey,
    /// How long it is.
    pub bytes: usize,
    /// How long it may be.
    pub limit: usize,
}

/// The state's arrays and objects lie deeper within each other than JSON is read. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the state for `{key}` has arrays and objects {depth} deep within each other, and could not be read again: at most \
     {limit} are kept; leave it flatter, or as a text that holds its JSON"
)]
#[non_exhaustive]
pub struct StateTooDeep {
    /// What is locked.
    pub key: LockKey,
    /// How deep it goes.
    pub depth: usize,
    /// How deep it may go.
    pub limit: usize,
}

/// The lock can have no state. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the lock `{key}` can have no state: {reason}")]
#[non_exhaustive]
pub struct StateUnsupported {
    /// What is locked.
    pub key: LockKey,
    /// Why, and what to change.
    pub reason: String,
}

/// The state is no JSON, or what was left is no value of the type that was asked for.
#[derive(Debug, Error)]
#[error(
    "the state of `{key}` is not what the handler takes it for: {source}; if the type has changed, give new fields a \
     `#[serde(default)]`, or read it as `serde_json::Value`"
)]
#[non_exhaustive]
pub struct StateNotSerialized {
    /// What is locked.
    pub key: LockKey,
    /// What is wrong with it.
    pub source: serde_json::Error,
}

/// Whether the state was written is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("whether the state of `{key}` was saved is not known: {reason}; read it again, or save it once more")]
#[non_exhaustive]
pub struct StateUnconfirmed {
    /// What is locked.
    pub key: LockKey,
    /// Why, for people.
    pub reason: String,
}
