//! Freezes, and what they do to connections, answers under way and leases.

use std::time::Duration;

use leasehold_sandbox::faults::{self, Fault};

use crate::{
    stage::{Row, SOON, Stage, staged},
    steps::{FIRST, Step, event},
};

#[tokio::test]
async fn idle_connections_that_are_cut_during_a_freeze_cost_no_invocation() {
    let stage = Stage::warm(staged(Duration::from_secs(60)).await.freeze(true)).await;
    stage.open(0, FIRST, "work");
    for _ in 0..5 {
        let outcome = stage.environment(0).invoke(event(FIRST)).await;
        assert!(outcome.is_success(), "{outcome:?}\n{}", stage.timeline());
        assert_eq!(stage.row_when_idle(0).await, Row::Free, "{}", stage.timeline());
        stage.faults().cut_connections();
    }
}

/// Longer frozen than a renewal may take, shorter than the lease lasts.
#[tokio::test]
async fn an_answer_that_waits_in_the_buffer_over_a_freeze_counts() {
    let lease = Duration::from_secs(9);
    let stage = Stage::warm(staged(lease).await).await;
    let gate = stage.faults().inject(faults::Step::Renew, 1, Fault::HoldReply);
    let first = stage.environment(0).start_invocation(event(FIRST));
    gate.reached(SOON).await.unwrap();
    let renewed = stage.version().await.unwrap();
    stage.environment(0).freeze().await.unwrap();
    gate.open();
    tokio::time::sleep(lease / 3 + Duration::from_millis(400)).await;
    stage.environment(0).thaw().await.unwrap();
    // With the answer the next renewal fits; without it one would be refused first.
    let next_landed = async {
        while stage.version().await.unwrap() == renewed {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, next_landed).await.unwrap_or_else(|_| panic!("{}", stage.timeline()));
    assert_eq!(stage.faults().count(faults::Step::Renew), 2, "{}", stage.timeline());
    stage.open(0, FIRST, "work");
    let outcome = first.outcome().await;
    assert!(outcome.is_success(), "{outcome:?}\n{}", stage.timeline());
    assert_eq!(stage.row_when_idle(0).await, Row::Free);
}

/// Nobody has watched the row: what lets the next one take it at once is DynamoDB's own time.
#[tokio::test]
async fn a_fresh_environment_takes_over_from_a_frozen_one_by_server_time() {
    let lease = Duration::from_secs(1);
    let stage = Stage::warm(staged(lease).await.env("LEASEHOLD_MAX_WAIT", "0s")).await;
    let first = stage.reach(Step::Running).await.first;
    let id = first.request_id().to_owned();
    stage.environment(0).freeze().await.unwrap();
    tokio::time::sleep(lease + Duration::from_secs(8)).await;
    stage.open(1, "second", "work");
    let second = stage.environment(1).start_invocation(event("second"));
    let acquired = stage.said("acquired", second.request_id()).await;
    assert!(acquired.took_over(), "{}", stage.timeline());
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    stage.environment(0).thaw().await.unwrap();
    stage.said("lost", &id).await;
    assert_eq!(first.outcome().await.error_type(), Some("LeaseLost"), "{}", stage.timeline());
    assert_eq!(stage.row_when_idle(0).await, Row::Free);
}
