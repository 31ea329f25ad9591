//! Rows that others wrote or broke, and tables and permissions that are not as they must be: each is answered by a typed
//! error that names what is wrong and what to do, nothing is overwritten or stolen, and nothing is asked for twice.
//!
//! A real layer, a real keeper behind its socket and the SDK's store; the rows and tables are in an embedded DynamoDB, and
//! what that one never answers is injected.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "each test is a crate of its own")]

mod foreign;
mod fractions;
mod items;
mod ours;
mod permissions;
mod sizes;
mod tables;
mod turned;

#[allow(dead_code, reason = "this test needs little of it")]
#[path = "../layer/support.rs"]
mod played;
#[allow(dead_code, reason = "this test needs little of it")]
#[path = "../bad_input/stage.rs"]
mod stage;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "this test needs little of it")]
#[path = "../bad_input/table.rs"]
mod table;
