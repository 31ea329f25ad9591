//! The lines that wait to be written to one connection: put in by whoever has something to tell, taken out by the
//! connection's own task, bounded in bytes.
//!
//! Telling never waits: a peer that does not read must not hold up a renewal. At the bound the outbox overflows, and
//! its connection is closed.

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;

use crate::session::{FromKeeper, encode};

/// How many bytes may wait; what the socket itself buffers comes on top.
pub(super) const MAX_WAITING: usize = 256 * 1024;

/// Lines on their way out.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    overflowed: bool,
}

impl Outbox {
    /// Puts a line in.
    pub(super) fn tell(&self, line: &FromKeeper) {
        // Texts are cut to size where they are made, so every line fits; one that did not would be told as nothing,
        // which who waits for it takes for a keeper that vanished.
        let encoded = encode(line);
        let mut waiting = self.waiting();
        match encoded {
            Ok(bytes) if waiting.bytes.len() + bytes.len() <= MAX_WAITING => waiting.bytes.extend_from_slice(&bytes),
            Ok(_) | Err(_) => waiting.overflowed = true,
        }
        self.changed.notify_one();
    }

    /// Wakes who writes, to look at what else has changed.
    pub(super) fn nudge(&self) {
        self.changed.notify_one();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting().bytes.is_empty()
    }

    /// Waits until something is there, or somebody nudges, and writes what the socket takes.
    ///
    /// # Errors
    ///
    /// When the connection fails, or too much waits.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: what was written is taken out at once.
    pub(super) async fn write(&self, socket: &OwnedWriteHalf) -> io::Result<()> {
        if self.is_empty() && !self.waiting().overflowed {
            self.changed.notified().await;
        }
        if self.waiting().overflowed {
            return Err(io::Error::other("the peer does not read: too many lines wait for it"));
        }
        if self.is_empty() {
            return Ok(());
        }
        socket.writable().await?;
        let mut waiting = self.waiting();
        match socket.try_write(&waiting.bytes) {
            Ok(written) => {
                waiting.bytes.drain(..written);
                if waiting.bytes.is_empty() {
                    waiting.bytes = Vec::new();
                }
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
