//! Function and extension as real processes that are killed, stopped and aborted, at every step of an invocation; and
//! the other ways in which processes, their clocks and their files fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cell;
mod clocks;
mod extension_aborted;
mod extension_killed;
mod extension_stopped;
mod freezes;
mod handler_aborted;
mod handler_ends;
mod handler_killed;
mod handler_stopped;
mod managed;
mod next;
mod play;
mod shutdown;
mod stage;
mod steps;
mod timeouts;
mod tmp;
