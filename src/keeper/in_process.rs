//! The keeper on a thread of the handler's own process, for where there is no extension.
//!
//! The thread has an executor of its own, so a handler that blocks its executor does not stop renewal. The handler's
//! side speaks the same session lines over a socket pair, so that it does not matter to it where its keeper lives.

mod metrics;

use std::future::Future;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::metrics::Metrics;
use super::any_store::{AnyStore, NoStore};
use super::handle::Keeper;
use super::home::{Home, Peer, SessionId};
use super::meter::Occasion;
use super::shared::KeeperOptions;
use super::standing::Standings;
use crate::clock::{Clock, SystemClock};
use crate::protocol::{Failure, OwnerId};
use crate::session::{CheckAnswer, VersionRange};
use crate::store::{DynamoDb, Store};

/// How many connections may wait for the thread to take them.
const WAITING: usize = 1024;
/// How long the leases get to go back when the last handle is dropped.
const DRAIN: Duration = Duration::from_secs(2);
/// How much longer than that its drop waits for the thread.
const SLACK: Duration = Duration::from_millis(500);

/// How long the connections get to tell their last lines.
const FAREWELL: Duration = Duration::from_millis(100);

/// The keeper that all layers of this process share.
static SHARED: Mutex<Option<Arc<InProcess>>> = Mutex::new(None);

/// A keeper on a thread of its own. Dropping it gives back what is held, for two seconds at most, and ends the thread.
#[derive(Debug)]
pub struct InProcess {
    /// Taken at the drop: the thread ends when nobody can come any more.
    door: Option<mpsc::Sender<UnixStream>>,
    standings: Arc<Standings>,
    ended: Mutex<std_mpsc::Receiver<()>>,
}

impl InProcess {
    /// The one keeper of this process, over DynamoDB as the environment names it, started by the first call and kept for
    /// the process's life.
    ///
    /// # Errors
    ///
    /// When no thread or executor can be had. Whatever is wrong with Region, credentials or endpoint is told in the
    /// answer to an acquisition.
    pub fn shared() -> io::Result<Arc<Self>> {
        Self::shared_with(|| async { Ok(DynamoDb::lazy()) })
    }

    /// The one keeper of this process, started by the first call and kept for the process's life; `make_store` is called
    /// on its thread, and only by the call that starts it.
    ///
    /// # Errors
    ///
    /// When no thread or executor can be had.
    pub fn shared_with<F, S>(make_store: impl FnOnce() -> F + Send + 'static) -> io::Result<Arc<Self>>
    where
        F: Future<Output = Result<S, Failure>>,
        S: Store,
    {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(living) = shared.as_ref().filter(|living| living.is_alive()) {
            return Ok(living.clone());
        }
        let started = Arc::new(Self::start_with(make_store)?);
        *shared = Some(started.clone());
        Ok(started)
    }

    /// A keeper of its own over the store that `make_store` makes, on the keeper's thread. Where it fails, every
    /// acquisition is answered with that failure.
    ///
    /// # Errors
    ///
    /// When no thread or executor can be had.
    pub fn start_with<F, S>(make_store: impl FnOnce() -> F + Send + 'static) -> io::Result<Self>
    where
        F: Future<Output = Result<S, Failure>>,
        S: Store,
    {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let standings = Arc::new(Standings::new(clock.clone()));
        let place = Place::from_env();
        let options = KeeperOptions { managed_instances: place.managed_instances };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (door, visitors) = mpsc::channel(WAITING);
        let (at_end, ended) = std_mpsc::sync_channel::<()>(1);
        let theirs = standings.clone();
        thread::Builder::new().name("leasehold-keeper".to_owned()).spawn(move || {
            // Dropped with the thread, however it ends.
            let _at_end = at_end;
            runtime.block_on(async move {
                let store: Box<dyn AnyStore> = match make_store().await {
                    Ok(store) => Box::new(store),
                    Err(failure) => Box::new(NoStore(failure)),
                };
                let versions = VersionRange::SPOKEN;
                let keeper = Keeper::with_standings(store, clock, Arc::new(place), options, theirs, versions);
                serve_all(keeper, visitors).await;
            });
        })?;
        Ok(Self { door: Some(door), standings, ended: Mutex::new(ended) })
    }

    /// The client's end of a new connection to the keeper, in blocking mode.
    ///
    /// # Errors
    ///
    /// When there are no descriptors left, the keeper's thread is gone, or too many connections wait for it.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        let door = self.door.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        door.try_send(theirs).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => io::Error::from(io::ErrorKind::WouldBlock),
            mpsc::error::TrySendError::Closed(_) => io::Error::other("the keeper's thread has ended"),
        })?;
        Ok(ours)
    }

    /// Is this owner's lease still held? Reads what the keeper knows, without asking its thread.
    #[must_use]
    pub fn check(&self, owner: OwnerId) -> CheckAnswer {
        self.standings.check(owner)
    }

    /// Whether its thread takes connections.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.door.as_ref().is_some_and(|door| !door.is_closed())
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.door = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The answer is always an error: the other end is dropped, or it takes too long.
        let _ = ended.recv_timeout(DRAIN + SLACK);
    }
}

/// Serves whoever comes, until nobody can come any more.
async fn serve_all(keeper: Keeper, mut visitors: mpsc::Receiver<UnixStream>) {
    let peer = Peer { pid: std::process::id() };
    let mut metrics = Metrics::asked_for(&keeper);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            visitor = visitors.recv() => match visitor.map(tokio::net::UnixStream::from_std) {
                Some(Ok(stream)) => {
                    let keeper = keeper.clone();
                    connections.spawn(async move { keeper.serve(stream, peer).await });
                }
                Some(Err(error)) => tracing::error!(%error, "a connection can't be served"),
                None => break,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            Some(metrics) = look(&mut metrics) => metrics.write(Occasion::Pause),
        }
    }
    keeper.drain(DRAIN).await;
    if let Some(metrics) = &metrics {
        metrics.write(Occasion::End);
    }
    keeper.stop();
    // They still tell what there is to tell.
    let _ = timeout(FAREWELL, async { while connections.join_next().await.is_some() {} }).await;
}

/// Waits until metrics are to be looked at; where there are none, nobody waits.
async fn look(metrics: &mut Option<Metrics>) -> Option<&Metrics> {
    let metrics = metrics.as_mut()?;
    metrics.due().await;
    Some(metrics)
}

/// What the process's surroundings mean to a keeper that lives in it.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Whether the environment may freeze as soon as the response is out: nothing holds Next for a thread.
    freezes: bool,
    managed_instances: bool,
}

impl Place {
    fn from_env() -> Self {
        let managed_instances =
            std::env::var_os("AWS_LAMBDA_INITIALIZATION_TYPE").is_some_and(|kind| kind == "lambda-managed-instances");
        let on_lambda = std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some();
        Self { freezes: on_lambda && !managed_instances, managed_instances }
    }
}

impl Home for Place {
    fn may_answer_before_write(&self, _session: SessionId) -> bool {
        !self.freezes
    }
}
