//! What all sessions and leases of one keeper share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::any_store::AnyStore;
use super::entropy::KeeperEntropy;
use super::home::{Home, SessionId};
use super::queue::Queues;
use super::standing::Standings;
use super::tally::Tallies;
use super::wire::Wire;
use crate::clock::{Clock, Now};
use crate::protocol::{Context, Epoch, Observations, ServerTime};
use crate::session::VersionRange;

/// How a keeper differs from place to place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeeperOptions {
    /// Whether this is Lambda Managed Instances: a deadline ends no handler there, so none ends a lease either.
    pub managed_instances: bool,
}

/// Everything but the tasks.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) home: Arc<dyn Home>,
    pub(super) options: KeeperOptions,
    /// The session versions that are served.
    pub(super) versions: VersionRange,
    pub(super) wire: Wire,
    pub(super) tallies: Tallies,
    pub(super) standings: Arc<Standings>,
    pub(super) queues: Arc<Queues>,
    /// Set when no new lease is given and every held one goes back.
    pub(super) closing: watch::Sender<bool>,
    /// Set when every connection is to be closed.
    pub(super) stopping: watch::Sender<bool>,
    memory: Mutex<Memory>,
    sessions: AtomicU64,
}

/// What the machines remember across leases. Held locked around a single call of a machine, never across an await.
#[derive(Debug)]
struct Memory {
    server_time: ServerTime,
    observations: Observations,
    entropy: KeeperEntropy,
}

impl Shared {
    pub(super) fn new(
        store: Box<dyn AnyStore>,
        clock: Arc<dyn Clock>,
        home: Arc<dyn Home>,
        options: KeeperOptions,
        standings: Arc<Standings>,
        versions: VersionRange,
    ) -> Self {
        let tallies = Tallies::default();
        Self {
            wire: Wire::new(store, clock.clone(), tallies.of_no_lease.clone()),
            queues: Arc::new(Queues::new(clock.clone())),
            clock,
            home,
            options,
            versions,
            tallies,
            standings,
            closing: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
            memory: Mutex::new(Memory {
                server_time: ServerTime::new(),
                observations: Observations::new(),
                entropy: KeeperEntropy::default(),
            }),
            sessions: AtomicU64::new(0),
        }
    }

    /// Both clocks.
    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    /// A session begins: the environment runs, and answers to earlier requests say nothing to it.
    pub(super) fn begin(&self) -> (SessionId, Epoch) {
        self.wire.speak();
        let epoch = self.memory().server_time.begin();
        (SessionId(self.sessions.fetch_add(1, Ordering::Relaxed) + 1), epoch)
    }

    /// Calls a machine with the keeper's state around one event.
    pub(super) fn with_context<T>(&self, call: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let mut memory = self.memory();
        let Memory { server_time, observations, entropy } = &mut *memory;
        // Read under the lock, so that the machines see time in one order.
        let now = self.clock.now();
        let client_is_warm = self.wire.is_warm(now);
        call(&mut Context { now, server_time, observations, entropy, client_is_warm })
    }

    pub(super) fn seed_jitter(&self, seed: u64) {
        self.memory().entropy.seed_jitter(seed);
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a flag is set; forever, if nobody is left to set it.
pub(super) async fn set(flag: &mut watch::Receiver<bool>) {
    if flag.wait_for(|is_set| *is_set).await.is_err() {
        std::future::pending::<()>().await;
    }
}
