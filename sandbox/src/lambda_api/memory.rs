//! What an environment's processes take of the machine's memory, and the end of a function that takes more than it has.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use super::function::Function;
use crate::{EnvironmentId, Event, EventKind, Process};

/// How often it is looked at. A function may take more for that long, which Lambda's kernel would not let it.
const EVERY: Duration = Duration::from_millis(10);

/// The processes that run, by what the log says of their starts and ends.
#[derive(Debug, Default)]
pub(super) struct Running(BTreeMap<(EnvironmentId, Process), i32>);

impl Running {
    pub(super) fn note(&mut self, event: &Event) {
        let Some(environment) = event.environment else { return };
        match &event.kind {
            EventKind::ProcessStarted { process, pid } => {
                self.0.insert((environment, process.clone()), *pid);
            }
            EventKind::Exited { process, .. } => {
                self.0.remove(&(environment, process.clone()));
            }
            EventKind::EnvironmentEnded => self.0.retain(|(of, _), _| *of != environment),
            _ => {}
        }
    }

    /// The sum of a figure of `/proc/PID/status` over this environment's processes, in MB.
    pub(super) fn megabytes(&self, environment: EnvironmentId, figure: &str) -> u64 {
        let own = self.0.iter().filter(|((of, _), _)| *of == environment);
        own.filter_map(|(_, pid)| kilobytes(*pid, figure)).sum::<u64>() / 1024
    }

    fn environments(&self) -> Vec<EnvironmentId> {
        let runtimes = self.0.keys().filter(|(_, process)| *process == Process::Runtime);
        runtimes.map(|(environment, _)| *environment).collect()
    }
}

fn kilobytes(pid: i32, figure: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Kills the function's process wherever an environment takes more than the function's memory.
pub(super) async fn limit(function: Arc<Function>) {
    let (sandbox, most) = (function.sandbox(), u64::from(function.memory_mb()));
    let (mut running, mut next, mut ticks) = (Running::default(), 0, interval(EVERY));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            event = sandbox.log().next_after(next) => {
                next = event.index + 1;
                running.note(&event);
            }
            _ = ticks.tick() => {
                for environment in running.environments() {
                    let taken = running.megabytes(environment, "VmRSS");
                    if taken > most {
                        sandbox.log().note(format!("{environment} takes {taken} MB of {most} MB: the function is killed"));
                        if let Err(error) = sandbox.environment(environment.0).kill_runtime().await {
                            tracing::debug!(%error, "who took too much memory was gone already");
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_takes_is_read_from_the_kernel() {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let (now, most) = (kilobytes(pid, "VmRSS"), kilobytes(pid, "VmHWM"));
        assert!(now.is_some_and(|now| now > 100) && most >= now, "{now:?} {most:?}");
        assert_eq!((kilobytes(pid, "Vm"), kilobytes(-1, "VmRSS")), (None, None));
    }
}
