//! Processes that end when they should not.

use leasehold_sandbox::{EventKind, Exit, Process, ShutdownReason, Signal};

use crate::*;

#[tokio::test]
async fn an_abort_an_exit_and_a_kill_of_the_runtime_fail_the_invocation_and_shut_the_extension_down() {
    let sandbox = builder().start().await.unwrap();
    for (step, message) in [
        ("abort", "Runtime exited with error: SIGABRT"),
        ("exit:3", "Runtime exited with error: exit status 3"),
        ("exit:0", "Runtime exited without providing a reason"),
    ] {
        let mark = sandbox.log().len();
        let outcome = sandbox.invoke(steps(&[step])).await;
        let error = outcome.error().unwrap();
        assert_eq!(error.error_type, "Runtime.ExitError");
        assert_eq!(error.message, format!("RequestId: {} Error: {message}", outcome.request_id));
        let shutdown = sandbox.log().wait_for_after(mark, shutdown_sent, LONG).await.unwrap();
        assert!(matches!(shutdown.kind, EventKind::ShutdownSent { reason: ShutdownReason::Failure, .. }));
        sandbox.log().wait_for_after(mark, kind(EventKind::ResetDone), LONG).await.unwrap();
    }
    assert_eq!(sandbox.log().count(|event| event.is_signal(&Process::Runtime, Signal::TERM)), 0);

    let invocation = sandbox.start_invocation(steps(&["say:working", "spin"]));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    sandbox.environment(0).kill_runtime().await.unwrap();
    assert_eq!(invocation.outcome().await.error_type(), Some("Runtime.ExitError"));
    assert!(sandbox.invoke(json!({})).await.is_success(), "the environment is initialized again");
}

#[tokio::test]
async fn an_extension_that_exits_fails_the_invocation_even_with_status_0() {
    let sandbox = builder().env("DOUBLE_EXTENSION", "exit-on-invoke:0").start().await.unwrap();
    let outcome = sandbox.invoke(steps(&["spin"])).await;
    assert_eq!(outcome.error_type(), Some("Extension.Crash"), "{outcome:?}");
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    sandbox
        .log()
        .in_order(&[
            ("end of the extension", &kind(EventKind::Exited { process: extension(), exit: Exit::Code(0) })),
            ("answer", &answered),
            ("reset", &kind(EventKind::ResetStarted { reason: ShutdownReason::Failure })),
            ("SIGTERM", &|event| event.is_signal(&Process::Runtime, Signal::TERM)),
            ("end of the reset", &kind(EventKind::ResetDone)),
        ])
        .unwrap();
}

#[tokio::test]
async fn a_killed_extension_fails_the_invocation() {
    let sandbox = builder().start().await.unwrap();
    let invocation = sandbox.start_invocation(steps(&["say:working", "spin"]));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    sandbox.environment(0).kill_extension().await.unwrap();
    assert_eq!(invocation.outcome().await.error_type(), Some("Extension.Crash"));
    assert!(sandbox.invoke(json!({})).await.is_success());
}

#[tokio::test]
async fn a_runtime_killed_while_frozen_is_noticed_and_started_anew() {
    let sandbox = builder().start().await.unwrap();
    assert!(sandbox.invoke(json!({})).await.is_success());
    sandbox.log().wait_for(kind(EventKind::Frozen), LONG).await.unwrap();
    sandbox.environment(0).kill_runtime().await.unwrap();
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    assert_eq!(sandbox.log().count(shutdown_sent), 1);
    assert!(sandbox.invoke(json!({})).await.is_success());
}

#[tokio::test]
async fn failed_initializations_say_what_is_wrong_and_the_next_one_is_a_new_attempt() {
    for (variable, value, error_type, message) in [
        ("DOUBLE_INIT", "exit", "Runtime.ExitError", "exit status 7"),
        ("DOUBLE_INIT", "error", "Double.InitError", "told to"),
        ("DOUBLE_EXTENSION", "exit-at-once", "Extension.Crash", "exit status 3"),
        ("DOUBLE_EXTENSION", "init-error", "Double.ExtensionInit", "told to"),
        ("DOUBLE_NAME", "somebody-else", "Extension.Crash", "exit status 1"),
    ] {
        let sandbox = builder().env(variable, value).start().await.unwrap();
        let outcome = sandbox.invoke(json!({})).await;
        let error = outcome.error().unwrap();
        assert_eq!(error.error_type, error_type, "{value}: {}", sandbox.log().timeline());
        assert!(error.message.contains(message), "{value}: {}", error.message);
        assert!(sandbox.environment(0).start().await.is_err());
        assert_eq!(sandbox.log().count(kind(EventKind::InitStarted)), 2);
    }
}

#[tokio::test]
async fn an_initialization_that_never_ends_names_who_is_missing() {
    for (variable, value, missing) in [
        ("DOUBLE_EXTENSION", "never-register", "extension leasehold-sandbox-double to register"),
        ("DOUBLE_INIT", "hang", "the runtime to call Next"),
    ] {
        let limit = std::time::Duration::from_millis(1500);
        let sandbox = builder().init_timeout(limit).env(variable, value).start().await.unwrap();
        let outcome = sandbox.invoke(json!({})).await;
        let error = outcome.error().unwrap();
        assert_eq!(error.error_type, "Sandbox.Timedout");
        assert!(error.message.contains(missing), "{}", error.message);
    }
}

#[tokio::test]
async fn vanishing_kills_everything_at_once_and_for_good() {
    let sandbox = builder().start().await.unwrap();
    let invocation = sandbox.start_invocation(steps(&["say:working", "spin"]));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    let environment = sandbox.environment(0);
    let pids = [environment.pid(Process::Runtime).await.unwrap(), environment.pid(extension()).await.unwrap()];
    environment.vanish().await.unwrap();
    let outcome = invocation.outcome().await;
    assert_eq!(outcome.error_type(), Some("ServiceException"));
    for pid in pids {
        wait_until_gone(pid).await;
    }
    sandbox.log().wait_for(kind(EventKind::EnvironmentEnded), LONG).await.unwrap();
    assert_eq!(sandbox.log().count(shutdown_sent), 0);
    assert!(environment.start().await.is_err());
    let outcome = sandbox.invoke(json!({})).await;
    assert_eq!(outcome.environment, Some(sandbox.environment(1).id()), "{outcome:?}");
}

#[tokio::test]
async fn a_forked_child_ends_with_its_group() {
    let sandbox = builder().start().await.unwrap();
    for last in ["abort", "spin"] {
        let mark = sandbox.log().len();
        let invocation = sandbox.start_invocation(
            leasehold_sandbox::Invocation::from(steps(&["fork", last])).timeout(std::time::Duration::from_millis(1500)),
        );
        let line = sandbox.log().wait_for_after(mark, |event| event.is_output("forked "), LONG).await.unwrap();
        let EventKind::Output { line, .. } = line.kind else { unreachable!() };
        let child: i32 = line.trim_start_matches("forked ").parse().unwrap();
        assert!(invocation.outcome().await.error().is_some());
        sandbox.log().wait_for_after(mark, kind(EventKind::ResetDone), LONG).await.unwrap();
        wait_until_gone(child).await;
    }
}

#[tokio::test]
async fn dropping_the_sandbox_ends_every_process() {
    let sandbox = builder().environments(2).start().await.unwrap();
    let busy = sandbox.start_invocation(steps(&["fork", "say:working", "spin"]));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    assert!(sandbox.environment(1).invoke(json!({})).await.is_success());
    let mut pids: Vec<i32> = sandbox
        .log()
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ProcessStarted { pid, .. } => Some(*pid),
            EventKind::Output { line, .. } => line.strip_prefix("forked ")?.parse().ok(),
            _ => None,
        })
        .collect();
    pids.sort_unstable();
    assert_eq!(pids.len(), 5);
    let directory = sandbox.directory().to_owned();
    drop(sandbox);
    for pid in pids {
        wait_until_gone(pid).await;
    }
    assert_eq!(busy.outcome().await.error_type(), Some("Sandbox.Stopped"));
    assert!(!directory.exists());
}

#[tokio::test]
async fn an_invocation_whose_environment_vanishes_while_it_is_initialized_is_told() {
    let sandbox = builder().env("DOUBLE_INIT", "hang").start().await.unwrap();
    let invocation = sandbox.start_invocation(json!({}));
    let started = |event: &Event| matches!(&event.kind, EventKind::ProcessStarted { process, .. } if *process == Process::Runtime);
    sandbox.log().wait_for(started, LONG).await.unwrap();
    sandbox.environment(0).vanish().await.unwrap();
    assert_eq!(invocation.outcome().await.error_type(), Some("ServiceException"));
}
