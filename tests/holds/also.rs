//! Two keys at once, while a deployment changes the template.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::session::{FailKind, ReleaseReason};
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Lease, LeaseLayer, Leasehold, MissingPath, OnCrash, OnUnavailable};
use serde_json::{Value, json};

use super::{asked_and_released, layer, refusal};

const NEW: &str = "orders:{id}";
const OLD: &str = "legacy:{id}";

async fn held(_: LambdaEvent<Value>) -> Result<Value, Error> {
    let lease = Lease::current()?;
    lease.ensure_held()?;
    Ok(json!({ "key": lease.key().as_str(), "token": lease.token() }))
}

fn order() -> Value {
    json!({ "id": 7 })
}

#[tokio::test]
async fn both_deployments_take_both_keys_in_one_order_and_give_the_last_one_back_first() {
    for (own, also) in [(NEW, OLD), (OLD, NEW)] {
        let keeper = TestKeeper::new();
        let mut service = layer(own, &keeper).also(also).build().unwrap().layer(service_fn(held));
        let answer = keeper.invoke(&mut service, order()).await.unwrap();
        // The handle is on the layer's own key, with its token: the second one that was given out for `orders:`.
        let (key, token) = if own == NEW { ("orders:7", 2) } else { ("legacy:7", 1) };
        assert_eq!(answer, json!({ "key": key, "token": token }));
        assert_eq!(
            asked_and_released(&keeper),
            ["asked legacy:7", "asked orders:7", "released orders:7", "released legacy:7"]
        );
    }
}

#[tokio::test]
async fn a_state_is_of_the_layers_own_key() {
    async fn counts(_: LambdaEvent<Value>) -> Result<Value, Error> {
        let lease = Lease::current()?;
        let runs: u32 = lease.state().await?.unwrap_or_default();
        if runs == 0 {
            lease.save_state(&1).await?
        } else {
            lease.save_state_on_release(&(runs + 1))?
        }
        Ok(json!(runs))
    }
    for (own, also) in [(NEW, OLD), (OLD, NEW)] {
        let keeper = TestKeeper::new();
        let mut service = layer(own, &keeper).also(also).build().unwrap().layer(service_fn(counts));
        for runs in 0..4 {
            assert_eq!(keeper.invoke(&mut service, order()).await.unwrap(), runs);
        }
        let left = |template: &str| keeper.state_left::<u32>(&template.replace("{id}", "7"));
        assert_eq!((left(own), left(also)), (Some(4), None));
    }
}

#[tokio::test]
async fn one_deployment_waits_for_the_other() {
    // The old version knows its own template only.
    let keeper = TestKeeper::new();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (go, may_go) = tokio::sync::oneshot::channel::<()>();
    let channels = std::sync::Arc::new(std::sync::Mutex::new(Some((begun, may_go))));
    let old = layer(OLD, &keeper).build().unwrap().layer(service_fn(move |_: LambdaEvent<Value>| {
        let (begun, may_go) = channels.lock().unwrap().take().unwrap();
        async move {
            begun.send(()).unwrap();
            may_go.await.unwrap();
            Ok::<_, Error>(json!("old"))
        }
    }));
    let mut new = layer(NEW, &keeper).also(OLD).build().unwrap().layer(service_fn(held));
    let (mut old, at_old) = (old, keeper.clone());
    let old = tokio::spawn(async move { at_old.invoke(&mut old, order()).await.map_err(|error| error.to_string()) });
    has_begun.await.unwrap();
    let mut waiting = Box::pin(keeper.invoke(&mut new, order()));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert!(!keeper.is_held("orders:7"), "nothing is held while the first key is waited for");
    go.send(()).unwrap();
    assert_eq!(old.await.unwrap().unwrap(), json!("old"));
    assert_eq!(waiting.await.unwrap()["key"], "orders:7");
}

#[tokio::test]
async fn the_error_names_the_key_that_was_busy_and_the_other_goes_back_at_once() {
    for busy_key in ["legacy:7", "orders:7"] {
        let keeper = TestKeeper::new();
        keeper.hold_elsewhere(busy_key);
        // No work was begun, so a crash's rule is not for it.
        let layer = layer(NEW, &keeper).also(OLD).on_crash(OnCrash::Expire).max_wait(Duration::from_secs(3));
        let mut service = layer.build().unwrap().layer(service_fn(held));
        let error = refusal(keeper.invoke(&mut service, order()).await);
        let leasehold::Error::LeaseBusy(busy) = &error else { panic!("{error}") };
        assert_eq!((busy.key.as_str(), busy.waited), (busy_key, Duration::from_secs(3)));
        assert!(error.to_string().starts_with(&format!("`{busy_key}` is held by")), "{error}");
        keeper.free_elsewhere(busy_key);
        assert!(keeper.invoke(&mut service, order()).await.is_ok(), "nothing is left behind");
        let given_back = keeper.happened().into_iter().find(|happened| matches!(happened, Happened::Released { .. }));
        let cancelled = Happened::Released { key: "legacy:7".to_owned(), reason: ReleaseReason::Cancelled };
        assert_eq!(given_back == Some(cancelled), busy_key == "orders:7");
    }
}

#[tokio::test]
async fn one_wait_is_for_both() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere_for("legacy:7", Duration::from_secs(2));
    keeper.hold_elsewhere_for("orders:7", Duration::from_secs(4));
    let mut patient =
        layer(NEW, &keeper).also(OLD).max_wait(Duration::from_secs(5)).build().unwrap().layer(service_fn(held));
    assert!(keeper.invoke(&mut patient, order()).await.is_ok());

    let keeper = TestKeeper::new();
    keeper.hold_elsewhere_for("legacy:7", Duration::from_secs(2));
    keeper.hold_elsewhere_for("orders:7", Duration::from_secs(4));
    let mut hasty =
        layer(NEW, &keeper).also(OLD).max_wait(Duration::from_secs(3)).build().unwrap().layer(service_fn(held));
    let leasehold::Error::LeaseBusy(busy) = refusal(keeper.invoke(&mut hasty, order()).await) else { panic!() };
    // Two seconds went to the first: one was left for the second.
    assert_eq!((busy.key.as_str(), busy.waited), ("orders:7", Duration::from_secs(3)));
}

#[tokio::test]
async fn the_loss_of_either_is_the_loss_of_the_lease() {
    for lost_key in ["legacy:7", "orders:7"] {
        let keeper = TestKeeper::new();
        let at_keeper = keeper.clone();
        let handler = service_fn(move |_: LambdaEvent<Value>| {
            let keeper = at_keeper.clone();
            async move {
                let lease = Lease::current().unwrap();
                keeper.lose(lost_key);
                let error = lease.ensure_held().unwrap_err();
                assert!(error.to_string().contains(&format!("the lease on `{lost_key}` was lost")), "{error}");
                std::future::pending::<Result<Value, Error>>().await
            }
        });
        let mut service = layer(NEW, &keeper).also(OLD).build().unwrap().layer(handler);
        let leasehold::Error::LeaseLost(lost) = refusal(keeper.invoke(&mut service, order()).await) else { panic!() };
        assert_eq!(lost.key.as_str(), lost_key);
        assert!(!keeper.is_held("legacy:7") && !keeper.is_held("orders:7"), "the other one goes back");
    }
}

#[tokio::test]
async fn a_key_that_is_lost_while_the_other_is_waited_for_ends_the_wait() {
    let keeper = TestKeeper::new();
    // Another handler of this test holds the second key, so that the first one waits without end.
    let locks = Leasehold::builder().test_keeper(&keeper).build().unwrap();
    let other = locks.acquire("orders:7", Duration::ZERO).await.unwrap();
    let mut service = layer(NEW, &keeper).also(OLD).build().unwrap().layer(service_fn(held));
    let mut waiting = Box::pin(keeper.invoke(&mut service, order()));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert!(keeper.is_held("legacy:7"));
    keeper.lose("legacy:7");
    let leasehold::Error::LeaseLost(lost) = refusal(waiting.await) else { panic!() };
    assert_eq!(lost.key.as_str(), "legacy:7");
    other.release().await.unwrap();
}

#[tokio::test]
async fn an_invocation_that_is_dropped_between_the_two_gives_the_first_one_back() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().test_keeper(&keeper).build().unwrap();
    let _other = locks.acquire("orders:7", Duration::ZERO).await.unwrap();
    let layer = layer(NEW, &keeper).also(OLD).on_crash(OnCrash::Expire);
    let mut service = layer.build().unwrap().layer(service_fn(held));
    let mut waiting = Box::pin(keeper.invoke(&mut service, order()));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(waiting);
    let released = Happened::Released { key: "legacy:7".to_owned(), reason: ReleaseReason::Cancelled };
    assert!(keeper.happened().contains(&released), "no work was begun under it");
    assert!(locks.try_acquire("legacy:7").await.unwrap().is_some());
}

#[tokio::test]
async fn where_both_templates_give_one_text_there_is_one_lock() {
    let keeper = TestKeeper::new();
    let mut service = layer("orders:{id}", &keeper).also("orders:{number}").build().unwrap().layer(service_fn(held));
    keeper.invoke(&mut service, json!({ "id": 7, "number": "7" })).await.unwrap();
    assert_eq!(asked_and_released(&keeper), ["asked orders:7", "released orders:7"]);
}

#[tokio::test]
async fn an_event_that_the_other_template_does_not_fit_is_as_missing_path_says() {
    let keeper = TestKeeper::new();
    let mut service = layer(NEW, &keeper).also("legacy:{number}").build().unwrap().layer(service_fn(held));
    let error = refusal(keeper.invoke(&mut service, order()).await);
    assert!(error.to_string().starts_with("no lock key from `legacy:{number}`"), "{error}");
    assert_eq!(asked_and_released(&keeper), Vec::<String>::new());

    let layer = layer(NEW, &keeper).also("legacy:{number}").missing_path(MissingPath::RunUnlocked);
    let mut service = layer.build().unwrap().layer(service_fn(held));
    assert_eq!(keeper.invoke(&mut service, order()).await.unwrap()["key"], "orders:7");
    assert_eq!(asked_and_released(&keeper), ["asked orders:7", "released orders:7"]);
}

#[tokio::test]
async fn a_key_of_an_outer_layer_is_already_held_whichever_of_the_two_it_is() {
    for outer in [NEW, OLD] {
        let keeper = TestKeeper::new();
        let inner = layer(NEW, &keeper).also(OLD).build().unwrap().layer(service_fn(held));
        let outer_layer = LeaseLayer::builder(outer).reserve(Duration::from_secs(5)).test_keeper(&keeper);
        let mut stacked = outer_layer.build().unwrap().layer(inner);
        let error = keeper.invoke(&mut stacked, order()).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("give the two layers, or the layer and what is taken by hand, keys"), "{text}");
    }
}

#[tokio::test]
async fn who_runs_unlocked_keeps_none_of_the_two() {
    let keeper = TestKeeper::new();
    let at_keeper = keeper.clone();
    let handler = service_fn(move |_: LambdaEvent<Value>| {
        let keeper = at_keeper.clone();
        async move { Ok::<_, Error>(json!([Lease::current().is_err(), keeper.is_held("legacy:7")])) }
    });
    // The first is granted, and waits for the second when DynamoDB goes away.
    let locks = Leasehold::builder().test_keeper(&keeper).build().unwrap();
    let other = locks.acquire("orders:7", Duration::ZERO).await.unwrap();
    let layer = layer(NEW, &keeper).also(OLD).on_unavailable(OnUnavailable::RunUnlocked);
    let mut service = layer.build().unwrap().layer(handler);
    let mut waiting = Box::pin(keeper.invoke(&mut service, order()));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    keeper.fail(FailKind::Connection);
    assert_eq!(waiting.await.unwrap(), json!([true, false]));
    drop(other);
}

#[test]
fn misuse_is_told_when_the_layer_is_built() {
    let builder = || LeaseLayer::<Value>::builder("orders:{detail.id}").table("locks");
    let same = builder().also(r#"orders:{detail["id"]}"#).build().unwrap_err();
    assert!(same.to_string().contains("`also` is the layer's own template"), "{same}");
    let broken = builder().also("legacy:{id").build().unwrap_err();
    assert!(broken.to_string().contains("`also`: "), "{broken}");
    let records = builder().also("legacy:{id}").per_record(ReportBatchItemFailures).build().unwrap_err();
    assert!(records.to_string().contains("is for layers over whole events"), "{records}");
}

#[tokio::test]
async fn the_metrics_are_those_of_both_leases() {
    async fn counted(_: LambdaEvent<Value>) -> Result<Value, Error> {
        let metrics = Lease::current()?.metrics().await?;
        Ok(json!([metrics.attempts, metrics.write_requests]))
    }
    let keeper = TestKeeper::new();
    let mut alone = layer(NEW, &keeper).build().unwrap().layer(service_fn(counted));
    assert_eq!(keeper.invoke(&mut alone, order()).await.unwrap(), json!([1, 1]));
    let mut both = layer(NEW, &keeper).also(OLD).build().unwrap().layer(service_fn(counted));
    assert_eq!(keeper.invoke(&mut both, order()).await.unwrap(), json!([2, 2]));
}
