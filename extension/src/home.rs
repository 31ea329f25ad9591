//! The extension as the keeper's home: the hold on Next and the journal, behind one lock each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::clock::{Clock, Mono};
use leasehold::keeper::{Home, Peer, SessionId};
use leasehold::protocol::OwnerId;
use leasehold::store::Lock;
use tokio::sync::watch;

use crate::hold::{Hold, Step};
use crate::journal::Journal;

/// How many lost leases are kept at most until somebody asks: a layer tells fewer.
const MOST_DISBELIEVED: usize = 1024;

/// Where the keeper lives.
#[derive(Debug)]
pub struct ExtensionHome {
    hold: Mutex<Hold>,
    /// Sent after every event that may change what is to be done.
    changed: watch::Sender<()>,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    freezes: bool,
    /// Since when Next is held for nobody's work, in an invocation: its beginning, or the end of the last session.
    idle_since: Mutex<Option<Mono>>,
    /// What the handler's process lost with an earlier extension, until the recovery has heard of it.
    disbelieved: Mutex<Vec<OwnerId>>,
    /// Whether it was told that an invocation began no session.
    told_in_vain: AtomicBool,
}

impl ExtensionHome {
    /// A home with this journal; `freezes` where the environment freezes once everybody has called Next.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, journal: Arc<Journal>, freezes: bool) -> Self {
        Self {
            hold: Mutex::default(),
            changed: watch::Sender::new(()),
            journal,
            clock,
            freezes,
            idle_since: Mutex::default(),
            disbelieved: Mutex::default(),
            told_in_vain: AtomicBool::new(false),
        }
    }

    /// Whether the environment freezes once everybody has called Next.
    #[must_use]
    pub const fn freezes(&self) -> bool {
        self.freezes
    }

    /// Hears of every event from here on that may change what is to be done.
    #[must_use]
    pub fn events(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// This moment, on the clock that the hold counts by.
    #[must_use]
    pub fn now(&self) -> Mono {
        self.clock.now().mono
    }

    /// Lambda announced an invocation.
    pub fn invoked(&self, request_id: String, deadline_ms: u64) {
        let now = self.clock.now();
        *self.idle_since() = Some(now.mono);
        self.change(|hold| hold.handle_invoke(now, request_id, deadline_ms));
    }

    /// For how long Next was held after the handler's side of the invocation was over; `None` where there was none. Asked
    /// when Next is called.
    pub fn held_next(&self) -> Option<Duration> {
        let since = self.idle_since().take()?;
        self.freezes.then(|| self.now().since(since))
    }

    fn idle_since(&self) -> MutexGuard<'_, Option<Mono>> {
        self.idle_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writes in flight were awaited, or given up.
    pub fn settled_writes(&self) {
        self.hold().handle_settled();
    }

    /// What is to be done before Next.
    pub fn step(&self) -> Step {
        let now = self.now();
        let (step, in_vain) = {
            let mut hold = self.hold();
            (hold.poll(now), hold.take_in_vain())
        };
        if in_vain && !self.told_in_vain.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "an invocation began no session with the extension, which held the environment for 50 ms to see whether one \
                 comes; where only some routes take a lock, put `RouteLayer::session()` around the whole router: \
                 `.layer(lease.session())`. This is told once"
            );
        }
        step
    }

    fn change(&self, event: impl FnOnce(&mut Hold)) {
        event(&mut self.hold());
        self.changed.send_replace(());
    }

    /// The leases that the handler's process said it lost with an earlier extension, each told once.
    pub fn take_disbelieved(&self) -> Vec<OwnerId> {
        std::mem::take(&mut *self.disbelieved())
    }

    fn disbelieved(&self) -> MutexGuard<'_, Vec<OwnerId>> {
        self.disbelieved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home for ExtensionHome {
    fn hello(&self) {
        self.change(Hold::handle_hello);
    }

    fn session_began(&self, session: SessionId, request_id: &str) {
        self.change(|hold| hold.handle_began(session, request_id));
    }

    fn session_ended(&self, session: SessionId, _request_id: &str) {
        let now = self.now();
        if let Some(since) = &mut *self.idle_since() {
            *since = now;
        }
        self.change(|hold| hold.handle_ended(session));
    }

    fn may_answer_before_write(&self, session: SessionId) -> bool {
        !self.freezes || self.hold().is_held_for(session)
    }

    fn attempt(&self, peer: Peer, lock: &Lock, owner: OwnerId, keep_on_crash: bool) {
        if !keep_on_crash {
            self.journal.note(peer.pid, lock, owner);
        }
    }

    fn lease_asked(&self, session: SessionId, lease: Duration) {
        self.change(|hold| hold.handle_lease(session, lease));
    }

    fn no_longer_believed(&self, owners: &[OwnerId]) {
        let mut disbelieved = self.disbelieved();
        let room = MOST_DISBELIEVED.saturating_sub(disbelieved.len());
        disbelieved.extend(owners.iter().copied().take(room));
        drop(disbelieved);
        self.changed.send_replace(());
    }

    fn settled(&self, owner: OwnerId) {
        self.journal.settle(owner);
    }
}
