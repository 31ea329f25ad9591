//! The command line as an operator types it: the real program, as a process, on an embedded DynamoDB.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod accounts;
mod checking;
mod creating;
mod crowd;
mod doctoring;
mod freeing;
mod listing;
mod pty;
mod reaching;
mod reporting;
mod showing;
mod stage;
mod stand_in;
mod verifying;
mod watching;
