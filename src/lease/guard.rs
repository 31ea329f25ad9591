//! A share of a lease for work that outlives the handler's future.

use std::ops::Deref;
use std::sync::Arc;

use super::{Hold, Lease};

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
