//! Initialization: extensions first, the runtime once all have registered, done when everybody waits in Next.

use std::{io, path::Path};

use tokio::time::Instant;

use super::{Actor, Extension, Gone, Message, Phase, Runtime, broken};
use crate::{
    EventKind, InvocationError, Process,
    api::{Mailbox, Server},
    process::{Launch, Place, Running, task_root, variables},
};

impl Actor {
    /// Initializes unless that was done. The inner result tells whether invocations can be served now; its error is worded
    /// for `request_id`.
    pub(super) async fn ensure_ready(&mut self, request_id: &str) -> Result<Result<(), InvocationError>, Gone> {
        if self.phase == Phase::Ready {
            return Ok(Ok(()));
        }
        self.init += 1;
        self.phase = Phase::Init;
        self.broken = None;
        self.shutdown = None;
        self.push(EventKind::InitStarted);
        let mailbox = Mailbox { sender: self.sender.clone(), init: self.init };
        self.server = Some(Server::start(self.listener.clone(), mailbox));
        let deadline = Instant::now() + self.settings.init_timeout;
        let result = self.initialize(deadline, request_id).await?;
        match &result {
            Ok(()) => {
                self.phase = Phase::Ready;
                self.push(EventKind::InitDone);
            }
            Err(error) => {
                let (error_type, message) = (error.error_type.clone(), error.message.clone());
                self.push(EventKind::InitFailed { error_type, message });
            }
        }
        Ok(result)
    }

    async fn initialize(&mut self, deadline: Instant, request_id: &str) -> Result<Result<(), InvocationError>, Gone> {
        self.runtime = Runtime::default();
        self.extensions.clear();
        let settings = self.settings.clone();
        for (name, program) in &settings.extensions {
            self.extensions.push(Extension {
                name: name.clone(),
                program: program.clone(),
                running: None,
                registration: None,
                waiting: None,
                owed: None,
                told_to_shut_down: false,
            });
        }
        for index in 0..self.extensions.len() {
            let process = Process::Extension(self.extensions[index].name.clone());
            let program = self.extensions[index].program.clone();
            // An extension starts in a directory without meaning; the environment's own is as good as any.
            match self.launch(process, &program, &self.location.tmp) {
                Ok(running) => self.extensions[index].running = Some(running),
                Err(error) => return Ok(Err(cannot_start("Extension.LaunchError", &program, &error))),
            }
        }
        let registered = |actor: &Self| actor.extensions.iter().all(|extension| extension.registration.is_some());
        self.pump_until(Some(deadline), |actor| actor.broken.is_some() || registered(actor)).await?;
        if let Some(broken) = &self.broken {
            return Ok(Err(broken.error(request_id)));
        }
        if let Some(late) = self.extensions.iter().find(|extension| extension.registration.is_none()) {
            let missing = format!("extension {} to register", late.name);
            return Ok(Err(broken::init_timed_out(request_id, settings.init_timeout, &missing)));
        }
        match self.launch(Process::Runtime, &settings.function, &task_root(&settings)) {
            Ok(running) => self.runtime.running = Some(running),
            Err(error) => return Ok(Err(cannot_start("Runtime.InvalidEntrypoint", &settings.function, &error))),
        }
        self.pump_until(Some(deadline), |actor| actor.broken.is_some() || actor.all_waiting()).await?;
        if let Some(broken) = &self.broken {
            return Ok(Err(broken.error(request_id)));
        }
        Ok(match self.missing() {
            Some(missing) => Err(broken::init_timed_out(request_id, settings.init_timeout, &missing)),
            None => Ok(()),
        })
    }

    fn launch(&self, process: Process, program: &Path, directory: &Path) -> io::Result<Running> {
        let place = Place {
            environment: self.id,
            port: self.location.port,
            tmp: &self.location.tmp,
            socket: &self.location.socket,
        };
        let launch = Launch {
            variables: variables(&self.settings, &place, &process),
            process: process.clone(),
            program,
            directory,
            environment: self.id,
            init: self.init,
            log: &self.log,
            registry: &self.registry,
        };
        let (sender, init) = (self.sender.clone(), self.init);
        Running::start(launch, move |exit| {
            // Fails only when the environment is gone, and with it the interest.
            let _ = sender.send(Message::Exited { init, process, exit });
        })
    }
}

fn cannot_start(error_type: &str, program: &Path, error: &io::Error) -> InvocationError {
    InvocationError::new(error_type, format!("{} could not be started: {error}", program.display()))
}
