//! Tasks and executors that end with their owner.

use std::{future::Future, io};

use tokio::{runtime, task::JoinHandle};

/// A task that is aborted when its owner goes.
#[derive(Debug)]
pub(crate) struct OwnedTask(JoinHandle<()>);

impl OwnedTask {
    /// Starts the task on the executor that runs the caller.
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }

    /// Waits for the task's own end; it is aborted if the wait is dropped with its owner.
    pub(crate) async fn finished(&mut self) {
        // A panic in the task was reported by the panic hook; its owner goes on without it.
        let _ = (&mut self.0).await;
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An executor on threads of its own, so that a caller that blocks or pauses its clock delays nothing in here.
#[derive(Debug)]
pub(crate) struct OwnedRuntime(Option<runtime::Runtime>);

impl OwnedRuntime {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        Self::with_threads(name, 2)
    }

    pub(crate) fn with_threads(name: &str, threads: usize) -> io::Result<Self> {
        let mut builder = runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(threads).thread_name(name).enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            // The runtime itself owns the task: it ends when the runtime is dropped.
            drop(runtime.spawn(task));
        }
    }

    pub(crate) fn handle(&self) -> Option<&runtime::Handle> {
        self.0.as_ref().map(runtime::Runtime::handle)
    }
}

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Never blocks: owners may be dropped by async code. Tasks are dropped at their next await.
            runtime.shutdown_background();
        }
    }
}
