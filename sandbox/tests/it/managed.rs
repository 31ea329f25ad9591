//! Managed Instances.

use std::time::Duration;

use leasehold_sandbox::{EventKind, Invocation, Process, SandboxBuilder, ShutdownReason};

use crate::*;

fn managed() -> SandboxBuilder {
    builder().managed_instances(8).env("DOUBLE_EVENTS", "SHUTDOWN")
}

#[tokio::test]
async fn registering_for_invoke_is_refused_and_the_function_can_not_start() {
    let sandbox = builder().managed_instances(8).start().await.unwrap();
    let outcome = sandbox.invoke(json!({})).await;
    assert_eq!(outcome.error_type(), Some("Extension.Crash"), "{outcome:?}");
    sandbox.log().find(|event| matches!(event.kind, EventKind::RegistrationRefused { .. })).unwrap();
    sandbox.log().wait_for(|event| event.is_output("registering: 403"), LONG).await.unwrap();
    assert_eq!(sandbox.log().count(runtime_started), 0);
}

#[tokio::test]
async fn eight_invocations_run_at_once_in_one_environment_without_a_freeze() {
    let sandbox = managed().start().await.unwrap();
    let event = steps(&["meet:8", "env:AWS_LAMBDA_INITIALIZATION_TYPE"]);
    let invocations: Vec<_> = (0..8).map(|_| sandbox.start_invocation(&event)).collect();
    for invocation in invocations {
        let outcome = invocation.outcome().await;
        let response = outcome.json().unwrap_or_else(|| panic!("{outcome:?}"));
        assert_eq!(response["AWS_LAMBDA_INITIALIZATION_TYPE"], "lambda-managed-instances");
        assert_eq!(outcome.environment, Some(sandbox.environment(0).id()));
    }
    assert_eq!(sandbox.log().count(runtime_started), 1);
    assert_eq!(sandbox.log().count(kind(EventKind::Frozen)), 0);
    assert_eq!(sandbox.log().count(extension_invoked), 0);
}

#[tokio::test]
async fn a_late_handler_is_not_killed_and_its_response_gets_410() {
    let sandbox = managed().start().await.unwrap();
    sandbox.environment(0).start().await.unwrap();
    let pid = sandbox.environment(0).pid(Process::Runtime).await.unwrap();
    let go = sandbox.directory().join("go");
    let late = Invocation::from(steps(&[&format!("await:{}", go.display())])).timeout(Duration::from_millis(300));
    let late = sandbox.start_invocation(late);
    let id = late.request_id().to_owned();
    assert_eq!(late.outcome().await.error_type(), Some("Sandbox.Timedout"));
    assert!(sandbox.invoke(json!({})).await.is_success());
    std::fs::write(&go, b"").unwrap();
    let refused = EventKind::AnswerRefused { request_id: id, status: 410 };
    sandbox.log().wait_for(kind(refused), LONG).await.unwrap();
    sandbox.log().wait_for(|event| event.is_output("answered with 410"), LONG).await.unwrap();
    assert_eq!(sandbox.environment(0).pid(Process::Runtime).await.unwrap(), pid);
    assert_eq!(sandbox.log().count(|event| matches!(event.kind, EventKind::ResetStarted { .. })), 0);
}

#[tokio::test]
async fn the_same_request_id_twice_runs_one_after_the_other() {
    let sandbox = managed().start().await.unwrap();
    let invocation = Invocation::from(json!({})).request_id("retried");
    let handles = [sandbox.start_invocation(invocation.clone()), sandbox.start_invocation(invocation)];
    for handle in handles {
        assert!(handle.outcome().await.is_success());
    }
    let steps = sandbox
        .log()
        .all(|event| matches!(event.kind, EventKind::InvocationStarted { .. } | EventKind::InvocationAnswered { .. }));
    assert!(matches!(steps[1].kind, EventKind::InvocationAnswered { .. }), "{}", sandbox.log().timeline());
}

#[tokio::test]
async fn a_crash_fails_all_invocations_of_the_environment() {
    let sandbox = managed().start().await.unwrap();
    let spinning: Vec<_> = (0..3).map(|_| sandbox.start_invocation(steps(&["meet:4", "sleep:600000"]))).collect();
    assert_eq!(sandbox.invoke(steps(&["meet:4", "abort"])).await.error_type(), Some("Runtime.ExitError"));
    for invocation in spinning {
        assert_eq!(invocation.outcome().await.error_type(), Some("Runtime.ExitError"));
    }
    let shutdown = sandbox.log().wait_for(shutdown_sent, LONG).await.unwrap();
    assert!(matches!(shutdown.kind, EventKind::ShutdownSent { reason: ShutdownReason::Failure, .. }));
    assert!(sandbox.invoke(json!({})).await.is_success());
}
