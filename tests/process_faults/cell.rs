//! One cell of the matrix: a step, a fault and its victim, and what is to come of it.
//!
//! The first invocation is held at its step in environment 0 and meets the fault there. The row is looked at, a second
//! invocation asks for the same key, and whatever of the first one was held goes on. In the end the row is free.

use std::time::Duration;

use leasehold_sandbox::{
    InvocationHandle, Outcome, Process, Signal,
    faults::{self, Fault as ProxyFault, Injected},
};

use crate::{
    next::Cause,
    stage::{Row, SOON, Stage, extension, staged},
    steps::{FIRST, Reached, Step, event},
};

/// Whom the fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Handler,
    Extension,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGABRT, as `abort` sends it.
    Abort,
    /// SIGSTOP, and SIGCONT two leases later.
    Stop,
}

/// The row right after the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// There is none.
    Absent,
    /// The first one's.
    Held,
    /// Nobody's.
    Free,
}

/// When a request of the first one that was held goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// Before the second one asks.
    First,
    /// While the second one waits.
    WhileWaiting,
    /// While the second one holds the key: as late as it can come.
    WhileHeld,
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) victim: Victim,
    pub(crate) fault: Fault,
    pub(crate) step: Step,
    /// What the first one's caller gets: a response where none is named, else an error of one of these types. Where a handler
    /// sees its keeper die, its own error and Lambda's come at the same time.
    pub(crate) caller: &'static [&'static str],
    pub(crate) after: After,
    pub(crate) next: Cause,
}

/// Declares one named test a cell: the caller's outcome, the row right after the fault, and why the next one is granted.
macro_rules! cells {
    ($victim:ident $fault:ident: $($name:ident => $step:ident, $caller:expr, $after:ident, $next:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                use $crate::{cell::*, next::Cause::*, steps::Step};
                Cell {
                    victim: Victim::$victim,
                    fault: Fault::$fault,
                    step: Step::$step,
                    caller: &$caller,
                    after: After::$after,
                    next: $next,
                }
                .play()
                .await;
            }
        )*
    };
}
pub(crate) use cells;

const SECOND: &str = "second";

impl Cell {
    pub(crate) async fn play(self) {
        let lease = self.lease();
        let stage = Stage::warm(staged(lease).await.freeze(self.step == Step::Frozen)).await;
        let place = self.second_place();
        stage.environment(place).start().await.unwrap();
        let Reached { first, gate } = stage.reach(self.step).await;
        let id = first.request_id().to_owned();

        // A keeper frees in milliseconds: its release is held, so that the row can be seen before it.
        let lid =
            self.frees_at_once().then(|| stage.faults().inject(faults::Step::Release, 1, ProxyFault::HoldRequest));
        let since = tokio::time::Instant::now();
        self.strike(&stage).await;
        if let Some(lid) = &lid {
            lid.reached(SOON).await.unwrap();
        }
        let owner = self.look(&stage, gate.as_ref()).await;
        let version = stage.version().await;

        if gate.is_some() && self.opening() == Opening::First {
            self.let_go(gate.as_ref()).await;
        }
        if self.fault == Fault::Stop && self.victim == Victim::Extension && self.step <= Step::BeginSent {
            // The handler goes on and finds a keeper that says nothing.
            stage.open(0, FIRST, "stop");
        }
        if self.fault == Fault::Stop && self.step == Step::Frozen {
            // The next invocation wakes the environment.
            tokio::time::sleep_until(since + 2 * lease).await;
        }
        self.meet_pending_abort(&stage).await;
        let second = stage.environment(place).start_invocation(event(SECOND));
        let second_id = second.request_id().to_owned();
        if self.next.is_waited_for() {
            stage.said("waiting", &second_id).await;
        }
        if self.opening() == Opening::WhileWaiting {
            self.let_go(gate.as_ref()).await;
        }
        if let Some(lid) = &lid {
            lid.open();
        }

        if self.fault == Fault::Stop {
            if !self.holder_lives_on() {
                self.second_holds(&stage, &second_id, gate.as_ref()).await;
            }
            tokio::time::sleep_until(since + 2 * lease).await;
            if self.holder_lives_on() {
                assert!(stage.has_said("acquired", &second_id).is_none(), "granted twice\n{}", stage.timeline());
            }
            self.go_on(&stage, &id).await;
        } else {
            self.second_holds(&stage, &second_id, gate.as_ref()).await;
        }
        self.finish(&stage, first, second).await;
        self.next.check(&stage, &id, owner.as_deref(), &second_id, lease).await;
        self.settled(&stage, &id, &second_id, version).await;
    }

    /// Long where the row has to be freed before its lease is over, short where the fault lasts two of them.
    const fn lease(self) -> Duration {
        match (self.fault, self.step) {
            (Fault::Stop, _) if matches!(self.victim, Victim::Handler) => Duration::from_secs(3),
            (Fault::Stop, _) => Duration::from_secs(2),
            (_, Step::Renewal) => Duration::from_secs(6),
            _ => Duration::from_secs(60),
        }
    }

    /// Where the second one runs: in the same environment where that is what frees the row, or to see that it still works.
    fn second_place(self) -> usize {
        let extension_died = self.victim == Victim::Extension && self.fault != Fault::Stop;
        usize::from(!(extension_died || self.step == Step::Frozen))
    }

    /// Whether the keeper sends a release because of the fault.
    fn frees_at_once(self) -> bool {
        self.victim == Victim::Handler
            && self.fault != Fault::Stop
            && matches!(self.step, Step::Unread | Step::Running | Step::Renewal | Step::Posted)
    }

    /// Whether the first one keeps its lease over the fault.
    fn holder_lives_on(self) -> bool {
        self.victim == Victim::Handler
            && self.fault == Fault::Stop
            && (Step::AcquireSent..=Step::Posted).contains(&self.step)
    }

    fn opening(self) -> Opening {
        match (self.victim, self.fault, self.step) {
            (Victim::Handler, Fault::Kill | Fault::Abort, Step::AcquireSent | Step::Renewal)
            | (Victim::Extension, Fault::Stop, Step::Renewal) => Opening::WhileHeld,
            (Victim::Handler, Fault::Kill | Fault::Abort, Step::Written)
            | (Victim::Extension, Fault::Stop, Step::Written)
            | (Victim::Handler, _, Step::Releasing)
            | (Victim::Extension, Fault::Stop, Step::Releasing) => Opening::WhileWaiting,
            _ => Opening::First,
        }
    }

    fn process(self) -> Process {
        match self.victim {
            Victim::Handler => Process::Runtime,
            Victim::Extension => extension(),
        }
    }

    async fn strike(self, stage: &Stage) {
        let signal = match self.fault {
            Fault::Kill => Signal::KILL,
            Fault::Abort => Signal::ABORT,
            Fault::Stop => Signal::STOP,
        };
        let mark = stage.sandbox.log().len();
        stage.environment(0).signal(self.process(), signal).await.unwrap();
        if self.fault == Fault::Stop {
            stage.stopped(0, self.process()).await;
        } else if !self.is_abort_pending() {
            let process = self.process();
            stage.sandbox.log().wait_for_after(mark, |event| event.is_exit(&process), SOON).await.unwrap();
        }
    }

    /// A stopped process dies of SIGABRT once it goes on.
    fn is_abort_pending(self) -> bool {
        self.fault == Fault::Abort && self.step == Step::Frozen
    }

    /// The row right after the fault; the first one's owner, where it has one.
    async fn look(self, stage: &Stage, gate: Option<&Injected>) -> Option<String> {
        let row = stage.row().await;
        let after = match &row {
            Row::Absent => After::Absent,
            Row::Free => After::Free,
            Row::Held { .. } => After::Held,
        };
        assert_eq!(after, self.after, "right after the fault\n{}", stage.timeline());
        match row {
            Row::Held { owner } => Some(owner),
            Row::Absent | Row::Free => gate.and_then(|gate| gate.met().swap_remove(0).owner),
        }
    }

    async fn let_go(self, gate: Option<&Injected>) {
        let Some(gate) = gate else { return };
        gate.open();
        if matches!(self.step, Step::AcquireSent | Step::Renewal | Step::Releasing) {
            gate.carried_out(SOON).await.unwrap();
        }
    }

    /// The second one is granted the lease; a late write of the first one changes nothing about that.
    async fn second_holds(self, stage: &Stage, second: &str, gate: Option<&Injected>) {
        let acquired = stage.said("acquired", second).await;
        if self.opening() == Opening::WhileHeld {
            self.let_go(gate).await;
        }
        assert_eq!(stage.row().await, Row::Held { owner: acquired.field("owner").unwrap() }, "{}", stage.timeline());
    }

    /// The invocation that wakes a frozen process with its SIGABRT pays for it.
    async fn meet_pending_abort(self, stage: &Stage) {
        if self.is_abort_pending() {
            let outcome = stage.environment(0).invoke(event("unlucky")).await;
            let error = outcome.error_type().unwrap_or_default();
            assert!(self.crash().contains(&error), "{outcome:?}\n{}", stage.timeline());
        }
    }

    const fn crash(self) -> &'static [&'static str] {
        match self.victim {
            Victim::Handler => &["Runtime.ExitError"],
            // The handler may meet it at any point of its end.
            Victim::Extension => &["Extension.Crash", "KeeperGone", "KeeperMissing"],
        }
    }

    /// SIGCONT, and every gate of the first one.
    async fn go_on(self, stage: &Stage, first: &str) {
        // A frozen environment goes on with its next invocation, which has come by now.
        if self.step != Step::Frozen {
            stage.environment(0).signal(self.process(), Signal::CONT).await.unwrap();
        }
        if self.next == Cause::Observed && self.step >= Step::Unread {
            // The keeper finds that the lease is over before the handler asks.
            stage.said("lost", first).await;
        }
        for gate in ["stop", "work", "guard"] {
            stage.open(0, FIRST, gate);
        }
    }

    /// Both come to their ends, the second one last where the first one must see that it lost the lease.
    async fn finish(self, stage: &Stage, first: InvocationHandle, second: InvocationHandle) {
        let check = |outcome: &Outcome, wanted: &[&str]| {
            let as_wanted = outcome.error_type().map_or(wanted.is_empty(), |error| wanted.contains(&error));
            assert!(as_wanted, "{outcome:?}\n{}", stage.timeline());
        };
        if self.caller == ["LeaseLost"] {
            check(&first.outcome().await, self.caller);
            stage.open(self.second_place(), SECOND, "work");
        } else {
            stage.open(self.second_place(), SECOND, "work");
            check(&first.outcome().await, self.caller);
        }
        check(&second.outcome().await, &[]);
    }

    /// Nobody worked at the same time as another, tokens grew, and nothing is left behind.
    async fn settled(self, stage: &Stage, first: &str, second: &str, version: Option<u64>) {
        let span = async |id: &str| (stage.said_at("work began", id).await, stage.said_at("work ended", id).await);
        if stage.has_said("work ended", first).is_some() {
            let (one, other) = (span(first).await, span(second).await);
            assert!(one.1 <= other.0 || other.1 <= one.0, "both worked at once\n{}", stage.timeline());
        }
        let token = stage.said("acquired", second).await.field("token").unwrap().parse().unwrap();
        assert!(version.is_none_or(|version| version < token), "a token did not grow\n{}", stage.timeline());
        for environment in 0..=self.second_place() {
            stage.environment(environment).wait_until_idle().await.unwrap();
        }
        assert_eq!(stage.row().await, Row::Free, "in the end\n{}", stage.timeline());
    }
}
