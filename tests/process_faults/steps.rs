//! The steps of an invocation, and how it is brought to each of them and held there.

use leasehold_sandbox::{
    EventKind, InvocationHandle, Process,
    faults::{self, Fault, Injected},
};
use serde_json::{Value, json};

use crate::stage::{KEY, SOON, Stage, extension};

/// How far the invocation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// It has reached the handler's process; nothing was said to the keeper.
    BeforeBegin,
    /// The session has begun; the lease is not asked for.
    BeginSent,
    /// The keeper has sent the acquire, and it has not reached DynamoDB.
    AcquireSent,
    /// DynamoDB has written it, and the answer is on its way.
    Written,
    /// The keeper has granted the lease, and the layer has not read it.
    Unread,
    /// The handler works.
    Running,
    /// The handler works, and a renewal has not reached DynamoDB.
    Renewal,
    /// The caller has its response, and a guard keeps the lease.
    Posted,
    /// The caller has its response, and the release has not reached DynamoDB.
    Releasing,
    /// DynamoDB has freed the row, and the extension has not called Next.
    Released,
    /// Everybody has called Next; the environment is frozen.
    Frozen,
}

/// The invocation at its step.
pub(crate) struct Reached {
    pub(crate) first: InvocationHandle,
    /// Where a request of it is held.
    pub(crate) gate: Option<Injected>,
}

/// What the first invocation is called.
pub(crate) const FIRST: &str = "first";

/// An event for the function that can be held.
pub(crate) fn event(name: &str) -> Value {
    json!({ "id": KEY.strip_prefix("jobs:"), "name": name })
}

impl Stage {
    /// Starts an invocation in environment 0 and waits until it is there.
    pub(crate) async fn reach(&self, step: Step) -> Reached {
        let gate = match step {
            Step::AcquireSent => Some((faults::Step::Acquire, Fault::HoldRequest)),
            Step::Written | Step::Unread => Some((faults::Step::Acquire, Fault::HoldReply)),
            Step::Renewal => Some((faults::Step::Renew, Fault::HoldRequest)),
            Step::Releasing => Some((faults::Step::Release, Fault::HoldRequest)),
            Step::Released => Some((faults::Step::Release, Fault::HoldReply)),
            _ => None,
        };
        let gate = gate.map(|(step, fault)| self.faults().inject(step, 1, fault));
        let mut event = event(FIRST);
        match step {
            Step::BeforeBegin => event["stop"] = json!("before-begin"),
            Step::BeginSent => event["stop"] = json!("begin-sent"),
            Step::Unread => event["stop"] = json!("unread"),
            Step::Posted => event["then"] = json!("keep-guard"),
            _ => {}
        }
        if step >= Step::Posted {
            self.open(0, FIRST, "work");
        }
        let first = self.environment(0).start_invocation(event);
        let id = first.request_id().to_owned();
        if let Some(gate) = &gate {
            gate.reached(SOON).await.unwrap();
        }
        match step {
            Step::BeforeBegin | Step::BeginSent => drop(self.said("stopped", &id).await),
            Step::Unread => {
                self.open(0, FIRST, "unread");
                self.said("stopped", &id).await;
                gate.as_ref().unwrap().open();
                self.said("acquired", &id).await;
            }
            Step::Running => drop(self.said("work began", &id).await),
            Step::Posted | Step::Releasing | Step::Released => self.answered(&id).await,
            Step::Frozen => {
                self.answered(&id).await;
                let frozen = |event: &leasehold_sandbox::Event| event.kind == EventKind::Frozen;
                let answered = self.sandbox.log().find(|event| is_answer(&event.kind, &id)).unwrap();
                self.sandbox.log().wait_for_after(answered.index, frozen, SOON).await.unwrap();
                // A signal that comes before the stop has come to its process would hit it running.
                self.stopped(0, Process::Runtime).await;
                self.stopped(0, extension()).await;
            }
            Step::AcquireSent | Step::Written | Step::Renewal => {}
        }
        Reached { first, gate }
    }

    async fn answered(&self, id: &str) {
        self.sandbox.log().wait_for(|event| is_answer(&event.kind, id), SOON).await.unwrap();
    }
}

fn is_answer(kind: &EventKind, id: &str) -> bool {
    matches!(kind, EventKind::InvocationAnswered { request_id, .. } if request_id == id)
}
