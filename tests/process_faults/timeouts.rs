//! The function's timeout, wherever it comes.

use std::time::Duration;

use leasehold_sandbox::{
    EventKind, Exit, Invocation, Process, Signal,
    faults::{self, Fault},
};

use crate::{
    next::Cause,
    stage::{Row, SOON, Stage, staged},
    steps::{FIRST, event},
};

const LEASE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_timeout_in_the_wait_leaves_the_holder_alone() {
    let stage = Stage::warm(staged(LEASE).await).await;
    let holder = stage.environment(1).start_invocation(event("holder"));
    stage.said("work began", holder.request_id()).await;
    let held = stage.row().await;
    let waiting = Invocation::from(event(FIRST)).timeout(Duration::from_secs(3));
    let waiting = stage.environment(0).start_invocation(waiting);
    stage.said("waiting", waiting.request_id()).await;
    // It can't answer `LeaseBusy` in time any more.
    stage.environment(0).signal_runtime(Signal::STOP).await.unwrap();
    let outcome = waiting.outcome().await;
    assert_eq!(outcome.error_type(), Some("Sandbox.Timedout"), "{outcome:?}");
    stage.environment(0).wait_until_idle().await.unwrap();
    assert_eq!(stage.row().await, held, "{}", stage.timeline());
    stage.open(1, "holder", "work");
    assert!(holder.outcome().await.is_success());
    assert_eq!(stage.row_when_idle(1).await, Row::Free);
}

#[tokio::test]
async fn a_release_that_is_not_answered_does_not_time_the_function_out() {
    let stage = Stage::warm(staged(LEASE).await.freeze(true)).await;
    let gate = stage.faults().inject(faults::Step::Release, 1, Fault::HoldRequest);
    stage.open(0, FIRST, "work");
    let first = Invocation::from(event(FIRST)).timeout(Duration::from_secs(6));
    let first = stage.environment(0).start_invocation(first);
    let id = first.request_id().to_owned();
    gate.reached(SOON).await.unwrap();
    assert!(first.outcome().await.is_success());
    let row = stage.row_when_idle(0).await;
    let Row::Held { owner } = row else { panic!("{row:?}\n{}", stage.timeline()) };
    let late = |event: &leasehold_sandbox::Event| matches!(event.kind, EventKind::DeadlineReached { .. });
    assert!(stage.sandbox.log().find(late).is_none(), "{}", stage.timeline());
    // The next invocation wakes the keeper, which sends the release again.
    let second = stage.environment(0).start_invocation(event("second"));
    let second_id = second.request_id().to_owned();
    let released = stage.said("released", &id).await;
    assert_eq!(released.field("owner"), Some(owner));
    let acquired = stage.said("acquired", &second_id).await;
    assert!(!acquired.took_over() && released.at_us() <= acquired.at_us(), "{}", stage.timeline());
    stage.open(0, "second", "work");
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    // And the one from before the freeze comes too late to do harm.
    gate.open();
    gate.carried_out(SOON).await.unwrap();
    assert_eq!(stage.row_when_idle(0).await, Row::Free);
}

#[tokio::test]
async fn a_handler_that_ignores_sigterm_keeps_its_lease_until_it_is_killed() {
    let stage = Stage::warm(staged(LEASE).await.env("TEST_SIGTERM", "ignore")).await;
    let lid = stage.faults().inject(faults::Step::Release, 1, Fault::HoldRequest);
    let first = stage.environment(0).start_invocation(Invocation::from(event(FIRST)).timeout(Duration::from_secs(3)));
    let id = first.request_id().to_owned();
    lid.reached(SOON).await.unwrap();
    stage.sandbox.log().note("the release has come");
    let owner = match stage.row().await {
        Row::Held { owner } => owner,
        row => panic!("{row:?}\n{}", stage.timeline()),
    };
    assert_eq!(first.outcome().await.error_type(), Some("Sandbox.Timedout"));
    stage.sandbox.log().wait_for(|event| event.is_output("SIGTERM ignored"), SOON).await.unwrap();
    let killed = |event: &leasehold_sandbox::Event| event.is_signal(&Process::Runtime, Signal::KILL);
    let noted = |event: &leasehold_sandbox::Event| matches!(event.kind, EventKind::Note(_));
    stage.sandbox.log().in_order(&[("SIGKILL", &killed), ("the release", &noted)]).unwrap();
    let ended = EventKind::Exited { process: Process::Runtime, exit: Exit::Signal(9) };
    assert!(stage.sandbox.log().find(|event| event.kind == ended).is_some());
    let second = stage.environment(1).start_invocation(event("second"));
    let second_id = second.request_id().to_owned();
    stage.said("waiting", &second_id).await;
    lid.open();
    stage.open(1, "second", "work");
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    Cause::Freed("crash").check(&stage, &id, Some(&owner), &second_id, LEASE).await;
}
