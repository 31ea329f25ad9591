//! Handlers that end badly within a process that lives on, and what comes after them.

use std::time::Duration;

use leasehold_sandbox::{Event, EventKind, Invocation};
use serde_json::json;

use crate::{
    stage::{Row, Stage, staged},
    steps::{FIRST, event},
};

const LEASE: Duration = Duration::from_secs(60);

fn initializations(stage: &Stage) -> usize {
    stage.sandbox.log().count(|event| event.kind == EventKind::InitDone)
}

#[tokio::test]
async fn a_panic_frees_the_row_and_costs_only_its_own_invocation() {
    let stage = Stage::warm(staged(LEASE).await).await;
    stage.open(0, FIRST, "work");
    let mut panics = event(FIRST);
    panics["then"] = json!("panic");
    let first = stage.environment(0).start_invocation(panics);
    let id = first.request_id().to_owned();
    let outcome = first.outcome().await;
    let error = outcome.error().unwrap_or_else(|| panic!("{}", stage.timeline()));
    assert!(error.message.contains("the test asked for it"), "{error:?}");
    assert_eq!(stage.row_when_idle(0).await, Row::Free);
    assert_eq!(stage.said("released", &id).await.field("reason").as_deref(), Some("dropped"));
    let outcome = stage.environment(0).invoke(event(FIRST)).await;
    assert!(outcome.is_success(), "{outcome:?}\n{}", stage.timeline());
    assert_eq!(initializations(&stage), 1, "the process lives on");
}

#[tokio::test]
async fn a_retry_under_the_same_request_id_in_the_same_environment_has_a_lease_of_its_own() {
    let stage = Stage::warm(staged(LEASE).await).await;
    stage.open(0, FIRST, "work");
    let mut fails = event(FIRST);
    fails["then"] = json!("fail");
    let outcome = stage.environment(0).invoke(Invocation::from(fails).request_id("retried")).await;
    assert_eq!(outcome.error_type(), Some("NoLease"), "{outcome:?}");
    let before = stage.version().await.unwrap();
    let is_idle = |event: &Event| event.kind == EventKind::Idle;
    let mark = stage.sandbox.log().wait_for(is_idle, crate::stage::SOON).await.unwrap().index;

    // The retry is held for like any other: its environment is not idle, and its row not free, before it is done.
    let retry = stage.environment(0).start_invocation(Invocation::from(event("retry")).request_id("retried"));
    let began = crate::stage::says("work began", "retried");
    stage.sandbox.log().wait_for_after(mark, began, crate::stage::SOON).await.unwrap();
    assert!(matches!(stage.row().await, Row::Held { .. }), "{}", stage.timeline());
    stage.open(0, "retry", "work");
    let outcome = retry.outcome().await;
    let token = outcome.json().unwrap_or_else(|| panic!("{outcome:?}\n{}", stage.timeline()))["token"].as_u64();
    assert!(token.unwrap() > before);
    assert_eq!(stage.row_when_idle(0).await, Row::Free, "{}", stage.timeline());
    assert_eq!(initializations(&stage), 1);
}
