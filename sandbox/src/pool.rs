//! The environments of a sandbox: which one takes an invocation, when a new one is made, who waits.

use std::{
    collections::VecDeque,
    net::Ipv4Addr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{net::TcpListener, runtime, sync::mpsc};

use crate::{
    EnvironmentId, Error, EventKind, InvocationError, Overflow,
    environment::{Actor, Location, Message, Parts},
    invocation::Job,
    log::Log,
    process::Registry,
    settings::Settings,
};

/// The longest path a Unix socket may have, with some room for the operating systems' differences.
const LONGEST_SOCKET_PATH: usize = 100;

/// Shared by the sandbox, its environments and the handles on them.
#[derive(Debug)]
pub(crate) struct Pool {
    settings: Arc<Settings>,
    log: Log,
    registry: Registry,
    root: PathBuf,
    executor: runtime::Handle,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: Vec<Slot>,
    waiting: VecDeque<Job>,
    closed: bool,
}

#[derive(Debug)]
struct Slot {
    sender: mpsc::UnboundedSender<Message>,
    location: Location,
    assigned: usize,
    ended: bool,
}

impl Pool {
    pub(crate) fn new(
        settings: Arc<Settings>,
        log: Log,
        registry: Registry,
        root: PathBuf,
        executor: runtime::Handle,
    ) -> Self {
        Self { settings, log, registry, root, executor, state: Mutex::default() }
    }

    /// Gives the job to the first environment with room, to a new one, or lets it wait or fail.
    pub(crate) fn submit(self: &Arc<Self>, job: Job) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return self.refuse(job, "Sandbox.Stopped", "the sandbox was shut down");
        }
        if let Some(index) = self.with_room(&state) {
            return self.assign(&mut state, index, job);
        }
        if state.living() < self.settings.environments {
            match self.create(&mut state) {
                Ok(index) => self.assign(&mut state, index, job),
                Err(error) => {
                    drop(state);
                    self.refuse(job, "Sandbox.EnvironmentFailed", &error.to_string());
                }
            }
            return;
        }
        match self.settings.overflow {
            Overflow::Queue => {
                self.log.push(None, 0, EventKind::InvocationQueued { request_id: job.request_id().to_owned() });
                state.waiting.push_back(job);
            }
            Overflow::Throttle => {
                drop(state);
                self.refuse(job, "TooManyRequestsException", "Rate Exceeded.");
            }
        }
    }

    /// Gives the job to this environment, however busy it is.
    pub(crate) fn submit_to(self: &Arc<Self>, id: EnvironmentId, job: Job) {
        let mut state = self.lock();
        match self.slot(&mut state, id) {
            Ok(index) => self.assign(&mut state, index, job),
            Err(error) => {
                drop(state);
                self.refuse(job, "Sandbox.EnvironmentEnded", &error.to_string());
            }
        }
    }

    /// An environment has finished an invocation; the next one that waits may have its place.
    pub(crate) fn done(&self, id: EnvironmentId) {
        let mut state = self.lock();
        if let Some(slot) = state.slots.get_mut(id.0) {
            slot.assigned = slot.assigned.saturating_sub(1);
            if !slot.ended
                && slot.assigned < self.settings.capacity()
                && let Some(job) = state.waiting.pop_front()
            {
                self.assign(&mut state, id.0, job);
            }
        }
    }

    /// An environment is no more; those who wait may need a new one.
    pub(crate) fn ended(self: &Arc<Self>, id: EnvironmentId) {
        let mut state = self.lock();
        if let Some(slot) = state.slots.get_mut(id.0) {
            slot.ended = true;
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for job in waiting {
            self.submit(job);
        }
    }

    /// Takes no more work; who waits is told by the end of its line.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
        state.slots.clear();
    }

    pub(crate) fn sender(self: &Arc<Self>, id: EnvironmentId) -> Result<mpsc::UnboundedSender<Message>, Error> {
        let mut state = self.lock();
        let index = self.slot(&mut state, id)?;
        Ok(state.slots[index].sender.clone())
    }

    pub(crate) fn location(self: &Arc<Self>, id: EnvironmentId) -> Result<Location, Error> {
        let mut state = self.lock();
        if let Some(slot) = state.slots.get(id.0) {
            return Ok(slot.location.clone());
        }
        let index = self.slot(&mut state, id)?;
        Ok(state.slots[index].location.clone())
    }

    /// The environments that live.
    pub(crate) fn living(&self) -> Vec<EnvironmentId> {
        let state = self.lock();
        let alive = state.slots.iter().enumerate().filter(|(_, slot)| !slot.ended);
        alive.map(|(index, _)| EnvironmentId(index)).collect()
    }

    pub(crate) fn first_extension(&self) -> Option<String> {
        self.settings.extensions.first().map(|(name, _)| name.clone())
    }

    fn with_room(&self, state: &State) -> Option<usize> {
        let capacity = self.settings.capacity();
        state.slots.iter().position(|slot| !slot.ended && slot.assigned < capacity)
    }

    fn assign(&self, state: &mut State, index: usize, job: Job) {
        let slot = &mut state.slots[index];
        slot.assigned += 1;
        if let Err(unsent) = slot.sender.send(Message::Job(job))
            && let Message::Job(job) = unsent.0
        {
            self.refuse(job, "Sandbox.EnvironmentEnded", "the environment has ended");
        }
    }

    fn refuse(&self, mut job: Job, error_type: &str, message: &str) {
        job.answer(&self.log, None, 0, Err(InvocationError::new(error_type, message.to_owned())));
    }

    /// The place of this environment, created if it is one of the next.
    fn slot(self: &Arc<Self>, state: &mut State, id: EnvironmentId) -> Result<usize, Error> {
        if state.closed {
            return Err(Error::EnvironmentEnded(id));
        }
        while state.slots.len() <= id.0 {
            let limit = self.settings.environments;
            if state.living() >= limit {
                return Err(Error::NoSuchEnvironment { index: id.0, limit });
            }
            self.create(state)?;
        }
        if state.slots[id.0].ended { Err(Error::EnvironmentEnded(id)) } else { Ok(id.0) }
    }

    fn create(self: &Arc<Self>, state: &mut State) -> Result<usize, Error> {
        let index = state.slots.len();
        let id = EnvironmentId(index);
        let tmp = self.root.join(index.to_string()).join("tmp");
        std::fs::create_dir_all(&tmp).map_err(Error::io(format!("create {}", tmp.display())))?;
        let socket = tmp.join("leasehold").join("keeper.sock");
        if socket.as_os_str().len() > LONGEST_SOCKET_PATH {
            let problem = format!("{} is too long for a Unix socket; set TMPDIR to a shorter one", socket.display());
            return Err(Error::Setting { setting: "the temporary directory", problem });
        }
        let (listener, port) = self.listen().map_err(Error::io("listen on the loopback interface"))?;
        let location = Location { tmp, socket, port };
        let (sender, mailbox) = mpsc::unbounded_channel();
        let actor = Actor::new(Parts {
            id,
            settings: self.settings.clone(),
            log: self.log.clone(),
            registry: self.registry.clone(),
            pool: self.clone(),
            location: location.clone(),
            listener,
            sender: sender.clone(),
            mailbox,
        });
        // The executor owns the task: it ends with the sandbox.
        drop(self.executor.spawn(actor.run()));
        state.slots.push(Slot { sender, location, assigned: 0, ended: false });
        Ok(index)
    }

    fn listen(&self) -> std::io::Result<(TcpListener, u16)> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let _context = self.executor.enter();
        Ok((TcpListener::from_std(listener)?, port))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn living(&self) -> usize {
        self.slots.iter().filter(|slot| !slot.ended).count()
    }
}
