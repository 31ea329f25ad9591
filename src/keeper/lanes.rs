//! How many requests of one keeper may be under way to the store at once, and who never waits for whom.
//!
//! Who holds a lease must renew it in time; who wants one can wait, and so can who gives one back. So each has a lane:
//! however many leases are asked for or given back at once, a renewal waits for none of them. And as each request under
//! way has a connection of its own, the bounds keep the keeper from using up its process's descriptors.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::protocol::Request;
use crate::store::StateRequest;

/// Attempts and looks at held rows. DynamoDB answers one in some 5 ms, so that these are 3,000 a second: more than the
/// handlers of one environment can ask for. What is under way also waits for this process's share of a processor, and
/// so do the renewals: where a request takes 14 ms of it, 64 at once make a renewal take a second, and 16 a quarter.
pub(super) const CONTENDING: usize = 16;
/// Renewals. They wait for no release either: one that has no answer keeps its place for as long as a third of its lease,
/// and a lease that goes back may be much longer than one that is still held.
pub(super) const HOLDING: usize = 32;
/// Releases: more of them, for all that is held goes back within two seconds when the environment ends.
pub(super) const LEAVING: usize = 48;

/// What is asked about states. A transaction takes longer than a write of a single item, and nothing of a lease hangs on it.
pub(super) const KEEPING: usize = 16;

/// The lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    contending: Semaphore,
    holding: Semaphore,
    leaving: Semaphore,
    keeping: Semaphore,
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            contending: Semaphore::new(CONTENDING),
            holding: Semaphore::new(HOLDING),
            leaving: Semaphore::new(LEAVING),
            keeping: Semaphore::new(KEEPING),
        }
    }

    /// Waits for room in this request's lane; first come, first served. It takes the room until it is dropped.
    ///
    /// # Cancellation
    ///
    /// The place in the row is given up.
    pub(super) fn enter<'a>(
        &'a self,
        request: &Request,
    ) -> impl Future<Output = Option<SemaphorePermit<'a>>> + use<'a> {
        let lane = match request {
            Request::Renew { .. } => &self.holding,
            Request::Release { .. } | Request::Park { .. } => &self.leaving,
            Request::Acquire { .. } | Request::TakeOver { .. } | Request::Read | Request::Ticket => &self.contending,
        };
        // It only fails for a lane that was closed, and nobody closes one.
        async move { lane.acquire().await.ok() }
    }

    /// The same for what is asked about a state.
    ///
    /// # Cancellation
    ///
    /// The place in the row is given up.
    pub(super) fn enter_with_state<'a>(
        &'a self,
        request: &StateRequest,
    ) -> impl Future<Output = Option<SemaphorePermit<'a>>> + use<'a> {
        let leaves = matches!(request, StateRequest::Write(write) if write.release.is_some());
        let lane = if leaves { &self.leaving } else { &self.keeping };
        async move { lane.acquire().await.ok() }
    }
}
