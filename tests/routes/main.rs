//! Locks for single routes, over the test double.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test that cannot go on fails")]

mod handler;
mod keys;
mod refusals;
mod runtime;
mod sessions;
mod support;
