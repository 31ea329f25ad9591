//! Function and extension as real processes that are killed, stopped and aborted, at every step of an invocation; and
//! the other ways in which processes, their clocks and their files fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cell;
mod extension_aborted;
mod extension_killed;
mod extension_stopped;
mod handler_aborted;
mod handler_killed;
mod handler_stopped;
mod next;
mod stage;
mod steps;
