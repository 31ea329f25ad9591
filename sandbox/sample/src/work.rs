//! What the sample does while it holds the lock: something useful for 100 ms, or one of the ways to go wrong.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

/// One way to spend an invocation, as JSON: `{"sleep_ms": 100}`, `{"spin_ms": 9000}`, `"abort"`, `"exit"`, `"panic"`
/// or `"hang"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// Waits, as a handler that calls others does.
    SleepMs(u64),
    /// Keeps the CPU busy and never yields.
    SpinMs(u64),
    /// Aborts the process, after half a second.
    Abort,
    /// Ends the process with status 1.
    Exit,
    /// Panics.
    Panic,
    /// Never ends.
    Hang,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SleepMs(ms) => write!(f, "sleeps for {ms} ms"),
            Self::SpinMs(ms) => write!(f, "keeps the CPU busy for {ms} ms without yielding"),
            Self::Abort => f.write_str("will abort"),
            Self::Exit => f.write_str("exits"),
            Self::Panic => f.write_str("panics"),
            Self::Hang => f.write_str("never ends"),
        }
    }
}

impl Work {
    /// The work that an event, or else the environment, asks for.
    pub(crate) fn of(event: &Value) -> Result<Self, serde_json::Error> {
        if let Some(work) = event.pointer("/detail/work") {
            return Self::deserialize(work);
        }
        let body = event.pointer("/Records/0/body").or_else(|| event.get("body")).and_then(Value::as_str);
        let body: Option<Value> = body.and_then(|body| serde_json::from_str(body).ok());
        if let Some(work) = body.as_ref().and_then(|body| body.get("work")) {
            return Self::deserialize(work);
        }
        match std::env::var("SAMPLE_WORK") {
            Ok(work) => serde_json::from_str(&work),
            Err(_) => Ok(Self::SleepMs(100)),
        }
    }

    /// Does it.
    pub(crate) async fn run(self) {
        match self {
            Self::SleepMs(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Self::SpinMs(ms) => {
                let end = Instant::now() + Duration::from_millis(ms);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            Self::Abort => {
                tokio::time::sleep(Duration::from_millis(500)).await;
                std::process::abort()
            }
            Self::Exit => std::process::exit(1),
            #[allow(clippy::panic, reason = "this is the sample's way to show a panic")]
            Self::Panic => panic!("the sample was asked to panic"),
            Self::Hang => std::future::pending().await,
        }
    }
}

/// Wall time in microseconds: lines of two processes reach a reader in any order, so each says when it was written.
pub(crate) fn now_us() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
}
