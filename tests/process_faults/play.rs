//! How a cell is played.
//!
//! The first invocation is held at its step in environment 0 and meets the fault there. The row is looked at, a second
//! invocation asks for the same key, and whatever of the first one was held goes on. In the end the row is free.

use leasehold_sandbox::{
    InvocationHandle, Outcome, Signal,
    faults::{self, Fault as ProxyFault, Injected},
};

use crate::{
    cell::{After, Cell, Fault, Opening, Victim},
    next::Cause,
    stage::{Row, SOON, Stage, staged},
    steps::{FIRST, Reached, Step, event},
};

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
