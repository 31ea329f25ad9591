//! What networks and a busy DynamoDB do to each step of a lock: step × fault → the outcome, one named test a cell.
//!
//! Each cell runs the real keeper with the real SDK over HTTP, through a proxy that injects the fault, to an embedded
//! DynamoDB. Nothing is asserted about how long something took: a cell waits for what must come, and looks at rows,
//! versions and at who was told what. `docs/faults.md` has the table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "each test is a crate of its own")]

#[macro_use]
mod cells;

mod acquire;
mod capacity;
mod credentials;
mod kept_alive;
mod park;
mod release;
mod renew;
mod session;
mod stage;
mod state;
#[path = "../support/mod.rs"]
mod support;
mod takeover;
mod wait;
mod weather;

use std::time::Duration;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// The key that every cell is about.
const KEY: &str = "orders:1";
