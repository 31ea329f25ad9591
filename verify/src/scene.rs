//! What the handler does under the lock: work, or one of the ways in which handlers go wrong.

use std::fmt;
use std::hint::{black_box, spin_loop};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// How much is taken at a time by who takes all memory.
const CHUNK: usize = 4 << 20;

/// A scene of `leaseholdctl verify`, as its holder plays it. Whoever waits for the holder's lock plays `contend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scene {
    /// Works, as a handler that calls others does.
    Contend,
    /// Works like it; the environment is frozen afterwards.
    Thaw,
    /// Keeps the processor busy and never yields.
    Spin,
    /// Aborts its process.
    Abort,
    /// Runs into the function's timeout.
    Timeout,
    /// Runs into it as well, and does not end on SIGTERM.
    SigtermIgnored,
    /// Takes memory until there is none.
    OutOfMemory,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Contend => "contend",
            Self::Thaw => "thaw",
            Self::Spin => "spin",
            Self::Abort => "abort",
            Self::Timeout => "timeout",
            Self::SigtermIgnored => "sigterm-ignored",
            Self::OutOfMemory => "out-of-memory",
        })
    }
}

impl Scene {
    /// Plays it.
    pub(crate) async fn play(self, hold: Duration) {
        match self {
            Self::Contend | Self::Thaw => sleep(hold).await,
            Self::Spin => spin(hold),
            Self::Abort => {
                sleep(hold).await;
                std::process::abort();
            }
            Self::Timeout => std::future::pending().await,
            Self::SigtermIgnored => {
                ignore_sigterm();
                std::future::pending().await
            }
            Self::OutOfMemory => {
                sleep(hold).await;
                take_all_memory();
            }
        }
    }
}

fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        spin_loop();
    }
}

/// With a handler of its own for it, the process lives on after SIGTERM, until it is killed.
fn ignore_sigterm() {
    match signal(SignalKind::terminate()) {
        Ok(mut terms) => drop(tokio::spawn(async move {
            while terms.recv().await.is_some() {
                tracing::info!("SIGTERM ignored");
            }
        })),
        Err(error) => tracing::error!(%error, "SIGTERM can't be ignored"),
    }
}

/// Every page is written, so that it is really there. Ends at four times what the function has: where nobody limits memory,
/// the scene is to fail and not the machine.
fn take_all_memory() {
    let told = std::env::var("AWS_LAMBDA_FUNCTION_MEMORY_SIZE").ok().and_then(|mb| mb.parse::<usize>().ok());
    let most = told.unwrap_or(128) * 4 * (1 << 20) / CHUNK;
    let mut taken = Vec::new();
    for number in 0..most {
        taken.push(vec![u8::try_from(number % 251).unwrap_or_default() | 1; CHUNK]);
        black_box(&taken);
    }
}
