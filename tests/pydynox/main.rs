//! The row format `pydynox/1` beside the real pydynox: a process of it and a keeper of ours over one table.
//!
//! All of it is ignored unless asked for, since it needs a Python with pydynox:
//!
//! ```text
//! python3 -m venv target/pydynox && target/pydynox/bin/pip install pydynox==1.8.0
//! LEASEHOLD_PYDYNOX_PYTHON=target/pydynox/bin/python \
//!   cargo test --workspace --all-features --test pydynox -- --ignored
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(unreachable_pub, reason = "each test is a crate of its own")]

mod contending;
mod extension;
mod keys;
mod killed;
mod ours;
mod python;
#[allow(dead_code, reason = "this test needs little of it")]
#[path = "../end_to_end/stage.rs"]
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod witness;
