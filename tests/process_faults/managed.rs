//! Managed Instances: many invocations at once in one process, which no deadline ends.

use std::time::Duration;

use leasehold_sandbox::{
    EventKind, Invocation,
    faults::{Fault, Step},
};
use serde_json::json;

use crate::{
    next::Cause,
    stage::{Row, SOON, Stage, with_extension},
};

const LEASE: Duration = Duration::from_secs(6);

async fn managed() -> Stage {
    Stage::warm(with_extension("staged-concurrent", "leasehold", LEASE).await.managed_instances(8)).await
}

/// Waits until each of these leases has been renewed from here on.
async fn renewed(stage: &Stage, held: &[Row]) {
    let renewals =
        stage.faults().inject_where(usize::MAX, |passing| (passing.step == Step::Renew).then_some(Fault::None));
    let all = async {
        for count in 1.. {
            let met = renewals.reached_by(count, SOON).await.unwrap();
            let is_renewed =
                |row: &Row| matches!(row, Row::Held { owner } if met.iter().any(|p| p.owner.as_ref() == Some(owner)));
            if held.iter().all(is_renewed) {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, all).await.unwrap_or_else(|_| panic!("{}", stage.timeline()));
}

#[tokio::test]
async fn one_of_eight_ends_and_the_others_keep_their_leases() {
    let stage = managed().await;
    let names: Vec<_> = (0..8).map(|number| format!("job{number}")).collect();
    let mut invocations = Vec::new();
    for name in &names {
        invocations.push(stage.environment(0).start_invocation(json!({ "id": name, "name": name })));
    }
    for invocation in &invocations {
        stage.said("work began", invocation.request_id()).await;
    }
    let rows = async || {
        let mut rows = Vec::new();
        for name in &names[1..] {
            rows.push(stage.row_of(&format!("jobs:{name}")).await);
        }
        rows
    };
    let held = rows().await;
    assert!(held.iter().all(|row| matches!(row, Row::Held { .. })), "{held:?}");

    stage.open(0, &names[0], "work");
    let first = invocations.remove(0);
    let id = first.request_id().to_owned();
    assert!(first.outcome().await.is_success(), "{}", stage.timeline());
    stage.said("released", &id).await;
    assert_eq!(stage.row_of("jobs:job0").await, Row::Free);
    renewed(&stage, &held).await;
    assert_eq!(rows().await, held, "{}", stage.timeline());

    for (name, invocation) in names[1..].iter().zip(invocations) {
        stage.open(0, name, "work");
        let id = invocation.request_id().to_owned();
        let outcome = invocation.outcome().await;
        assert!(outcome.is_success(), "{outcome:?}\n{}", stage.timeline());
        assert!(stage.has_said("lost", &id).is_none(), "{}", stage.timeline());
    }
}

/// It blocks past its deadline: nothing can end it, so nobody else may have its key.
#[tokio::test]
async fn a_timed_out_handler_that_goes_on_keeps_its_lease_and_its_late_response_gets_410() {
    let stage = managed().await;
    stage.open(0, "first", "work");
    let first = json!({ "id": "k", "name": "first", "then": "block" });
    let first = stage.environment(0).start_invocation(Invocation::from(first).timeout(Duration::from_secs(3)));
    let id = first.request_id().to_owned();
    assert_eq!(first.outcome().await.error_type(), Some("Sandbox.Timedout"), "{}", stage.timeline());
    let row = stage.row().await;
    let Row::Held { owner } = row.clone() else { panic!("{row:?}\n{}", stage.timeline()) };
    let second = stage.environment(0).start_invocation(json!({ "id": "k", "name": "second" }));
    let second_id = second.request_id().to_owned();
    stage.said("waiting", &second_id).await;
    renewed(&stage, std::slice::from_ref(&row)).await;
    assert_eq!(stage.row().await, row, "{}", stage.timeline());

    stage.open(0, "first", "blocked");
    stage.open(0, "second", "work");
    let refused = EventKind::AnswerRefused { request_id: id.clone(), status: 410 };
    stage.sandbox.log().wait_for(|event| event.kind == refused, SOON).await.unwrap();
    let outcome = second.outcome().await;
    assert!(outcome.is_success(), "{outcome:?}\n{}", stage.timeline());
    Cause::Freed("finished").check(&stage, &id, Some(&owner), &second_id, LEASE).await;
}

/// One that yields is ended by the layer itself.
#[tokio::test]
async fn a_handler_that_waits_past_its_deadline_is_ended_and_its_row_freed() {
    let stage = managed().await;
    let first = json!({ "id": "k", "name": "first" });
    let first = stage.environment(0).start_invocation(Invocation::from(first).timeout(Duration::from_secs(3)));
    let id = first.request_id().to_owned();
    let outcome = first.outcome().await;
    // Lambda's answer and the layer's are due at the same moment.
    assert!(matches!(outcome.error_type(), Some("Sandbox.Timedout" | "OutOfTime")), "{outcome:?}");
    let released = stage.said("released", &id).await;
    assert_eq!(released.field("reason").as_deref(), Some("dropped"), "{}", stage.timeline());
    assert_eq!(stage.row().await, Row::Free);
}
