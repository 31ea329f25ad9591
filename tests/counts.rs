//! What a layer counts of invocations that run without a lock, or would; by itself, as the counts are the process's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::metrics::{LayerCounts, counts};
use leasehold::session::FailKind;
use leasehold::testing::TestKeeper;
use leasehold::{LeaseLayer, LeaseLayerBuilder, MissingPath, OnUnavailable};
use serde_json::{Value, json};

async fn done(_: LambdaEvent<Value>) -> Result<Value, Error> {
    // Time for what goes on in the background.
    tokio::task::yield_now().await;
    Ok(json!("done"))
}

fn layer(keeper: &TestKeeper, mode: &str) -> LeaseLayerBuilder<Value> {
    let layer = LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(5)).test_keeper(keeper);
    layer.environment([("LEASEHOLD_MODE", mode)])
}

/// Which counts one invocation adds to.
async fn counted(layer: LeaseLayer<Value>, keeper: &TestKeeper, payload: Value) -> Vec<&'static str> {
    let before = counts();
    let mut service = layer.layer(service_fn(done));
    assert_eq!(keeper.invoke(&mut service, payload).await.unwrap(), json!("done"));
    let now = counts();
    let of = |name, count: fn(&LayerCounts) -> u64| (count(&now) > count(&before)).then_some(name);
    [
        of("granted", |counts| counts.granted),
        of("busy", |counts| counts.busy),
        of("refused", |counts| counts.refused),
        of("unlocked_missing_path", |counts| counts.unlocked_missing_path),
        of("unlocked_unavailable", |counts| counts.unlocked_unavailable),
        of("would_have_run_unlocked", |counts| counts.would_have_run_unlocked),
        of("would_have_refused", |counts| counts.would_have_refused),
        of("would_have_waited", |counts| counts.would_have_waited),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[tokio::test]
async fn every_way_to_run_without_a_lock_has_its_count() {
    let keeper = TestKeeper::new();
    let unlocked = |mode: &str| {
        let layer =
            layer(&keeper, mode).missing_path(MissingPath::RunUnlocked).on_unavailable(OnUnavailable::RunUnlocked);
        layer.build().unwrap()
    };
    let observed = || layer(&keeper, "observe").build().unwrap();
    let order = || json!({ "id": 7 });

    assert_eq!(counted(unlocked("enforce"), &keeper, order()).await, ["granted"]);
    assert_eq!(counted(unlocked("enforce"), &keeper, json!({})).await, ["unlocked_missing_path"]);
    assert_eq!(counted(unlocked("observe"), &keeper, json!({})).await, ["would_have_run_unlocked"]);
    assert_eq!(counted(unlocked("off"), &keeper, json!({})).await, [""; 0]);
    assert_eq!(counted(observed(), &keeper, json!({})).await, ["would_have_refused"]);

    keeper.fail(FailKind::Connection);
    assert_eq!(counted(unlocked("enforce"), &keeper, order()).await, ["unlocked_unavailable"]);
    assert_eq!(counted(unlocked("observe"), &keeper, order()).await, ["would_have_run_unlocked"]);
    assert_eq!(counted(unlocked("off"), &keeper, order()).await, [""; 0]);
    assert_eq!(counted(observed(), &keeper, order()).await, ["would_have_refused"]);
}
