//! What a test's event asks a handler to do while it holds the lock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lambda_runtime::Error;
use leasehold::{Lease, LeaseLayer};
use serde::{Deserialize, Serialize};

/// A test's event.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Job {
    /// What is locked; without it the handler runs unlocked, where the settings allow that.
    pub(crate) id: Option<String>,
    /// Waits that long.
    #[serde(default)]
    pub(crate) sleep_ms: u64,
    /// Blocks the thread that long, without yielding.
    #[serde(default)]
    pub(crate) spin_ms: u64,
    /// Panics when that is over.
    #[serde(default)]
    pub(crate) panics: bool,
}

/// What the handler answers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) key: Option<String>,
    pub(crate) token: Option<u64>,
}

/// The layer that most of these functions have: keyed by the event's `id`.
pub(crate) fn layer<T>() -> Result<LeaseLayer<T>, Error> {
    Ok(LeaseLayer::builder("jobs:{id}").reserve(Duration::from_millis(200)).build()?)
}

impl Job {
    /// Does the work and looks whether the lease lasted, where there is one.
    pub(crate) async fn run(self, request: &str) -> Result<Done, leasehold::Error> {
        let Some(id) = &self.id else {
            tracing::info!(request, "work without a lock");
            tokio::time::sleep(Duration::from_millis(self.sleep_ms)).await;
            return Ok(Done { key: None, token: None });
        };
        let lease = Lease::current()?;
        let key = lease.key().to_string();
        let token = lease.token().map(leasehold::FencingToken::get);
        tracing::info!(id, key, token, request, at_us = now_us(), "work began");
        tokio::time::sleep(Duration::from_millis(self.sleep_ms)).await;
        spin(Duration::from_millis(self.spin_ms));
        #[allow(clippy::panic, reason = "a handler that panics is what is tested")]
        if self.panics {
            panic!("the test asked for it");
        }
        lease.ensure_held()?;
        tracing::info!(id, key, token, request, at_us = now_us(), "work ended");
        Ok(Done { key: Some(key), token })
    }
}

fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Wall time in microseconds: lines of two processes reach a reader in any order, so each says when it was written.
pub(crate) fn now_us() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
}
