//! Gates that a test opens by making a file in the environment's `/tmp`.

use std::path::PathBuf;
use std::time::Duration;

/// How often a closed gate is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The gate of this name: closed until the file is there.
#[derive(Clone, Debug)]
pub(crate) struct Gate(PathBuf);

impl Gate {
    /// The gate `name` of the invocation that its test calls `of`.
    pub(crate) fn new(of: &str, name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("{of}.{name}")))
    }

    /// Waits until it is open.
    pub(crate) async fn passed(self) {
        while !self.0.exists() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Blocks until it is open, as a handler does that never yields. Other invocations of the process go on.
    pub(crate) fn passed_without_yielding(&self) {
        tokio::task::block_in_place(|| {
            while !self.0.exists() {
                std::thread::sleep(LOOK);
            }
        });
    }
}
