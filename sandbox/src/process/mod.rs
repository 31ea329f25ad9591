//! A real process in a group of its own: started, signalled, its lines and its end reported.

mod guard;
mod output;
mod registry;
mod variables;

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt, path::Path, process::ExitStatus, process::Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

pub(crate) use self::{
    registry::Registry,
    variables::{Place, task_root, variables},
};
use crate::{EnvironmentId, EventKind, Exit, Process, log::Log, task::OwnedTask};

/// What to start and whom to tell about it.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) process: Process,
    pub(crate) program: &'a Path,
    pub(crate) directory: &'a Path,
    pub(crate) variables: Vec<(String, OsString)>,
    pub(crate) environment: EnvironmentId,
    pub(crate) init: u32,
    pub(crate) log: &'a Log,
    pub(crate) registry: &'a Registry,
}

/// A child process; dropping it kills its whole group.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pid: Pid,
    exit: Option<Exit>,
    registry: Registry,
    _watcher: OwnedTask,
    readers: [OwnedTask; 2],
}

impl Running {
    /// Starts the process; `ended` is called once, when it has ended and was collected.
    pub(crate) fn start(launch: Launch<'_>, ended: impl FnOnce(Exit) + Send + 'static) -> io::Result<Self> {
        let mut command = Command::new(launch.program);
        command
            .current_dir(launch.directory)
            .env_clear()
            .envs(launch.variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.ok_or_else(|| io::Error::other("the child has no process id"))?;
        launch.registry.add(pid);
        let process = launch.process;
        let started = EventKind::ProcessStarted { process: process.clone(), pid: pid.as_raw_nonzero().get() };
        launch.log.push(Some(launch.environment), launch.init, started);
        let sink = output::Sink {
            log: launch.log.clone(),
            environment: launch.environment,
            init: launch.init,
            process: process.clone(),
        };
        let readers = [
            OwnedTask::spawn(output::read(child.stdout.take(), sink.clone(), crate::Stream::Stdout)),
            OwnedTask::spawn(output::read(child.stderr.take(), sink, crate::Stream::Stderr)),
        ];
        let watcher = OwnedTask::spawn(async move {
            let exit = wait(&mut child).await;
            ended(exit);
        });
        Ok(Self { process, pid, exit: None, registry: launch.registry.clone(), _watcher: watcher, readers })
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.exit.is_none()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub(crate) fn set_exit(&mut self, exit: Exit) {
        self.exit = Some(exit);
    }

    /// Signals the process alone.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.exit.is_some() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        Ok(kill_process(self.pid, signal)?)
    }

    /// Signals the process and all its children that stayed in its group. Also reaches a group whose leader has ended;
    /// its id isn't given to another process as long as a member is left.
    pub(crate) fn signal_group(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process_group(self.pid, signal)?)
    }

    /// Waits until both outputs are at their end. Never ends while somebody outside the group holds one open.
    pub(crate) async fn drain(&mut self) {
        for reader in &mut self.readers {
            reader.finished().await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // No such process: the usual case, the group is gone already.
        let _ = self.signal_group(Signal::KILL);
        self.registry.remove(self.pid);
    }
}

async fn wait(child: &mut Child) -> Exit {
    match child.wait().await {
        Ok(status) => exit(status),
        Err(error) => {
            tracing::error!(%error, "a child process could not be waited for");
            Exit::Code(-1)
        }
    }
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(number)) => Exit::Signal(number),
        (None, None) => Exit::Code(-1),
    }
}
