//! What happens at an invocation's deadline.

use std::time::Duration;

use leasehold_sandbox::{EventKind, Exit, Invocation, InvokeOrder, Process, ShutdownReason, Signal};

use crate::*;

/// Long enough for a working handler on a busy machine, short enough to wait for.
const SHORT: Duration = Duration::from_millis(1500);

fn timed(steps_: &[&str]) -> Invocation {
    Invocation::from(steps(steps_)).timeout(SHORT)
}

#[tokio::test]
async fn a_runtime_that_ignores_sigterm_is_killed_then_the_extension_hears_of_it_and_files_stay() {
    let sandbox = builder().env("DOUBLE_SIGTERM", "ignore").start().await.unwrap();
    let outcome = sandbox.invoke(timed(&["touch:kept", "spin"])).await;
    assert_eq!(outcome.error_type(), Some("Sandbox.Timedout"), "{outcome:?}");
    assert!(outcome.error().unwrap().message.ends_with("Task timed out after 1.50 seconds"));
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    let extension_process = extension();
    let found = sandbox
        .log()
        .in_order(&[
            ("deadline", &deadline_reached),
            ("answer", &answered),
            ("reset", &kind(EventKind::ResetStarted { reason: ShutdownReason::Timeout })),
            ("SIGTERM", &|event| event.is_signal(&Process::Runtime, Signal::TERM)),
            ("SIGKILL", &|event| event.is_signal(&Process::Runtime, Signal::KILL)),
            ("end of the runtime", &kind(EventKind::Exited { process: Process::Runtime, exit: Exit::Signal(9) })),
            ("SHUTDOWN", &shutdown_sent),
            ("end of the extension", &kind(EventKind::Exited { process: extension_process, exit: Exit::Code(0) })),
            ("end of the reset", &kind(EventKind::ResetDone)),
        ])
        .unwrap();
    let (term, kill) = (&found[3], &found[4]);
    assert!(kill.at - term.at >= Duration::from_millis(500), "the runtime has its time to end itself");
    let EventKind::ShutdownSent { reason, .. } = &found[6].kind else { panic!("{:?}", found[6]) };
    assert_eq!(*reason, ShutdownReason::Timeout);
    sandbox.log().wait_for(|event| event.is_output("SHUTDOWN timeout"), LONG).await.unwrap();
    sandbox.log().wait_for(|event| event.is_output("got SIGTERM"), LONG).await.unwrap();

    let outcome = sandbox.invoke(steps(&["files"])).await;
    assert_eq!(outcome.json().unwrap()["files"], json!(["kept"]), "{outcome:?}");
    assert_eq!(outcome.environment, Some(sandbox.environment(0).id()));
    assert_eq!(sandbox.log().count(kind(EventKind::InitDone)), 2);
    assert_eq!(sandbox.log().count(runtime_started), 2);
}

#[tokio::test]
async fn a_runtime_that_obeys_sigterm_is_not_killed() {
    let sandbox = builder().env("DOUBLE_SIGTERM", "exit").start().await.unwrap();
    assert_eq!(sandbox.invoke(timed(&["spin"])).await.error_type(), Some("Sandbox.Timedout"));
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    assert_eq!(sandbox.log().count(|event| event.is_signal(&Process::Runtime, Signal::KILL)), 0);
    sandbox.log().find(kind(EventKind::Exited { process: Process::Runtime, exit: Exit::Code(0) })).unwrap();
}

#[tokio::test]
async fn without_an_extension_there_is_no_sigterm() {
    let builder = Sandbox::builder().function(double()).dynamodb(DynamoDb::None).init_timeout(LONG);
    let sandbox = builder.env("DOUBLE_SIGTERM", "ignore").start().await.unwrap();
    assert_eq!(sandbox.invoke(timed(&["spin"])).await.error_type(), Some("Sandbox.Timedout"));
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    assert_eq!(sandbox.log().count(|event| event.is_signal(&Process::Runtime, Signal::TERM)), 0);
    assert_eq!(sandbox.log().count(|event| event.is_signal(&Process::Runtime, Signal::KILL)), 1);
}

#[tokio::test]
async fn an_extension_that_overruns_the_deadline_is_reset_as_a_timeout_and_killed_without_an_event() {
    let sandbox = builder().env("DOUBLE_EXTENSION", "hang-on-invoke").start().await.unwrap();
    assert!(sandbox.invoke(timed(&[])).await.is_success(), "the handler was in time");
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    let extension_process = extension();
    sandbox
        .log()
        .in_order(&[
            ("answer", &answered),
            ("deadline", &deadline_reached),
            ("reset", &kind(EventKind::ResetStarted { reason: ShutdownReason::Timeout })),
            ("SIGKILL", &|event| event.is_signal(&extension_process, Signal::KILL)),
            ("end of the reset", &kind(EventKind::ResetDone)),
        ])
        .unwrap();
    assert_eq!(sandbox.log().count(shutdown_sent), 0);
    let reset = sandbox.log().find(|event| matches!(event.kind, EventKind::ResetStarted { .. })).unwrap();
    let kill = sandbox.log().find(|event| event.is_signal(&extension_process, Signal::KILL)).unwrap();
    assert!(kill.at - reset.at >= Duration::from_millis(1900), "the extension has two seconds from the reset's start");
}

#[tokio::test]
async fn an_extension_still_busy_at_the_deadline_gets_shutdown_when_it_calls_next() {
    // Busy for longer than the timeout, but not for longer than the two seconds after it.
    let sandbox = builder().env("DOUBLE_EXTENSION", "busy:2300").start().await.unwrap();
    assert!(sandbox.invoke(timed(&[])).await.is_success());
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    let next = sandbox.log().all(|event| matches!(event.kind, EventKind::ExtensionNext { .. }));
    let shutdown = sandbox.log().find(shutdown_sent).unwrap_or_else(|| panic!("{}", sandbox.log().timeline()));
    assert_eq!(next.len(), 2);
    assert!(shutdown.index > next[1].index && next[1].index > sandbox.log().find(deadline_reached).unwrap().index);
}

#[tokio::test]
async fn an_extension_that_asks_for_more_after_shutdown_is_killed_at_the_end() {
    let sandbox = builder().env("DOUBLE_EXTENSION", "ignore-shutdown").start().await.unwrap();
    assert!(sandbox.invoke(json!({})).await.is_success());
    sandbox.shutdown().await;
    let extension_process = extension();
    sandbox
        .log()
        .in_order(&[
            ("idle", &kind(EventKind::Idle)),
            ("reset", &kind(EventKind::ResetStarted { reason: ShutdownReason::Spindown })),
            ("SHUTDOWN", &shutdown_sent),
            ("SIGKILL", &|event| event.is_signal(&extension_process, Signal::KILL)),
            ("end", &kind(EventKind::EnvironmentEnded)),
        ])
        .unwrap();
}

#[tokio::test]
async fn invoke_is_never_sent_when_the_handler_dies_before_it() {
    let sandbox = builder().invoke_order(InvokeOrder::AfterHandler).start().await.unwrap();
    assert_eq!(sandbox.invoke(timed(&["spin"])).await.error_type(), Some("Sandbox.Timedout"));
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    assert_eq!(sandbox.log().count(extension_invoked), 0);
    assert_eq!(sandbox.log().count(shutdown_sent), 1);
}
