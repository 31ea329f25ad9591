//! What a test can do to an environment from outside.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use leasehold_sandbox::{Error, EventKind, Process, Reinit, ShutdownReason, Signal};

use crate::*;

#[tokio::test]
async fn a_frozen_invocation_goes_on_after_the_thaw() {
    let sandbox = builder().start().await.unwrap();
    let go = sandbox.directory().join("go");
    let invocation = sandbox.start_invocation(steps(&["say:working", &format!("await:{}", go.display())]));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    let environment = sandbox.environment(0);
    let pid = environment.pid(Process::Runtime).await.unwrap();
    environment.freeze().await.unwrap();
    wait_until_stopped(pid).await;
    std::fs::write(&go, b"").unwrap();
    environment.thaw().await.unwrap();
    assert!(invocation.outcome().await.is_success());
}

#[tokio::test]
async fn a_single_process_can_be_stopped_and_go_on() {
    let sandbox = builder().start().await.unwrap();
    let go = sandbox.directory().join("go");
    let invocation = sandbox.start_invocation(steps(&["say:working", &format!("await:{}", go.display())]));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    let environment = sandbox.environment(0);
    environment.signal_extension(Signal::STOP).await.unwrap();
    std::fs::write(&go, b"").unwrap();
    assert!(invocation.outcome().await.is_success(), "the runtime doesn't need the extension to answer");
    environment.signal_extension(Signal::CONT).await.unwrap();
    sandbox.log().wait_for(kind(EventKind::Idle), LONG).await.unwrap();
}

#[tokio::test]
async fn shutting_down_is_polite_and_final() {
    let sandbox = builder().env("DOUBLE_SIGTERM", "exit").start().await.unwrap();
    assert!(sandbox.invoke(json!({})).await.is_success());
    let environment = sandbox.environment(0);
    environment.shutdown().await.unwrap();
    sandbox
        .log()
        .in_order(&[
            ("frozen", &kind(EventKind::Frozen)),
            ("reset", &kind(EventKind::ResetStarted { reason: ShutdownReason::Spindown })),
            ("thawed", &kind(EventKind::Thawed)),
            ("SIGTERM", &|event| event.is_signal(&Process::Runtime, Signal::TERM)),
            ("end of the runtime", &|event| event.is_exit(&Process::Runtime)),
            ("SHUTDOWN", &shutdown_sent),
            ("end of the extension", &|event| event.is_exit(&extension())),
            ("end", &kind(EventKind::EnvironmentEnded)),
        ])
        .unwrap();
    assert_eq!(
        sandbox.log().count(|event| matches!(event.kind, EventKind::SignalSent { signal: Signal::KILL, .. })),
        0
    );
    assert!(matches!(environment.shutdown().await, Err(Error::EnvironmentEnded(_))));
    assert!(sandbox.environments().is_empty());
}

#[tokio::test]
async fn a_process_that_does_not_run_can_not_be_signalled() {
    let sandbox = builder().start().await.unwrap();
    let refused = sandbox.environment(0).kill_runtime().await.unwrap_err();
    assert!(refused.to_string().contains("env0 has no running runtime; start it"), "{refused}");
}

#[tokio::test]
async fn an_environment_can_be_initialized_anew_at_once() {
    let sandbox = builder().reinit(Reinit::AtOnce).start().await.unwrap();
    assert!(!sandbox.invoke(steps(&["abort"])).await.is_success());
    let done = sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    sandbox.log().wait_for_after(done.index, kind(EventKind::InitDone), LONG).await.unwrap();
}

#[tokio::test]
async fn a_wait_that_is_in_vain_shows_what_happened() {
    let sandbox = builder().start().await.unwrap();
    assert!(sandbox.invoke(json!({})).await.is_success());
    let missed = sandbox.log().wait_for(|_| false, Duration::from_millis(1)).await.unwrap_err().to_string();
    assert!(missed.contains("init starts") && missed.contains("succeeded"), "{missed}");
    let order: [leasehold_sandbox::Step<'_>; 2] =
        [("the answer", &answered), ("an init", &kind(EventKind::InitStarted))];
    let wrong = sandbox.log().in_order(&order).unwrap_err().to_string();
    assert!(wrong.starts_with("expected an init after the answer"), "{wrong}");
}

/// Run by the test below, as a process that can be killed.
#[tokio::test]
#[ignore = "holds its process until it is killed"]
#[allow(clippy::print_stderr, reason = "the test below reads it")]
async fn hold_a_sandbox() {
    if std::env::var_os("HOLD_A_SANDBOX").is_none() {
        return;
    }
    let sandbox = builder().start().await.unwrap();
    sandbox.start_invocation(steps(&["fork", "spin"]));
    sandbox.log().wait_for(|event| event.is_output("forked "), LONG).await.unwrap();
    for event in sandbox.log().events() {
        match event.kind {
            EventKind::ProcessStarted { pid, .. } => eprintln!("pid {pid}"),
            EventKind::Output { line, .. } if line.starts_with("forked ") => eprintln!("pid {}", &line[7..]),
            _ => {}
        }
    }
    eprintln!("directory {}", sandbox.directory().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn killing_the_process_that_holds_a_sandbox_leaves_no_process_behind() {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "control::hold_a_sandbox"])
        .env("HOLD_A_SANDBOX", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pids = Vec::new();
    let mut directory = None;
    for line in BufReader::new(holder.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(pid) = line.strip_prefix("pid ") {
            pids.push(pid.parse::<i32>().unwrap());
        }
        if let Some(path) = line.strip_prefix("directory ") {
            directory = Some(path.to_owned());
            break;
        }
    }
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| is_running(*pid)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    for pid in pids {
        wait_until_gone(pid).await;
    }
    // The files are what a kill leaves: nobody is there to remove them.
    std::fs::remove_dir_all(directory.unwrap()).unwrap();
}
