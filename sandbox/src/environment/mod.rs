//! One environment: an actor that owns its processes and decides, from one mailbox, all that happens in it.
//!
//! ```text
//!   pool ──────► Job ─┐                        ┌─ init.rs     start, wait for registrations and Next
//!   handle ────► Order├─► mailbox ─► pump.rs ──┼─ serve.rs    one invocation at a time, freeze between
//!   processes ─► Call ┤              calls.rs  ├─ managed.rs  many at once, never frozen
//!   kernel ────► Exit ┘                        └─ reset.rs    SIGTERM, SIGKILL, SHUTDOWN; vanish
//! ```
//!
//! The flows are written one after the other, as a person would tell them; while one waits, `pump` applies whatever comes
//! in to the state, and the flow looks at the state again.

mod broken;
mod calls;
mod deliver;
mod handle;
mod init;
mod managed;
mod pump;
mod reset;
mod serve;
mod state;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use rustix::process::Signal;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};

pub use self::handle::Environment;
use self::{
    broken::Broken,
    reset::ShutdownEvent,
    state::{Active, Extension, Phase, Registration, Runtime},
};
use crate::{
    EnvironmentId, Error, EventKind, Exit, InvocationError, Process,
    api::{Call, Replier, Server},
    invocation::Job,
    log::Log,
    pool::Pool,
    process::{Registry, Running},
    settings::{Reinit, Settings},
};

/// What an environment's mailbox takes. What belongs to an earlier initialization is dropped.
#[derive(Debug)]
pub(crate) enum Message {
    /// A process asks.
    Call { init: u32, call: Call, replier: Replier },
    /// A streamed response begins.
    FirstByte { init: u32, request_id: String },
    /// A process has ended.
    Exited { init: u32, process: Process, exit: Exit },
    /// An invocation for this environment.
    Job(Job),
    /// A test or the sandbox wants something.
    Order(Order),
}

/// What a handle can ask, each with the line back.
#[derive(Debug)]
pub(crate) enum Order {
    Start(oneshot::Sender<Result<(), InvocationError>>),
    WaitUntilIdle(oneshot::Sender<()>),
    Signal { process: Process, signal: Signal, done: oneshot::Sender<Result<(), Error>> },
    Pid { process: Process, pid: oneshot::Sender<Option<i32>> },
    Freeze(oneshot::Sender<()>),
    Thaw(oneshot::Sender<()>),
    Vanish(oneshot::Sender<()>),
    Shutdown(oneshot::Sender<()>),
}

/// The files and the port of an environment; they outlive a reset.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) tmp: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) port: u16,
}

/// What an actor is made with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: EnvironmentId,
    pub(crate) settings: Arc<Settings>,
    pub(crate) log: Log,
    pub(crate) registry: Registry,
    pub(crate) pool: Arc<Pool>,
    pub(crate) location: Location,
    pub(crate) listener: TcpListener,
    pub(crate) sender: mpsc::UnboundedSender<Message>,
    pub(crate) mailbox: mpsc::UnboundedReceiver<Message>,
}

/// The environment is no more; the flow that learns it ends at once.
#[derive(Debug)]
struct Gone;

/// The actor; `run` is its life.
#[derive(Debug)]
pub(crate) struct Actor {
    id: EnvironmentId,
    settings: Arc<Settings>,
    log: Log,
    registry: Registry,
    pool: Arc<Pool>,
    location: Location,
    listener: Arc<TcpListener>,
    sender: mpsc::UnboundedSender<Message>,
    mailbox: mpsc::UnboundedReceiver<Message>,

    init: u32,
    phase: Phase,
    server: Option<Server>,
    runtime: Runtime,
    extensions: Vec<Extension>,
    frozen: bool,
    vanished: bool,
    /// The sandbox was dropped and has killed the processes.
    dropped: bool,
    /// Why this initialization can't go on, once a process ended or gave up.
    broken: Option<Broken>,
    shutdown: Option<ShutdownEvent>,

    jobs: VecDeque<Job>,
    active: BTreeMap<String, Active>,
    /// Invocations that were answered without their handler, or are long over: a late answer gets 410.
    ended: HashSet<String>,
    starts: Vec<oneshot::Sender<Result<(), InvocationError>>>,
    stops: Vec<oneshot::Sender<()>>,
    idlers: Vec<oneshot::Sender<()>>,
}

impl Actor {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { id, settings, log, registry, pool, location, listener, sender, mailbox } = parts;
        log.push(Some(id), 0, EventKind::EnvironmentCreated { port: location.port });
        Self {
            id,
            settings,
            log,
            registry,
            pool,
            location,
            listener: Arc::new(listener),
            sender,
            mailbox,
            init: 0,
            phase: Phase::Cold,
            server: None,
            runtime: Runtime::default(),
            extensions: Vec::new(),
            frozen: false,
            vanished: false,
            dropped: false,
            broken: None,
            shutdown: None,
            jobs: VecDeque::new(),
            active: BTreeMap::new(),
            ended: HashSet::new(),
            starts: Vec::new(),
            stops: Vec::new(),
            idlers: Vec::new(),
        }
    }

    /// Serves until the environment is shut down or vanishes.
    pub(crate) async fn run(mut self) {
        // Shut down or vanished, it is over either way.
        let _ = if self.settings.is_managed() { self.live_managed().await } else { self.live().await };
        if self.dropped {
            // Nobody is left to tell; callers learn it from the end of their lines.
            return;
        }
        self.close().await;
    }

    /// One piece of work after the other, as a classic function's environment does.
    async fn live(&mut self) -> Result<(), Gone> {
        loop {
            self.pump_until(None, Self::has_work).await?;
            self.tell_idlers();
            if self.broken.is_some() {
                self.reset(crate::ShutdownReason::Failure).await?;
            } else if let Some(job) = self.jobs.pop_front() {
                self.serve(job).await?;
                self.pool.done(self.id);
            } else if !self.starts.is_empty() {
                self.start_up().await?;
            } else if !self.stops.is_empty() {
                return self.end_processes(crate::ShutdownReason::Spindown).await;
            }
        }
    }

    fn has_work(&self) -> bool {
        let asked = !self.starts.is_empty() || !self.stops.is_empty() || !self.idlers.is_empty();
        self.broken.is_some() || !self.jobs.is_empty() || asked
    }

    /// Answers those who wait for the environment to have nothing to do.
    fn tell_idlers(&mut self) {
        if self.broken.is_none() && self.jobs.is_empty() && self.active.is_empty() && self.starts.is_empty() {
            for idler in self.idlers.drain(..) {
                // Nobody may wait for the answer any more.
                let _ = idler.send(());
            }
        }
    }

    /// Ends this initialization's processes; the next one begins over the same files.
    async fn reset(&mut self, reason: crate::ShutdownReason) -> Result<(), Gone> {
        self.end_processes(reason).await?;
        self.push(EventKind::ResetDone);
        if self.settings.reinit == Reinit::AtOnce && self.stops.is_empty() {
            self.start_up().await?;
        }
        Ok(())
    }

    /// Initializes without an invocation.
    async fn start_up(&mut self) -> Result<(), Gone> {
        let result = self.ensure_ready("-").await?;
        if result.is_ok() {
            self.freeze();
        }
        for start in self.starts.drain(..) {
            // Nobody may wait for the answer any more.
            let _ = start.send(result.clone());
        }
        if result.is_err() {
            self.end_processes(crate::ShutdownReason::Failure).await?;
            self.push(EventKind::ResetDone);
        }
        Ok(())
    }

    fn push(&self, kind: EventKind) {
        self.log.push(Some(self.id), self.init, kind);
    }

    fn processes(&self) -> impl Iterator<Item = &Running> {
        self.extensions.iter().filter_map(|extension| extension.running.as_ref()).chain(&self.runtime.running)
    }

    fn process(&self, process: &Process) -> Option<&Running> {
        self.processes().find(|running| running.process == *process)
    }
}
