//! End to end, by what a user can see: function and extension as real processes in the sandbox, a DynamoDB over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod batches;
mod extension;
mod in_process;
mod layer;
mod managed;
mod scenes;
mod scheduled;
mod stage;
