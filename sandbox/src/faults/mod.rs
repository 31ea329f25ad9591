//! A proxy between the processes and DynamoDB that does what networks and busy services do: it loses, delays and answers
//! wrongly, on demand. It never sends a request twice.
//!
//! Requests pass unchanged until a fault is injected for them. Each is told by what it does to a lock's row, so that a
//! test can say "the reply to the next renewal is lost". A request that is held can be waited for: with it a test stops
//! the world between two steps of the protocol.
//!
//! | file | what it is for |
//! |---|---|
//! | `passing` | what a request is: its step, key and owner |
//! | `fault` | what may happen to it |
//! | `rules` | which requests it happens to, and the handle to watch it |
//! | `connection` | one client's connection |
//! | `forward` | the way to DynamoDB and back |

mod connection;
mod fault;
mod forward;
mod passing;
mod rules;

use std::{
    fmt,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch, task::JoinSet};

pub use self::{
    fault::{Answer, DateHeader, End, Fault},
    passing::{Passing, Step},
    rules::Injected,
};
use self::{forward::Upstream, rules::Rules};
use crate::{Error, task::OwnedRuntime};

/// The proxy; dropping it ends it and every connection through it.
///
/// A sandbox has one where [`SandboxBuilder::fault_proxy`](crate::SandboxBuilder::fault_proxy) asks for it: it is
/// [`Sandbox::faults`](crate::Sandbox::faults), its processes are pointed to it, and its own
/// [`tables`](crate::Sandbox::tables) go past it. The extension's first request is a [`Step::Read`] of a key that is
/// nobody's, to warm the connection.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use leasehold_sandbox::faults::{End, Fault, FaultProxy, Step};
///
/// # async fn example() -> Result<(), leasehold_sandbox::Error> {
/// let proxy = FaultProxy::start("http://127.0.0.1:8000")?;
/// // The next renewal is carried out, but nobody hears of it.
/// let lost = proxy.inject(Step::Renew, 1, Fault::LoseReply(End::Close));
/// // … point a client at `proxy.url()` …
/// let renewal = lost.reached(Duration::from_secs(30)).await?;
/// assert_eq!(renewal.step, Step::Renew);
/// # Ok(())
/// # }
/// ```
pub struct FaultProxy {
    url: String,
    shared: Arc<Shared>,
    /// Threads of its own, so that a test that blocks or pauses its clock delays no request.
    _executor: OwnedRuntime,
}

/// What the connections share.
struct Shared {
    upstream: Upstream,
    rules: Rules,
    seen: Mutex<Vec<Passing>>,
    /// Sent to when every connection is to be cut.
    cuts: watch::Sender<Cut>,
    /// Whether new connections are closed at once.
    refusing: watch::Sender<bool>,
}

/// An order to cut every connection.
#[derive(Debug, Clone, Copy, Default)]
struct Cut {
    /// By a reset, not in good order.
    reset: bool,
}

impl FaultProxy {
    /// Starts a proxy on a port of the loopback interface for the DynamoDB at this URL.
    ///
    /// # Errors
    ///
    /// When the URL is none, or a port or a thread can't be had.
    pub fn start(upstream: &str) -> Result<Self, Error> {
        let upstream = Upstream::new(upstream)?;
        let executor = OwnedRuntime::new("faults").map_err(Error::io("start the fault proxy's threads"))?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(Error::io("listen on the loopback interface"))?;
        let port = listener.local_addr().map_err(Error::io("read the port"))?.port();
        listener.set_nonblocking(true).map_err(Error::io("prepare the fault proxy's port"))?;
        let shared = Arc::new(Shared {
            upstream,
            rules: Rules::default(),
            seen: Mutex::default(),
            cuts: watch::Sender::new(Cut::default()),
            refusing: watch::Sender::new(false),
        });
        executor.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { url: format!("http://127.0.0.1:{port}"), shared, _executor: executor })
    }

    /// Where clients find it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next `times` requests of this step meet the fault.
    ///
    /// Of several that serve for a request, the one that was injected first and is not used up is taken.
    pub fn inject(&self, step: Step, times: usize, fault: Fault) -> Injected {
        self.inject_where(times, move |passing| (passing.step == step).then(|| fault.clone()))
    }

    /// The next `times` requests for which the closure names a fault meet it.
    pub fn inject_where(
        &self,
        times: usize,
        choose: impl Fn(&Passing) -> Option<Fault> + Send + Sync + 'static,
    ) -> Injected {
        self.shared.rules.add(times, Box::new(choose))
    }

    /// Takes every fault away. What is held goes on.
    pub fn clear(&self) {
        self.shared.rules.clear();
    }

    /// The requests that came, in the order in which they came.
    pub fn seen(&self) -> Vec<Passing> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests of this step came.
    pub fn count(&self, step: Step) -> usize {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|p| p.step == step).count()
    }

    /// Cuts every connection that clients have open; requests that were forwarded are carried out.
    pub fn cut_connections(&self) {
        self.shared.cuts.send_replace(Cut { reset: false });
    }

    /// Like [`cut_connections`](Self::cut_connections), but each ends by a reset.
    pub fn reset_connections(&self) {
        self.shared.cuts.send_replace(Cut { reset: true });
    }

    /// Whether new connections are closed at once. Those that are open stay.
    pub fn refuse_connections(&self, refuse: bool) {
        self.shared.refusing.send_replace(refuse);
    }
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultProxy").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Accepts until its executor ends; the connections are tasks of this one.
async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the fault proxy's port can't be used"),
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if !*shared.refusing.borrow() => {
                    connections.spawn(connection::serve(stream, Arc::clone(&shared)));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "the fault proxy could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
