//! Ending processes: SIGTERM, SIGKILL, SHUTDOWN, in Lambda's order and time; freezing, thawing, vanishing.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{Actor, Gone, Phase, Runtime, broken, deliver};
use crate::{
    EventKind, Process, ShutdownReason,
    process::Running,
    settings::{KILL_LIMIT, RUNTIME_LIMIT, SHUTDOWN_LIMIT},
};

/// What killed processes wrote last is waited for this long; a child outside the group may hold an output open.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

/// The SHUTDOWN event of this reset, once the runtime has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShutdownEvent {
    reason: ShutdownReason,
    deadline_ms: u64,
}

impl Actor {
    /// Ends all processes of this initialization. Takes two seconds at most, if the kernel kills at once.
    pub(super) async fn end_processes(&mut self, reason: ShutdownReason) -> Result<(), Gone> {
        if self.phase == Phase::Cold {
            return Ok(());
        }
        self.phase = Phase::Ending;
        self.push(EventKind::ResetStarted { reason });
        let start = Instant::now();
        let (deadline, deadline_ms) = deliver::deadline(SHUTDOWN_LIMIT);
        self.thaw();
        self.end_runtime(start + RUNTIME_LIMIT).await?;

        self.shutdown = Some(ShutdownEvent { reason, deadline_ms });
        for extension in &self.extensions {
            let polite = extension.registration.as_ref().is_some_and(|registration| registration.wants("SHUTDOWN"));
            if let Some(running) = extension.running.as_ref().filter(|_| !polite) {
                self.kill(running);
            }
        }
        self.send_shutdown();
        self.pump_until(Some(deadline), |actor| !actor.processes().any(Running::is_alive)).await?;
        self.clear().await
    }

    /// Without extensions there is no grace: SIGKILL at once.
    async fn end_runtime(&mut self, deadline: Instant) -> Result<(), Gone> {
        let Some(running) = self.runtime.running.as_ref().filter(|running| running.is_alive()) else {
            return Ok(());
        };
        if self.extensions.iter().any(|extension| extension.registration.is_some()) {
            let signal = Signal::TERM;
            self.push(EventKind::SignalSent { process: Process::Runtime, signal, group: true });
            if let Err(error) = running.signal_group(signal) {
                tracing::warn!(%error, "SIGTERM could not be sent to the runtime");
            }
            let ended = |actor: &Self| actor.runtime.running.as_ref().is_none_or(|running| !running.is_alive());
            if self.pump_until(Some(deadline), ended).await? {
                return Ok(());
            }
        }
        if let Some(running) = &self.runtime.running {
            self.kill(running);
        }
        let ended = |actor: &Self| actor.runtime.running.as_ref().is_none_or(|running| !running.is_alive());
        self.pump_until(Some(Instant::now() + KILL_LIMIT), ended).await?;
        Ok(())
    }

    /// Answers the extensions that wait in Next with SHUTDOWN, each once. Others get it when they call Next.
    pub(super) fn send_shutdown(&mut self) {
        let Some(ShutdownEvent { reason, deadline_ms }) = self.shutdown else { return };
        let event = json!({
            "eventType": "SHUTDOWN",
            "shutdownReason": reason.as_str(),
            "deadlineMs": deadline_ms,
        });
        for index in 0..self.extensions.len() {
            let extension = &mut self.extensions[index];
            let wants = extension.registration.as_ref().is_some_and(|registration| registration.wants("SHUTDOWN"));
            let alive = extension.running.as_ref().is_some_and(Running::is_alive);
            if !wants || !alive || extension.told_to_shut_down {
                continue;
            }
            let Some(waiting) = extension.waiting.take_if(|waiting| !waiting.is_closed()) else { continue };
            extension.told_to_shut_down = true;
            let name = extension.name.clone();
            // Logged first: what the extension does on it comes later in the log.
            self.push(EventKind::ShutdownSent { name, reason, deadline_ms });
            let _ = waiting.send(deliver::event_reply(&event));
        }
    }

    /// Kills what is left, children included, waits for its end and forgets it. The files stay.
    async fn clear(&mut self) -> Result<(), Gone> {
        for running in self.processes() {
            if running.is_alive() {
                self.kill(running);
            } else {
                // Children that outlived the group's leader.
                let _ = running.signal_group(Signal::KILL);
            }
        }
        let ended = self
            .pump_until(Some(Instant::now() + KILL_LIMIT), |actor| !actor.processes().any(Running::is_alive))
            .await?;
        if !ended {
            tracing::error!(environment = %self.id, "a killed process has not ended; the sandbox goes on without it");
        }
        self.forget().await;
        self.phase = Phase::Cold;
        Ok(())
    }

    async fn forget(&mut self) {
        let extensions = std::mem::take(&mut self.extensions);
        let runtime = std::mem::take(&mut self.runtime);
        let Runtime { running, .. } = runtime;
        let all = extensions.into_iter().filter_map(|extension| extension.running).chain(running);
        for mut running in all {
            if timeout(DRAIN_LIMIT, running.drain()).await.is_err() {
                tracing::debug!(process = %running.process, "an output is still open after the process's end");
            }
        }
        self.server = None;
        self.broken = None;
        self.shutdown = None;
        self.frozen = false;
    }

    fn kill(&self, running: &Running) {
        let process = running.process.clone();
        self.push(EventKind::SignalSent { process, signal: Signal::KILL, group: true });
        if let Err(error) = running.signal_group(Signal::KILL) {
            tracing::debug!(%error, "SIGKILL found nobody");
        }
    }

    /// Lambda's freeze, where it applies.
    pub(super) fn freeze(&mut self) {
        if self.settings.freeze {
            self.stop_processes();
        }
    }

    /// Stops every process, whatever it is doing.
    pub(super) fn stop_processes(&mut self) {
        if !self.frozen && self.phase != Phase::Cold {
            self.frozen = true;
            self.signal_all(Signal::STOP);
            self.push(EventKind::Frozen);
        }
    }

    pub(super) fn thaw(&mut self) {
        if self.frozen {
            self.frozen = false;
            // Logged first: what the processes do from now on comes later in the log.
            self.push(EventKind::Thawed);
            self.signal_all(Signal::CONT);
        }
    }

    /// Kills everything at once. Stopped first, so that none sees another's end.
    pub(super) fn vanish(&mut self) {
        self.vanished = true;
        self.push(EventKind::Vanished);
        self.signal_all(Signal::STOP);
        self.signal_all(Signal::KILL);
    }

    fn signal_all(&self, signal: Signal) {
        for running in self.processes().filter(|running| running.is_alive()) {
            if let Err(error) = running.signal_group(signal) {
                tracing::debug!(process = %running.process, %error, "a signal found nobody");
            }
        }
    }

    /// The environment's end: everybody who still waits is told, nothing of it is left.
    pub(super) async fn close(mut self) {
        let (id, was_vanished) = (self.id, self.vanished);
        let error = move |request_id: &str| {
            if was_vanished { broken::vanished(request_id, id) } else { broken::ended(request_id, id) }
        };
        self.fail_active(error);
        // Vanished processes were killed; their ends are still on the way.
        self.vanished = false;
        self.phase = Phase::Ending;
        let killed = |actor: &Self| !actor.processes().any(Running::is_alive);
        if was_vanished {
            let _ = self.pump_until(Some(Instant::now() + KILL_LIMIT), killed).await;
        }
        let _ = self.clear().await;
        self.push(EventKind::EnvironmentEnded);
        self.pool.ended(self.id);
        self.mailbox.close();
        while let Ok(message) = self.mailbox.try_recv() {
            if let super::Message::Job(job) = message {
                self.jobs.push_back(job);
            }
        }
        for mut job in std::mem::take(&mut self.jobs) {
            let result = Err(error(job.request_id()));
            job.answer(&self.log, Some(self.id), self.init, result);
        }
        for stop in self.stops.drain(..) {
            let _ = stop.send(());
        }
    }
}
