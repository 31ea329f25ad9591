//! Leases for programs without an async runtime: scripts, cron jobs, build machines.

use std::ops::Deref;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Handle, Runtime};

use super::by_hand::Leasehold;
use super::held_lease::HeldLease;
use super::inspect::KeyState;
use crate::error::{BlockingInAsync, Error, KeeperGone};
use crate::lease::{Lease, LeaseMetrics};

impl Leasehold {
    /// [`acquire`](Self::acquire) for a program without an async runtime: it blocks until the lease is there, or will not
    /// be.
    ///
    /// The keeper renews the lease, in a process or on a thread of its own, whatever the program does meanwhile.
    ///
    /// ```no_run
    /// use std::process::Command;
    /// use std::time::Duration;
    ///
    /// use leasehold::Leasehold;
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let locks = Leasehold::builder().table("locks").build()?;
    ///     let lease = locks.acquire_blocking("exports:nightly", Duration::from_secs(60))?;
    ///     Command::new("/opt/reports/export").status()?;
    ///     lease.ensure_held()?; // before a step that can't be taken back
    ///     lease.release()?; // a drop gives it back as well
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`BlockingInAsync`] within an async runtime, whose tasks it would hold up.
    pub fn acquire_blocking(&self, key: impl Into<String>, wait: Duration) -> Result<BlockingLease, Error> {
        let runtime = runtime("acquire_blocking", "acquire")?;
        let lease = runtime.block_on(self.acquire(key, wait))?;
        Ok(BlockingLease::new(lease, runtime))
    }

    /// [`try_acquire`](Self::try_acquire) for a program without an async runtime.
    ///
    /// # Errors
    ///
    /// As [`acquire_blocking`](Self::acquire_blocking), but for `LeaseBusy`.
    pub fn try_acquire_blocking(&self, key: impl Into<String>) -> Result<Option<BlockingLease>, Error> {
        let runtime = runtime("try_acquire_blocking", "try_acquire")?;
        let lease = runtime.block_on(self.try_acquire(key))?;
        Ok(lease.map(|lease| BlockingLease::new(lease, runtime)))
    }

    /// [`inspect`](Self::inspect) for a program without an async runtime.
    ///
    /// # Errors
    ///
    /// As [`inspect`](Self::inspect); [`BlockingInAsync`] within an async runtime.
    pub fn inspect_blocking(&self, key: impl Into<String>) -> Result<KeyState, Error> {
        runtime("inspect_blocking", "inspect")?.block_on(self.inspect(key))
    }
}

/// A lease that was taken by blocking code: it is kept until it is released or dropped.
///
/// It is a [`Lease`] to ask: [`ensure_held`](Lease::ensure_held) before steps that can't be taken back, the fencing token.
/// It may go to another thread, and be dropped anywhere. What is async of a [`Lease`] blocks here.
///
/// A drop gives the lease back and waits until the row is free, 5 s at most. A drop by a panic is a crash: `on_crash`
/// decides. Nothing is dropped where the process is killed, or ends by [`std::process::exit`]: with the extension's keeper
/// the lease is freed all the same, with one on a thread of this process it ends by itself.
#[must_use = "the lease is kept for as long as this is"]
#[derive(Debug)]
pub struct BlockingLease {
    lease: Lease,
    held: Option<HeldLease>,
    /// Dropped after the lease, whose connection is registered with it.
    runtime: Option<Runtime>,
}

/// How long a drop waits until the row is free: a request may take this long.
const DROP_WITHIN: Duration = Duration::from_secs(5);

impl BlockingLease {
    fn new(held: HeldLease, runtime: Runtime) -> Self {
        if let Some(hold) = &held.hold {
            hold.frees_row_within(DROP_WITHIN);
        }
        Self { lease: held.lease.clone(), held: Some(held), runtime: Some(runtime) }
    }

    /// Gives the lease back and waits, by blocking, until the row is free.
    ///
    /// # Errors
    ///
    /// As [`HeldLease::release`].
    pub fn release(mut self) -> Result<(), Error> {
        self.held.take().map_or(Ok(()), HeldLease::release_blocking)
    }

    /// [`Lease::state`], by blocking.
    ///
    /// # Errors
    ///
    /// As [`Lease::state`]; [`BlockingInAsync`] within an async runtime.
    pub fn state<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        self.block_on("BlockingLease::state", "Lease::state", self.lease.state())
    }

    /// [`Lease::save_state`], by blocking.
    ///
    /// # Errors
    ///
    /// As [`Lease::save_state`]; [`BlockingInAsync`] within an async runtime.
    pub fn save_state<T: Serialize + ?Sized>(&self, state: &T) -> Result<(), Error> {
        self.block_on("BlockingLease::save_state", "Lease::save_state", self.lease.save_state(state))
    }

    /// [`Lease::clear_state`], by blocking.
    ///
    /// # Errors
    ///
    /// As [`Lease::clear_state`]; [`BlockingInAsync`] within an async runtime.
    pub fn clear_state(&self) -> Result<(), Error> {
        self.block_on("BlockingLease::clear_state", "Lease::clear_state", self.lease.clear_state())
    }

    /// [`Lease::metrics`], by blocking.
    ///
    /// # Errors
    ///
    /// As [`Lease::metrics`]; [`BlockingInAsync`] within an async runtime.
    pub fn metrics(&self) -> Result<LeaseMetrics, Error> {
        self.block_on("BlockingLease::metrics", "Lease::metrics", self.lease.metrics())
    }

    /// Waits with the executor that the lease was taken with.
    fn block_on<T: Default>(
        &self,
        called: &'static str,
        instead: &'static str,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        outside_of_async(called, instead)?;
        // It is there for as long as this is.
        self.runtime.as_ref().map_or_else(|| Ok(T::default()), |runtime| runtime.block_on(answer))
    }
}

impl Deref for BlockingLease {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl Drop for BlockingLease {
    fn drop(&mut self) {
        drop(self.held.take());
        // Within an async runtime the drop of another one would panic; there is nothing in it to wait for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// An executor for one session: it only runs while something is waited for.
fn runtime(called: &'static str, instead: &'static str) -> Result<Runtime, Error> {
    outside_of_async(called, instead)?;
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| KeeperGone { reason: format!("no executor could be made to reach it: {error}") }.into())
}

fn outside_of_async(called: &'static str, instead: &'static str) -> Result<(), BlockingInAsync> {
    match Handle::try_current() {
        Ok(_) => Err(BlockingInAsync { called, instead }),
        Err(_) => Ok(()),
    }
}
