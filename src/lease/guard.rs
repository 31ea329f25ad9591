//! A share of a lease for work that outlives the handler's future.

use std::ops::Deref;
use std::sync::Arc;

use super::{Hold, Lease, given_back};
use crate::error::Error;

/// Keeps a lease until it is dropped; see [`Lease::guard`].
///
/// # Cancellation
///
/// Dropping the last one gives the lease back and waits, by blocking, until the keeper has heard of it: some hundred
/// microseconds, 250 ms at most.
#[derive(Clone, Debug)]
#[must_use = "the lease is kept for as long as this is"]
pub struct LeaseGuard {
    lease: Lease,
    /// None in modes in which nothing is kept.
    _hold: Option<Arc<Hold>>,
}

impl LeaseGuard {
    pub(super) const fn new(lease: Lease, hold: Option<Arc<Hold>>) -> Self {
        Self { lease, _hold: hold }
    }
}

impl Deref for LeaseGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl Lease {
    /// Keeps the lease for work that outlives the handler's future: a streaming body, or a spawned task.
    ///
    /// The lease is given back when the handler's future and all guards are gone, and the extension holds the environment
    /// for that long; the response does not wait.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # async fn write_the_report() {}
    /// # async fn f() -> Result<(), Error> {
    /// let guard = Lease::current()?.guard()?;
    /// tokio::spawn(async move {
    ///     write_the_report().await;
    ///     drop(guard);
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoLease`](crate::error::NoLease) when the lease was given back already.
    pub fn guard(&self) -> Result<LeaseGuard, Error> {
        match &self.0.link {
            None => Ok(LeaseGuard::new(self.clone(), None)),
            Some(link) => match link.hold.upgrade() {
                Some(hold) => Ok(LeaseGuard::new(self.clone(), Some(hold))),
                None => Err(given_back()),
            },
        }
    }
}
