//! The tasks of a keeper's leases: each has this one owner, and none outlives it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;

/// Tasks that end by themselves, or when this is dropped.
#[derive(Debug)]
pub(super) struct Tasks {
    set: Mutex<JoinSet<()>>,
    live: Arc<watch::Sender<usize>>,
}

impl Tasks {
    pub(super) fn new() -> Self {
        Self { set: Mutex::default(), live: Arc::new(watch::Sender::new(0)) }
    }

    /// Starts a task on the runtime that this is called on.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let alive = Alive::new(self.live.clone());
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = set.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!(%error, "a lease's task failed");
            }
        }
        set.spawn(async move {
            let _alive = alive;
            task.await;
        });
    }

    /// How many have not ended.
    pub(super) fn live(&self) -> usize {
        *self.live.borrow()
    }

    /// Waits until all have ended.
    pub(super) async fn all_ended(&self) {
        // It only fails once the sender is gone, and this is the sender.
        let _ = self.live.subscribe().wait_for(|live| *live == 0).await;
    }

    /// Ends them, wherever they are.
    pub(super) fn abort_all(&self) {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

/// Counts a task for as long as it lives.
#[derive(Debug)]
struct Alive(Arc<watch::Sender<usize>>);

impl Alive {
    fn new(live: Arc<watch::Sender<usize>>) -> Self {
        live.send_modify(|live| *live += 1);
        Self(live)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.send_modify(|live| *live -= 1);
    }
}
