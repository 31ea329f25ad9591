//! Everything that can come in wrong, as one table: place × input → the error's stable name, what its message says to
//! change, and how many requests it took to find out.
//!
//! Each place has a module with its rows and with what runs one. Where a handler is involved it is a real layer over a
//! real socket; the keeper behind it is real, too, and its store is the SDK's, but for the lines that no keeper says. What
//! the Extensions API can answer has its rows in the extension's own tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "each test is a crate of its own")]

mod by_hand;
mod dynamodb;
mod events;
mod from_keeper;
mod requests;
mod rows;
mod settings;
mod stage;
mod table;
mod templates;
mod to_keeper;

#[allow(dead_code, reason = "this test needs little of it")]
#[path = "../layer/support.rs"]
mod played;
#[path = "../support/mod.rs"]
mod support;
