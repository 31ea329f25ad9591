//! The extension seen from outside: against an Extensions API that misbehaves, and with sessions and a DynamoDB.
//!
//! Every wait is for an event, with a limit that only a defect reaches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod bad_input;
mod crowd;
mod extension;
mod fake_api;
mod holding;
mod life;
mod next;
mod python;
mod registration;
mod session;
mod shutdown;

#[path = "../../../tests/bad_input/table.rs"]
#[allow(unreachable_pub, reason = "other packages' tests share it")]
mod table;

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What has to happen; that it did not shows only after a long time.
async fn soon<F: Future>(happens: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), happens).await.expect("it did not happen")
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}
