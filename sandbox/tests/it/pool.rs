//! Several environments: how many there are, and who gets which.

use std::collections::BTreeSet;

use leasehold_sandbox::{Error, EventKind, Overflow};

use crate::*;

fn created(event: &Event) -> bool {
    matches!(event.kind, EventKind::EnvironmentCreated { .. })
}

fn queued(event: &Event) -> bool {
    matches!(event.kind, EventKind::InvocationQueued { .. })
}

#[tokio::test]
async fn concurrent_invocations_start_environments_up_to_the_limit_and_the_rest_wait() {
    let sandbox = builder().environments(2).start().await.unwrap();
    let go = sandbox.directory().join("go");
    let step = format!("await:{}", go.display());
    let invocations: Vec<_> = (0..4).map(|_| sandbox.start_invocation(steps(&[&step]))).collect();
    for environment in [0, 1] {
        let id = sandbox.environment(environment).id();
        sandbox.log().wait_for(|event| invoked(event) && event.environment == Some(id), LONG).await.unwrap();
    }
    assert_eq!((sandbox.log().count(created), sandbox.log().count(queued)), (2, 2));
    assert_eq!(sandbox.log().count(invoked), 2);
    std::fs::write(&go, b"").unwrap();
    let mut used = BTreeSet::new();
    for invocation in invocations {
        let outcome = invocation.outcome().await;
        assert!(outcome.is_success(), "{outcome:?}");
        used.insert(outcome.environment);
    }
    assert_eq!(used.len(), 2);
    assert_eq!(sandbox.log().count(created), 2);
    assert_eq!(sandbox.environments().len(), 2);
}

#[tokio::test]
async fn an_idle_environment_is_used_again_before_a_new_one_is_made() {
    let sandbox = builder().environments(3).start().await.unwrap();
    for _ in 0..3 {
        assert!(sandbox.invoke(json!({})).await.is_success());
        sandbox.environment(0).wait_until_idle().await.unwrap();
    }
    assert_eq!(sandbox.log().count(created), 1);
}

#[tokio::test]
async fn a_throttled_function_refuses_what_it_has_no_environment_for() {
    let sandbox = builder().overflow(Overflow::Throttle).start().await.unwrap();
    let running = sandbox.start_invocation(steps(&["say:working", "spin"]));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    let outcome = sandbox.invoke(json!({})).await;
    assert_eq!(outcome.error_type(), Some("TooManyRequestsException"));
    assert_eq!(outcome.environment, None);
    sandbox.environment(0).kill_runtime().await.unwrap();
    assert!(!running.outcome().await.is_success());
}

#[tokio::test]
async fn environments_have_their_own_files_and_processes_and_can_be_chosen() {
    let sandbox = builder().environments(2).start().await.unwrap();
    let (first, second) = (sandbox.environment(0), sandbox.environment(1));
    assert!(second.invoke(steps(&["touch:mine"])).await.is_success());
    assert_eq!(first.invoke(steps(&["files"])).await.json().unwrap()["files"], json!([]));
    assert!(second.tmp().unwrap().join("mine").exists());
    let outcome = first.invoke(steps(&["env:TMPDIR", "env:LEASEHOLD_SOCKET"])).await;
    assert_eq!(outcome.json().unwrap()["TMPDIR"], json!(first.tmp().unwrap()));
    assert_eq!(outcome.json().unwrap()["LEASEHOLD_SOCKET"], json!(first.socket().unwrap()));
    let refused = sandbox.environment(2).start().await.unwrap_err();
    assert!(matches!(refused, Error::NoSuchEnvironment { index: 2, limit: 2 }), "{refused}");
}

#[tokio::test]
async fn those_who_wait_for_an_environment_that_vanishes_get_a_new_one() {
    let sandbox = builder().start().await.unwrap();
    let lost = sandbox.start_invocation(steps(&["say:working", "spin"]));
    let waiting = sandbox.start_invocation(json!({}));
    sandbox.log().wait_for(|event| event.is_output("working"), LONG).await.unwrap();
    sandbox.environment(0).vanish().await.unwrap();
    assert_eq!(lost.outcome().await.error_type(), Some("ServiceException"));
    let outcome = waiting.outcome().await;
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(outcome.environment, Some(sandbox.environment(1).id()));
}
