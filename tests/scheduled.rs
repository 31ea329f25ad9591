//! `hold_at_least` over the test double: what keeps its key, what frees it, and what others are told.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::layer::{AnswerFor, Answered};
use leasehold::testing::TestKeeper;
use leasehold::{Lease, LeaseGuard, LeaseLayer, Leasehold};
use serde_json::{Value, json};

const KEY: &str = "reports:nightly";
const MINIMUM: Duration = Duration::from_secs(600);

/// Fails where the event says so, and takes so long as it says; a guard of its lease is left behind where it says so.
async fn report(keeper: TestKeeper, guards: Arc<Mutex<Vec<LeaseGuard>>>, event: Value) -> Result<Value, Error> {
    keeper.advance(Duration::from_secs(event["takes"].as_u64().unwrap_or_default()));
    if event["guard"] == true {
        guards.lock().unwrap().push(Lease::current()?.guard()?);
    }
    if event["fail"] == true { Err("the report failed".into()) } else { Ok(json!("reported")) }
}

struct Stage {
    keeper: TestKeeper,
    guards: Arc<Mutex<Vec<LeaseGuard>>>,
}

impl Stage {
    fn new() -> Self {
        Self { keeper: TestKeeper::new(), guards: Arc::default() }
    }

    /// What one event is answered.
    async fn run(&self, event: Value) -> Result<Answered<Value>, String> {
        let (keeper, guards) = (self.keeper.clone(), self.guards.clone());
        let handler =
            service_fn(move |event: LambdaEvent<Value>| report(keeper.clone(), guards.clone(), event.payload));
        let layer = LeaseLayer::builder("reports:{job}").hold_at_least(MINIMUM).max_wait(Duration::ZERO);
        let layer = layer.test_keeper(&self.keeper).answer_for(AnswerFor::schedule()).build().unwrap();
        self.keeper.invoke(&mut layer.layer(handler), event).await.map_err(|error| error.to_string())
    }

    async fn runs(&self) -> bool {
        matches!(self.run(json!({ "job": "nightly" })).await, Ok(Answered::Handler(_)))
    }
}

#[tokio::test]
async fn a_duplicate_is_skipped_until_the_minimum_is_over_and_told_by_whom() {
    let stage = Stage::new();
    assert!(stage.runs().await);
    stage.keeper.advance(MINIMUM - Duration::from_secs(1));
    let Ok(Answered::Layer(skipped)) = stage.run(json!({ "job": "nightly" })).await else { panic!() };
    assert_eq!((&skipped["skipped"], &skipped["cause"]["retryAfterMs"]), (&json!(true), &json!(1_000)));
    assert_eq!(skipped["cause"]["holder"]["parked"], true);
    assert!(skipped["cause"]["message"].as_str().unwrap().contains("which is done"), "{skipped}");
    assert!(matches!(stage.run(json!({ "job": "weekly" })).await, Ok(Answered::Handler(_))), "another key");
    stage.keeper.advance(Duration::from_secs(1));
    assert!(stage.runs().await);
}

#[tokio::test]
async fn a_run_that_failed_may_be_repeated_at_once() {
    let stage = Stage::new();
    assert!(stage.run(json!({ "job": "nightly", "fail": true })).await.is_err());
    assert!(stage.runs().await);
}

#[tokio::test]
async fn what_took_longer_than_the_minimum_keeps_nothing() {
    let stage = Stage::new();
    assert!(stage.run(json!({ "job": "nightly", "takes": 600 })).await.is_ok());
    assert!(stage.runs().await);
}

#[tokio::test]
async fn a_guard_that_outlives_a_good_run_keeps_the_key_and_one_of_a_bad_run_frees_it() {
    for fail in [false, true] {
        let stage = Stage::new();
        let run = stage.run(json!({ "job": "nightly", "guard": true, "fail": fail })).await;
        assert_eq!(run.is_err(), fail);
        assert!(stage.keeper.is_held(KEY));
        stage.guards.lock().unwrap().clear();
        assert!(!stage.keeper.is_held(KEY));
        assert_eq!(stage.runs().await, fail);
    }
}

#[tokio::test]
async fn by_hand_a_release_keeps_the_key_and_a_drop_frees_it() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().hold_at_least(MINIMUM).test_keeper(&keeper).build().unwrap();
    drop(locks.acquire(KEY, Duration::ZERO).await.unwrap());
    locks.acquire(KEY, Duration::ZERO).await.unwrap().release().await.unwrap();
    assert!(locks.try_acquire(KEY).await.unwrap().is_none());
    keeper.advance(MINIMUM);
    assert!(locks.try_acquire(KEY).await.unwrap().is_some());
}

#[tokio::test]
async fn a_layer_that_only_observes_keeps_the_key_as_well_so_that_it_counts_its_duplicates() {
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::builder("reports:{job}").test_keeper(&keeper);
    let layer = layer.environment([("LEASEHOLD_MODE", "observe"), ("LEASEHOLD_HOLD_AT_LEAST", "10m")]).build().unwrap();
    let handler = service_fn(async |_: LambdaEvent<Value>| {
        tokio::task::yield_now().await;
        Ok::<_, Error>(json!("reported"))
    });
    let mut service = layer.layer(handler);
    for _ in 0..2 {
        assert_eq!(keeper.invoke(&mut service, json!({ "job": "nightly" })).await.unwrap(), "reported");
    }
    let refused = keeper.happened().iter().filter(|happened| format!("{happened:?}").contains("Busy")).count();
    assert_eq!(refused, 1);
}

#[test]
fn a_layer_for_single_records_takes_no_minimum() {
    let layer = LeaseLayer::<Value>::builder("orders:{body.id}").table("locks").hold_at_least(MINIMUM);
    let error = layer.per_record(ReportBatchItemFailures).build().unwrap_err();
    assert!(error.to_string().contains("`hold_at_least`"), "{error}");
}
