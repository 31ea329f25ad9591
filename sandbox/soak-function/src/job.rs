//! What an event asks the soak's function to do.

use std::{thread, time::Duration};

use serde::Deserialize;

use crate::Failure;

/// An event of the soak.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    /// After how many pieces of work it is done.
    pub(crate) slices: u32,
    /// How long each takes.
    slice_ms: u64,
    /// Whether it blocks its thread instead of waiting.
    #[serde(default)]
    block: bool,
    /// What it does in the end.
    #[serde(default)]
    end: End,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    /// Answers.
    #[default]
    Answer,
    /// Fails.
    Error,
    /// Panics.
    Panic,
    /// Aborts the process.
    Abort,
    /// Ends the process with status 1.
    Exit,
    /// Never ends.
    Hang,
}

impl Job {
    /// One piece of work.
    pub(crate) async fn work(&self) {
        let time = Duration::from_millis(self.slice_ms);
        if self.block { thread::sleep(time) } else { tokio::time::sleep(time).await }
    }

    /// The end that it takes.
    pub(crate) async fn end(&self) -> Result<(), Failure> {
        match self.end {
            End::Answer => Ok(()),
            End::Error => Err(Failure::Asked),
            #[allow(clippy::panic, reason = "a handler's panic is one of the soak's faults")]
            End::Panic => panic!("the soak asked for a panic"),
            End::Abort => std::process::abort(),
            End::Exit => std::process::exit(1),
            End::Hang => std::future::pending().await,
        }
    }
}
