//! SHUTDOWN that comes late, or not at all. Many leases at once are in the extension's own tests.

use std::time::Duration;

use leasehold_sandbox::{
    Event, EventKind, Exit, Signal,
    faults::{self, Fault},
};

use crate::{
    next::Cause,
    stage::{Row, SOON, Stage, extension, staged},
    steps::{Step, event},
};

const LEASE: Duration = Duration::from_secs(60);

fn shutdown_sent(event: &Event) -> bool {
    matches!(event.kind, EventKind::ShutdownSent { .. })
}

fn reset_done(event: &Event) -> bool {
    event.kind == EventKind::ResetDone
}

/// The keeper waits for the answer to its crash release for as long as it may; only then it calls Next and hears.
#[tokio::test]
async fn a_late_shutdown_leaves_time_to_send_a_lost_release_again() {
    let stage = Stage::warm(staged(LEASE).await).await;
    let first = stage.reach(Step::Running).await.first;
    let gate = stage.faults().inject(faults::Step::Release, 1, Fault::HoldRequest);
    stage.environment(0).kill_runtime().await.unwrap();
    gate.reached(SOON).await.unwrap();
    assert_eq!(first.outcome().await.error_type(), Some("Runtime.ExitError"));
    stage.sandbox.log().wait_for(reset_done, SOON).await.unwrap();
    let ended = EventKind::Exited { process: extension(), exit: Exit::Code(0) };
    let found = stage.sandbox.log().in_order(&[
        ("SHUTDOWN", &shutdown_sent),
        ("the extension's own end", &|event| event.kind == ended),
        ("the reset's end", &reset_done),
    ]);
    found.unwrap();
    assert_eq!(stage.row().await, Row::Free, "{}", stage.timeline());
    assert_eq!(stage.faults().count(faults::Step::Release), 2);
    gate.open();
    gate.carried_out(SOON).await.unwrap();
    assert_eq!(stage.row().await, Row::Free);
}

/// The extension stands still while its environment is reset, and is killed without a word.
#[tokio::test]
async fn without_a_shutdown_the_journal_frees_the_row() {
    let stage = Stage::warm(staged(LEASE).await).await;
    let first = stage.reach(Step::Running).await.first;
    let id = first.request_id().to_owned();
    stage.environment(0).signal_extension(Signal::STOP).await.unwrap();
    stage.stopped(0, extension()).await;
    stage.environment(0).kill_runtime().await.unwrap();
    stage.sandbox.log().wait_for(reset_done, SOON).await.unwrap();
    assert!(stage.sandbox.log().find(shutdown_sent).is_none(), "{}", stage.timeline());
    let row = stage.row().await;
    let Row::Held { owner } = row else { panic!("{row:?}\n{}", stage.timeline()) };
    stage.open(0, "second", "work");
    let second = stage.environment(0).start_invocation(event("second"));
    let second_id = second.request_id().to_owned();
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    Cause::Journal.check(&stage, &id, Some(&owner), &second_id, LEASE).await;
    assert_eq!(first.outcome().await.error_type(), Some("Runtime.ExitError"));
    stage.environment(0).wait_until_idle().await.unwrap();
    assert_eq!(std::fs::read_dir(stage.environment(0).tmp().unwrap().join("leasehold/held")).unwrap().count(), 0);
}
