//! The mailbox: waiting with a bound, and applying what comes in while a flow waits.

use tokio::time::{Instant, timeout_at};

use super::{Actor, Broken, Gone, Message, Order, Phase};
use crate::{Error, EventKind, Exit, Process};

/// How many messages may still be taken once the time is over: what came in time but was read late counts, a flood doesn't.
const OVERDUE: usize = 64;

impl Actor {
    /// Takes one message in. False when `until` came first.
    pub(super) async fn pump(&mut self, until: Option<Instant>) -> Result<bool, Gone> {
        let message = match until {
            None => self.mailbox.recv().await,
            Some(until) => match timeout_at(until, self.mailbox.recv()).await {
                Ok(message) => message,
                Err(_) => return Ok(false),
            },
        };
        self.apply(message.ok_or(Gone)?);
        if self.vanished || self.dropped { Err(Gone) } else { Ok(true) }
    }

    /// Takes messages in until `done` holds. False when `until` came first.
    pub(super) async fn pump_until(
        &mut self,
        until: Option<Instant>,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, Gone> {
        let mut overdue = 0;
        while !done(self) {
            if until.is_some_and(|until| Instant::now() >= until) {
                overdue += 1;
            }
            if overdue > OVERDUE || !self.pump(until).await? {
                return Ok(done(self));
            }
        }
        Ok(true)
    }

    fn apply(&mut self, message: Message) {
        match message {
            Message::Call { init, call, replier } if init == self.init => self.handle_call(call, replier),
            Message::FirstByte { init, request_id } if init == self.init => {
                self.push(EventKind::ResponseStarted { request_id });
            }
            Message::Exited { init, process, exit } if init == self.init => self.handle_exit(process, exit),
            // From an earlier initialization. A call's replier is dropped, which answers 410.
            Message::Call { .. } | Message::FirstByte { .. } | Message::Exited { .. } => {}
            Message::Job(job) => self.jobs.push_back(job),
            Message::Order(order) => self.handle_order(order),
        }
    }

    fn handle_exit(&mut self, process: Process, exit: Exit) {
        let running = match &process {
            Process::Runtime => self.runtime.running.as_mut(),
            Process::Extension(name) => self
                .extensions
                .iter_mut()
                .find(|extension| extension.name == *name)
                .and_then(|extension| extension.running.as_mut()),
        };
        if let Some(running) = running {
            running.set_exit(exit);
        }
        self.push(EventKind::Exited { process: process.clone(), exit });
        // Not the process's fault then, and not to be reported as such.
        self.dropped |= self.registry.is_closed();
        if self.phase != Phase::Ending && self.broken.is_none() {
            self.broken = Some(Broken::Exited(process, exit));
        }
    }

    fn handle_order(&mut self, order: Order) {
        // Whoever ordered may have stopped waiting: answers that can't be delivered are dropped.
        match order {
            Order::Start(done) => self.starts.push(done),
            Order::Shutdown(done) => self.stops.push(done),
            Order::WaitUntilIdle(done) => self.idlers.push(done),
            Order::Pid { process, pid } => {
                let running = self.process(&process).filter(|running| running.is_alive());
                let _ = pid.send(running.map(|running| running.pid()));
            }
            Order::Signal { process, signal, done } => {
                let _ = done.send(self.signal(&process, signal));
            }
            Order::Freeze(done) => {
                self.stop_processes();
                let _ = done.send(());
            }
            Order::Thaw(done) => {
                self.thaw();
                let _ = done.send(());
            }
            Order::Vanish(done) => {
                self.vanish();
                let _ = done.send(());
            }
        }
    }

    fn signal(&self, process: &Process, signal: rustix::process::Signal) -> Result<(), Error> {
        let name = process.to_string();
        let Some(running) = self.process(process).filter(|running| running.is_alive()) else {
            return Err(Error::NotRunning { environment: self.id, process: name });
        };
        // Logged first: what the signal causes must come later in the log.
        self.push(EventKind::SignalSent { process: process.clone(), signal, group: false });
        running.signal(signal).map_err(|source| Error::Signal { process: name, source })
    }
}
