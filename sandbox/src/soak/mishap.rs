//! Jobs and what happens to the processes that do them.

use std::time::Duration;

use fastrand::Rng;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Plan;
use crate::{Environment, Error, Invocation, InvokeOrder, Outcome};

/// A fault of an invocation's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mishap {
    KillHandler,
    KillExtension,
    Freeze,
    StopHandler,
    StopExtension,
    Vanish,
    Abort,
    Exit,
    Panic,
    Error,
    Timeout,
}

/// What happens to an invocation's processes, drawn as often as it stands here.
const MISHAPS: [Mishap; 14] = [
    Mishap::KillHandler,
    Mishap::KillHandler,
    Mishap::KillExtension,
    Mishap::Freeze,
    Mishap::Freeze,
    Mishap::Freeze,
    Mishap::StopHandler,
    Mishap::StopExtension,
    Mishap::Vanish,
    Mishap::Abort,
    Mishap::Exit,
    Mishap::Panic,
    Mishap::Error,
    Mishap::Timeout,
];

impl Mishap {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KillHandler => "handler: SIGKILL",
            Self::KillExtension => "extension: SIGKILL",
            Self::Freeze => "environment frozen for longer than a lease",
            Self::StopHandler => "handler stopped for longer than a lease",
            Self::StopExtension => "extension stopped for longer than a lease",
            Self::Vanish => "environment vanished",
            Self::Abort => "handler: abort",
            Self::Exit => "handler: exit, environment reset",
            Self::Panic => "handler: panic",
            Self::Error => "handler: error",
            Self::Timeout => "handler: timeout",
        }
    }

    /// Whether the invocation may end without the handler's answer.
    pub(super) const fn may_end_processes(self) -> bool {
        !matches!(self, Self::Panic | Self::Error)
    }

    /// Whether the keeper stands still for longer than a lease.
    pub(super) const fn stops_keeper(self) -> bool {
        matches!(self, Self::Freeze | Self::StopExtension)
    }

    /// Whether the soak does it, and not the handler itself.
    pub(super) const fn comes_from_outside(self) -> bool {
        !matches!(self, Self::Abort | Self::Exit | Self::Panic | Self::Error | Self::Timeout)
    }

    /// Whether the handler got so far as to do it itself.
    pub(super) fn was_met(self, outcome: &Outcome) -> bool {
        let error_type = outcome.error_type().unwrap_or_default();
        match self {
            Self::Abort | Self::Exit => error_type == "Runtime.ExitError",
            Self::Timeout => error_type == "Sandbox.Timedout",
            Self::Error => error_type == "AskedToFail",
            Self::Panic => is_panic(outcome),
            _ => false,
        }
    }

    /// How the event says what the handler is to do in the end.
    const fn end(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Exit => "exit",
            Self::Panic => "panic",
            Self::Error => "error",
            Self::Timeout => "hang",
            _ => "answer",
        }
    }
}

/// Whether the handler panicked as it was asked to; the runtime gives that no type of its own.
pub(super) fn is_panic(outcome: &Outcome) -> bool {
    outcome.error().is_some_and(|error| error.message.contains("the soak asked for a panic"))
}

/// One invocation as it was drawn.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) key: String,
    pub(super) mishap: Option<Mishap>,
    /// When the mishap comes, from the start.
    pub(super) after: Duration,
    /// How long what is stopped stays so.
    stopped: Duration,
    slices: u32,
    slice_ms: u64,
    block: bool,
    timeout: Duration,
    order: InvokeOrder,
}

impl Job {
    pub(super) fn draw(dice: &mut Rng, plan: &Plan) -> Self {
        let key = super::key_of(dice.usize(0..plan.keys));
        let mishap = (dice.f64() * 100.0 < plan.process_faults).then(|| MISHAPS[dice.usize(0..MISHAPS.len())]);
        // Most work is short; some takes so long that its lease is renewed several times.
        let long = mishap.is_none() && dice.u32(0..50) == 0;
        let (slices, slice_ms) = match mishap {
            _ if long => (dice.u32(20..60), 25),
            Some(Mishap::Timeout) => (1, 5),
            Some(_) => (dice.u32(10..40), 10),
            None => (dice.u32(1..4), dice.u64(1..5)),
        };
        let order = match dice.u32(0..10) {
            0 => InvokeOrder::ExtensionFirst,
            1 => InvokeOrder::AfterHandler,
            _ => InvokeOrder::RuntimeFirst,
        };
        let timeout = if mishap == Some(Mishap::Timeout) { SHORT_TIMEOUT } else { TIMEOUT };
        Self {
            key,
            mishap,
            after: Duration::from_millis(dice.u64(2..300)),
            stopped: plan.lease.mul_f64(1.1 + dice.f64()),
            slices,
            slice_ms,
            block: dice.u32(0..8) == 0,
            timeout,
            order,
        }
    }

    /// A job without any trouble.
    pub(super) fn plain(key: String) -> Self {
        Self {
            key,
            mishap: None,
            after: Duration::ZERO,
            stopped: Duration::ZERO,
            slices: 1,
            slice_ms: 1,
            block: false,
            timeout: TIMEOUT,
            order: InvokeOrder::default(),
        }
    }

    pub(super) fn invocation(&self) -> Invocation {
        let end = self.mishap.map_or("answer", Mishap::end);
        let event: Value = json!({
            "id": self.key.strip_prefix(super::KEY_PREFIX).unwrap_or(&self.key),
            "slices": self.slices, "slice_ms": self.slice_ms, "block": self.block, "end": end,
        });
        Invocation::from(event).timeout(self.timeout).order(self.order)
    }

    /// The longest that an invocation may take until its caller has an answer: its time, an initialization, and the end
    /// of processes that don't end by themselves.
    pub(super) fn limit(&self) -> Duration {
        self.timeout + super::INIT_TIMEOUT * 2 + Duration::from_secs(30)
    }

    /// Lets the mishap happen.
    pub(super) async fn strike(&self, environment: &Environment) -> Result<(), Error> {
        match self.mishap {
            Some(Mishap::KillHandler) => environment.kill_runtime().await,
            Some(Mishap::KillExtension) => environment.kill_extension().await,
            Some(Mishap::Vanish) => environment.vanish().await,
            Some(Mishap::Freeze) => {
                environment.freeze().await?;
                sleep(self.stopped).await;
                environment.thaw().await
            }
            Some(Mishap::StopHandler) => {
                environment.signal_runtime(Signal::STOP).await?;
                sleep(self.stopped).await;
                environment.signal_runtime(Signal::CONT).await
            }
            Some(Mishap::StopExtension) => {
                environment.signal_extension(Signal::STOP).await?;
                sleep(self.stopped).await;
                environment.signal_extension(Signal::CONT).await
            }
            // The rest is the handler's own doing.
            _ => Ok(()),
        }
    }
}

/// The time of most invocations: enough for the wait, an attempt that is never answered, the work and a stop, on a slow
/// machine.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The time of those that run into its end.
const SHORT_TIMEOUT: Duration = Duration::from_millis(2_500);
