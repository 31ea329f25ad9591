//! A handle on one environment, for tests that choose it, signal its processes or end it.

use std::{path::PathBuf, sync::Arc};

use rustix::process::Signal;
use tokio::sync::{mpsc, oneshot};

use super::{Message, Order};
use crate::{EnvironmentId, Error, Invocation, InvocationHandle, Outcome, Process, invocation::Job, pool::Pool};

/// One environment of a sandbox; clones name the same one. It is created when it is first used.
#[derive(Debug, Clone)]
pub struct Environment {
    id: EnvironmentId,
    pool: Arc<Pool>,
}

impl Environment {
    pub(crate) fn new(id: EnvironmentId, pool: Arc<Pool>) -> Self {
        Self { id, pool }
    }

    /// Its number.
    pub fn id(&self) -> EnvironmentId {
        self.id
    }

    /// Initializes the environment without an invocation, as provisioned concurrency does. Returns when it is ready.
    ///
    /// # Errors
    ///
    /// [`Error::Init`] when the initialization fails.
    pub async fn start(&self) -> Result<(), Error> {
        self.ask(Order::Start).await?.map_err(Error::Init)
    }

    /// Waits until it has nothing to do: every invocation was answered, and runtime and extensions called Next.
    ///
    /// # Errors
    ///
    /// When the environment has ended.
    pub async fn wait_until_idle(&self) -> Result<(), Error> {
        self.ask(Order::WaitUntilIdle).await
    }

    /// Invokes the function in this very environment and waits for the outcome; a busy one is waited for.
    pub async fn invoke(&self, invocation: impl Into<Invocation>) -> Outcome {
        self.start_invocation(invocation).outcome().await
    }

    /// Invokes the function in this very environment.
    pub fn start_invocation(&self, invocation: impl Into<Invocation>) -> InvocationHandle {
        let (job, handle) = Job::new(invocation.into());
        self.pool.submit_to(self.id, job);
        handle
    }

    /// Kills the function's process with SIGKILL.
    ///
    /// # Errors
    ///
    /// When it doesn't run.
    pub async fn kill_runtime(&self) -> Result<(), Error> {
        self.signal(Process::Runtime, Signal::KILL).await
    }

    /// Kills the extension's process with SIGKILL; the first one's, if there are several.
    ///
    /// # Errors
    ///
    /// When it doesn't run.
    pub async fn kill_extension(&self) -> Result<(), Error> {
        self.signal_extension(Signal::KILL).await
    }

    /// Signals the function's process alone, not its children.
    ///
    /// # Errors
    ///
    /// When it doesn't run.
    pub async fn signal_runtime(&self, signal: Signal) -> Result<(), Error> {
        self.signal(Process::Runtime, signal).await
    }

    /// Signals the first extension's process alone.
    ///
    /// # Errors
    ///
    /// When it doesn't run, or there is no extension.
    pub async fn signal_extension(&self, signal: Signal) -> Result<(), Error> {
        let name = self.pool.first_extension().unwrap_or_default();
        self.signal(Process::Extension(name), signal).await
    }

    /// Signals a process alone, not its children.
    ///
    /// # Errors
    ///
    /// When it doesn't run.
    pub async fn signal(&self, process: Process, signal: Signal) -> Result<(), Error> {
        self.ask(|done| Order::Signal { process, signal, done }).await?
    }

    /// The id of a running process.
    ///
    /// # Errors
    ///
    /// When it doesn't run.
    pub async fn pid(&self, process: Process) -> Result<i32, Error> {
        let name = process.to_string();
        let pid = self.ask(|pid| Order::Pid { process, pid }).await?;
        pid.ok_or(Error::NotRunning { environment: self.id, process: name })
    }

    /// Stops all its processes with SIGSTOP, even in the middle of an invocation, whose time goes on.
    ///
    /// # Errors
    ///
    /// When the environment has ended.
    pub async fn freeze(&self) -> Result<(), Error> {
        self.ask(Order::Freeze).await
    }

    /// Lets its processes go on. Before an invocation this happens by itself.
    ///
    /// # Errors
    ///
    /// When the environment has ended.
    pub async fn thaw(&self) -> Result<(), Error> {
        self.ask(Order::Thaw).await
    }

    /// Kills all its processes at once and never uses it again, as when a host is lost. Returns when SIGKILL was sent.
    ///
    /// # Errors
    ///
    /// When the environment has ended.
    pub async fn vanish(&self) -> Result<(), Error> {
        self.ask(Order::Vanish).await
    }

    /// Ends it in good order once it is idle: SIGTERM to the runtime, SHUTDOWN to the extensions, two seconds in all.
    ///
    /// # Errors
    ///
    /// When the environment has ended.
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.ask(Order::Shutdown).await
    }

    /// The folder that stands for its `/tmp`. It survives resets.
    ///
    /// # Errors
    ///
    /// When there can't be such an environment.
    pub fn tmp(&self) -> Result<PathBuf, Error> {
        Ok(self.pool.location(self.id)?.tmp)
    }

    /// Where the keeper's socket is expected.
    ///
    /// # Errors
    ///
    /// When there can't be such an environment.
    pub fn socket(&self) -> Result<PathBuf, Error> {
        Ok(self.pool.location(self.id)?.socket)
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, Error> {
        let sender: mpsc::UnboundedSender<Message> = self.pool.sender(self.id)?;
        let (answer, answered) = oneshot::channel();
        let ended = || Error::EnvironmentEnded(self.id);
        sender.send(Message::Order(order(answer))).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())
    }
}
