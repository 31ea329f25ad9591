//! How many requests an invocation costs, counted on their way to DynamoDB: on no clock, so the same on every machine.

use std::time::Duration;

use leasehold_sandbox::Sandbox;
use leasehold_sandbox::faults::Step;
use serde_json::json;

use crate::stage::{SOON, free_elsewhere, function, hold_elsewhere, start};

/// What was asked about this key so far, in order.
fn asked(sandbox: &Sandbox, key: &str) -> Vec<Step> {
    let seen = sandbox.faults().unwrap().seen();
    seen.into_iter().filter(|passing| passing.key.as_deref() == Some(key)).map(|passing| passing.step).collect()
}

#[tokio::test]
async fn an_uncontended_invocation_takes_two_writes_and_no_read() {
    let sandbox = start(function("locked").await.fault_proxy(true)).await;
    let environment = sandbox.environment(0);
    for invocation in 1..=3 {
        assert!(environment.invoke(json!({ "id": "a" })).await.is_success(), "{}", sandbox.log().timeline());
        environment.wait_until_idle().await.unwrap();
        assert_eq!(asked(&sandbox, "jobs:a"), [Step::Acquire, Step::Release].repeat(invocation));
    }
    // Beside them only the one that opened the connection.
    let all = sandbox.faults().unwrap().seen();
    assert_eq!(all.len(), 7, "{all:?}");
}

#[tokio::test]
async fn a_refused_invocation_that_does_not_wait_takes_one_write() {
    let sandbox = start(function("locked").await.fault_proxy(true).env("LEASEHOLD_MAX_WAIT", "0s")).await;
    let environment = sandbox.environment(0);
    hold_elsewhere(&sandbox, "jobs:a").await;
    assert!(!environment.invoke(json!({ "id": "a" })).await.is_success(), "{}", sandbox.log().timeline());
    environment.wait_until_idle().await.unwrap();
    assert_eq!(asked(&sandbox, "jobs:a"), [Step::Acquire]);
}

#[tokio::test]
async fn an_invocation_that_waits_takes_one_ticket_and_reads_until_the_key_is_free() {
    let sandbox = start(function("locked").await.fault_proxy(true).env("LEASEHOLD_MAX_WAIT", "25s")).await;
    hold_elsewhere(&sandbox, "jobs:a").await;
    let invocation = sandbox.start_invocation(json!({ "id": "a" }));
    let looked_twice = async {
        while asked(&sandbox, "jobs:a").iter().filter(|step| **step == Step::Read).count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, looked_twice).await.unwrap();
    free_elsewhere(&sandbox, "jobs:a").await;
    assert!(invocation.outcome().await.is_success(), "{}", sandbox.log().timeline());
    sandbox.environment(0).wait_until_idle().await.unwrap();
    let writes: Vec<_> = asked(&sandbox, "jobs:a").into_iter().filter(|step| *step != Step::Read).collect();
    assert_eq!(writes, [Step::Acquire, Step::Ticket, Step::Acquire, Step::Release]);
}
