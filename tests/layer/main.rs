//! The layer around a handler, against a keeper that a test plays by hand over a real socket.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers;
mod formats;
mod handle;
mod keeper;
mod loss;
mod modes;
mod order;
mod release;
mod support;
mod transcripts;
mod types;
