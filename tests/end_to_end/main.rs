//! End to end, by what a user can see: function and extension as real processes in the sandbox, a DynamoDB over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod batches;
mod event_sources;
mod extension;
mod holds;
mod http;
mod in_process;
mod inventory;
mod layer;
mod managed;
mod metrics;
mod modes;
mod redeliveries;
mod requests;
mod scenes;
mod scheduled;
mod stage;
mod state;
mod visibility;
