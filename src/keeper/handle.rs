//! The keeper as its home sees it: one cheap handle for connections, shutdown, and what has to be known before a freeze.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::any_store::AnyStore;
use super::connection::{self, Opening};
use super::counts::KeeperCounts;
use super::home::{Home, Peer};
use super::shared::{KeeperOptions, Shared};
use super::standing::Standings;
use super::tasks::Tasks;
use crate::clock::Clock;
use crate::protocol::{Outcome, OwnerId, Request};
use crate::session::{CheckAnswer, VersionRange};
use crate::store::{Lock, Store};

/// Runs the lease protocol for the handlers that connect to it.
///
/// Clones are handles on the same keeper. The leases' tasks belong to it: they outlive the connections that asked for
/// them, for as long as the way back takes, and end when the last handle is dropped.
///
/// # Example
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use leasehold::clock::SystemClock;
/// use leasehold::keeper::{Keeper, KeeperOptions, Peer, PlainHome};
/// use leasehold::store::Store;
/// use tokio::net::UnixListener;
///
/// async fn keep(store: impl Store, listener: UnixListener) -> std::io::Result<()> {
///     let clock = Arc::new(SystemClock::new());
///     let keeper = Keeper::new(store, clock, Arc::new(PlainHome), KeeperOptions::default());
///     while let Ok((stream, _)) = listener.accept().await {
///         let keeper = keeper.clone();
///         tokio::spawn(async move { keeper.serve(stream, Peer { pid: 0 }).await });
///     }
///     let drained = keeper.drain(Duration::from_secs(2)).await;
///     println!("{} leases were freed", drained.released);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Keeper {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) tasks: Tasks,
}

/// What became of the leases at [`Keeper::drain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Rows that were freed.
    pub released: u64,
    /// Rows that were parked, for work that was done.
    pub parked: u64,
    /// Rows that could not be freed: their leases end by themselves.
    pub failed: u64,
    /// Leases that their settings (`on_crash`) leave to end by themselves.
    pub kept: u64,
    /// Acquisitions and leases that were still waiting for the store when the limit was reached.
    pub left: usize,
}

impl Keeper {
    /// A keeper over this store, living in this home.
    pub fn new(store: impl Store, clock: Arc<dyn Clock>, home: Arc<dyn Home>, options: KeeperOptions) -> Self {
        let standings = Arc::new(Standings::new(clock.clone()));
        Self::with_standings(Box::new(store), clock, home, options, standings, VersionRange::SPOKEN)
    }

    /// A keeper whose standings somebody else reads as well, and that serves these session versions.
    pub(super) fn with_standings(
        store: Box<dyn AnyStore>,
        clock: Arc<dyn Clock>,
        home: Arc<dyn Home>,
        options: KeeperOptions,
        standings: Arc<Standings>,
        versions: VersionRange,
    ) -> Self {
        let shared = Arc::new(Shared::new(store, clock, home, options, standings, versions));
        Self { inner: Arc::new(Inner { shared, tasks: Tasks::new() }) }
    }

    /// Draws jitter from this seed from here on, for measurements that are to repeat. Identities go on coming from the
    /// kernel. Not where an environment may be restored from a snapshot: all its clones would wait alike.
    pub fn seed_jitter(&self, seed: u64) {
        self.inner.shared.seed_jitter(seed);
    }

    /// Makes the connection to the store ahead of the first request.
    pub async fn warm_up(&self) {
        self.inner.shared.wire.warm_up().await;
    }

    /// The same where the last answer is so long ago that its connection will not be used again, as after a freeze.
    ///
    /// # Cancellation
    ///
    /// The connection may or may not be there; the next request makes one.
    pub async fn warm_up_after_silence(&self) {
        self.inner.shared.wire.warm_up_after_silence().await;
    }

    /// Serves one connection until its peer closes it, a line can't be served, or the keeper [stops](Self::stop).
    ///
    /// It returns once the handler's side is over; leases may still be on their way back.
    ///
    /// # Cancellation
    ///
    /// The connection is closed, and what it held goes the way of a crash.
    pub async fn serve(&self, stream: UnixStream, peer: Peer) {
        connection::serve(self, stream, peer, |_| {}).await;
    }

    /// Like [`serve`](Self::serve), and tells what the connection is for once its first line says so: a home that runs
    /// short of descriptors can do without all but the sessions.
    ///
    /// # Cancellation
    ///
    /// As for [`serve`](Self::serve).
    pub async fn serve_telling(&self, stream: UnixStream, peer: Peer, opened: impl FnOnce(Opening) + Send) {
        connection::serve(self, stream, peer, opened).await;
    }

    /// What `check` would answer about this owner, without a connection.
    #[must_use]
    pub fn check(&self, owner: OwnerId) -> CheckAnswer {
        self.inner.shared.standings.check(owner)
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> KeeperCounts {
        self.inner.shared.tallies.sum()
    }

    /// How many leases are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.inner.shared.standings.held()
    }

    /// How many writes are decided on or sent, and not answered: of open sessions and of those whose leases are on
    /// their way back.
    #[must_use]
    pub fn writes_in_flight(&self) -> usize {
        self.inner.shared.wire.in_flight()
    }

    /// Waits until no write is in flight, for at most `limit`; call it before the environment may freeze.
    ///
    /// What is unanswered at the limit is given up, as unknown, and its connections are closed: a frozen socket would
    /// deliver it minutes later. Returns how many writes that were. Either way no write is sent for a quarter of a
    /// second from here, unless a session begins, so that nothing slips out between this and the freeze.
    pub async fn quiesce(&self, limit: Duration) -> usize {
        let cut = self.inner.shared.wire.quiesce(limit).await;
        if cut > 0 {
            tracing::warn!(cut, "writes without an answer were given up before the environment could freeze");
        }
        cut
    }

    /// Gives every lease back, each as its `on_crash` says, and answers every acquisition, present and future, that the
    /// keeper is shutting down. All of it happens at once, so that one slow row holds up no other; returns when it is
    /// done, or at `limit`.
    pub async fn drain(&self, limit: Duration) -> Drained {
        let Inner { shared, tasks } = &*self.inner;
        let before = shared.tallies.sum();
        shared.wire.speak();
        shared.closing.send_replace(true);
        let _ = timeout(limit, tasks.all_ended()).await;
        let after = shared.tallies.sum();
        Drained {
            released: after.released - before.released,
            parked: after.parked - before.parked,
            failed: after.release_failures - before.release_failures,
            kept: after.abandoned - before.abandoned,
            left: tasks.live(),
        }
    }

    /// Frees this lock if it is this owner's, for a lease of an earlier keeper. It is sent once.
    pub async fn release_owner(&self, lock: &Lock, owner: OwnerId, limit: Duration) -> Outcome {
        let wire = &self.inner.shared.wire;
        let mut flight = wire.owe();
        // Without the row's version there is no moment known from which it may be swept.
        let request = Request::Release { owners: vec![owner], ttl: None, hold: None };
        wire.send(lock, request, limit, Some(&mut flight), None, std::future::pending()).await.outcome
    }

    /// Closes every connection and ends every task at once, whatever is held: those leases end by themselves. Use
    /// [`drain`](Self::drain) first.
    pub fn stop(&self) {
        let Inner { shared, tasks } = &*self.inner;
        shared.closing.send_replace(true);
        shared.stopping.send_replace(true);
        tasks.abort_all();
    }
}
