//! The extension's life: sockets left over, functions without a layer, invocations without a lock, freezes, SHUTDOWN.

use std::time::Duration;

use leasehold_sandbox::{Event, EventKind, demo::Said};
use serde_json::json;

use crate::stage::{SOON, TABLE, function, is_held, said, start};

fn extension_next(event: &Event) -> bool {
    matches!(event.kind, EventKind::ExtensionNext { .. })
}

fn response(event: &Event) -> bool {
    matches!(event.kind, EventKind::ResponsePosted { .. })
}

#[tokio::test]
async fn a_killed_extension_leaves_a_socket_that_the_next_one_takes_over() {
    let sandbox = start(function("locked").await).await;
    let environment = sandbox.environment(0);
    assert!(environment.invoke(json!({ "id": "a" })).await.is_success(), "{}", sandbox.log().timeline());
    environment.wait_until_idle().await.unwrap();
    environment.kill_extension().await.unwrap();
    let outcome = environment.invoke(json!({ "id": "a" })).await;
    // The crash costs the invocation that meets it, and none after it.
    let outcome = if outcome.is_success() { outcome } else { environment.invoke(json!({ "id": "a" })).await };
    assert!(outcome.is_success(), "{}", sandbox.log().timeline());
    assert!(environment.socket().unwrap().exists());
}

#[tokio::test]
async fn without_a_layer_next_is_called_while_the_handler_runs() {
    let sandbox = start(function("without-layer").await).await;
    let environment = sandbox.environment(0);
    environment.start().await.unwrap();
    let mark = sandbox.log().len();
    assert!(environment.invoke(json!({ "id": "a" })).await.is_success());
    environment.wait_until_idle().await.unwrap();
    let invoked = |event: &Event| matches!(event.kind, EventKind::ExtensionInvoked { .. });
    let events = sandbox.log().events();
    let invoked = events.iter().skip(mark).find(|event| invoked(event)).unwrap();
    let next = events.iter().skip(invoked.index).find(|event| extension_next(event)).unwrap();
    assert!(next.at - invoked.at < Duration::from_secs(1), "Next was held though no layer exists");
}

#[tokio::test]
async fn an_invocation_without_a_lock_holds_next_only_while_it_runs() {
    let sandbox = start(function("locked").await.env("LEASEHOLD_MISSING_PATH", "unlocked")).await;
    let environment = sandbox.environment(0);
    let outcome = environment.invoke(json!({ "sleep_ms": 300 })).await;
    assert!(outcome.is_success(), "{outcome:?}\n{}", sandbox.log().timeline());
    environment.wait_until_idle().await.unwrap();
    let at = |wanted: &dyn Fn(&Event) -> bool, from: usize| {
        sandbox.log().events().into_iter().skip(from).find(|event| wanted(event)).unwrap()
    };
    let begun = at(&|event| matches!(event.kind, EventKind::RuntimeInvoked { .. }), 0);
    let next = at(&extension_next, begun.index);
    // The handler sleeps for 300 ms; the session ends with it, and the response is posted meanwhile.
    assert!(next.at - begun.at >= Duration::from_millis(300), "Next was not held while the handler ran");
    let answered = at(&response, begun.index);
    assert!(next.at.saturating_sub(answered.at) < Duration::from_secs(1), "Next was held though nothing was locked");
    assert!(sandbox.tables().rows(TABLE).await.unwrap().is_empty(), "a row was written");
}

#[tokio::test]
async fn once_the_environment_is_idle_the_row_is_free() {
    let sandbox = start(function("locked").await).await;
    let environment = sandbox.environment(0);
    for _ in 0..5 {
        assert!(environment.invoke(json!({ "id": "a" })).await.is_success());
        // Idle is when the extension has called Next: from then on the environment may freeze.
        environment.wait_until_idle().await.unwrap();
        assert!(!is_held(&sandbox, "jobs:a").await, "{}", sandbox.log().timeline());
    }
}

#[tokio::test]
async fn a_frozen_holder_that_thaws_after_its_lease_has_lost_it() {
    let builder = function("locked").await.environments(2);
    let builder = builder.env("LEASEHOLD_LEASE_DURATION", "1s").env("LEASEHOLD_MAX_WAIT", "30s");
    let sandbox = start(builder.timeout(Duration::from_secs(60))).await;
    let frozen = sandbox.environment(0).start_invocation(json!({ "id": "a", "sleep_ms": 500 }));
    said(&sandbox, "work began", frozen.request_id()).await;
    sandbox.environment(0).freeze().await.unwrap();
    let next = sandbox.environment(1).start_invocation(json!({ "id": "a" }));
    let (_, taken) = said(&sandbox, "acquired", next.request_id()).await;
    assert!(taken.took_over(), "a frozen holder can't have freed its lock");
    assert!(next.outcome().await.is_success());
    sandbox.environment(0).thaw().await.unwrap();
    let outcome = frozen.outcome().await;
    assert_eq!(outcome.error_type(), Some("LeaseLost"), "{outcome:?}\n{}", sandbox.log().timeline());
}

#[tokio::test]
async fn shutdown_drains_every_lease() {
    let sandbox = start(function("concurrent").await.managed_instances(4).timeout(Duration::from_secs(60))).await;
    let environment = sandbox.environment(0);
    environment.start().await.unwrap();
    let ids = ["a", "b", "c"];
    let mut handles = Vec::new();
    for id in ids {
        handles.push(environment.start_invocation(json!({ "id": id, "sleep_ms": 50_000 })));
    }
    for handle in &handles {
        said(&sandbox, "work began", handle.request_id()).await;
    }
    // The runtime's end: SHUTDOWN comes to the extension, which has to free all three.
    environment.kill_runtime().await.unwrap();
    for handle in handles {
        said(&sandbox, "released", handle.request_id()).await;
        assert!(!handle.outcome().await.is_success());
    }
    for id in ids {
        assert!(!is_held(&sandbox, &format!("jobs:{id}")).await, "{id} is still held");
    }
    let shutdown = |event: &Event| matches!(event.kind, EventKind::ShutdownSent { .. });
    sandbox.log().wait_for(shutdown, SOON).await.unwrap();
    assert_eq!(sandbox.log().count(|event| Said::in_event(event).is_some_and(|said| said.message == "lost")), 0);
}

#[tokio::test]
async fn a_function_that_cleans_tmp_does_not_lose_its_keeper() {
    let sandbox = start(function("locked").await.freeze(false)).await;
    let environment = sandbox.environment(0);
    assert!(environment.invoke(json!({ "id": "a" })).await.is_success());
    environment.wait_until_idle().await.unwrap();
    std::fs::remove_dir_all(environment.socket().unwrap().parent().unwrap()).unwrap();
    sandbox.log().wait_for(|event| event.is_output("is bound again"), SOON).await.unwrap();
    let outcome = environment.invoke(json!({ "id": "a" })).await;
    assert!(outcome.is_success(), "{outcome:?}\n{}", sandbox.log().timeline());
}
