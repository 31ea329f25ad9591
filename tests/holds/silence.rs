//! Handlers that tell of their progress, and one that does not.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Lease, LeaseLayer, LeaseLayerBuilder, Leasehold};
use serde_json::{Value, json};

use super::{layer, refusal};

const SILENCE: Duration = Duration::from_secs(10);

fn told(keeper: &TestKeeper) -> usize {
    keeper.happened().iter().filter(|happened| matches!(happened, Happened::Progress { .. })).count()
}

fn silent_after(keeper: &TestKeeper) -> LeaseLayerBuilder<Value> {
    layer("imports:{id}", keeper).lease_duration(Duration::from_secs(3)).max_silence(SILENCE)
}

#[tokio::test]
async fn a_handler_that_tells_of_its_progress_runs_to_its_end() {
    let keeper = TestKeeper::new();
    let handler = {
        let keeper = keeper.clone();
        service_fn(move |_: LambdaEvent<Value>| {
            let keeper = keeper.clone();
            async move {
                let lease = Lease::current()?;
                for _ in 0..3 {
                    keeper.advance(SILENCE - Duration::from_secs(1));
                    lease.ensure_held()?;
                    // From a thread of its own, and without an executor.
                    let progress = lease.clone();
                    std::thread::spawn(move || progress.progress()).join().unwrap();
                }
                Ok::<_, Error>(json!("done"))
            }
        })
    };
    let mut service = silent_after(&keeper).build().unwrap().layer(handler);
    assert_eq!(keeper.invoke(&mut service, json!({ "id": 1 })).await.unwrap(), json!("done"));
    assert_eq!(told(&keeper), 3);
}

#[tokio::test]
async fn a_silent_handler_loses_its_lease_and_is_told_why() {
    let keeper = TestKeeper::new();
    let handler = {
        let keeper = keeper.clone();
        service_fn(move |_: LambdaEvent<Value>| {
            let keeper = keeper.clone();
            async move {
                // Never sooner than it was promised.
                keeper.advance(SILENCE);
                Lease::current().unwrap().ensure_held().unwrap();
                // A tenth of the silence for words that were not told, and what is left of the lease.
                keeper.advance(Duration::from_secs(1) + Duration::from_secs(3));
                tokio::task::yield_now().await;
                std::future::pending::<Result<Value, Error>>().await
            }
        })
    };
    let mut service = silent_after(&keeper).build().unwrap().layer(handler);
    let leasehold::Error::LeaseLost(lost) = refusal(keeper.invoke(&mut service, json!({ "id": 1 })).await) else {
        panic!()
    };
    assert!(lost.reason.contains("`max_silence`"), "{lost}");
}

#[tokio::test]
async fn progress_in_a_tight_loop_costs_a_line_a_tenth_of_the_silence() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().max_silence(SILENCE).test_keeper(&keeper).build().unwrap();
    let lease = locks.acquire("imports:1", Duration::ZERO).await.unwrap();
    for _ in 0..100 {
        (0..100).for_each(|_| lease.progress());
        keeper.advance(SILENCE / 100);
    }
    assert_eq!(told(&keeper), 10);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn without_a_longest_silence_progress_says_nothing() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().test_keeper(&keeper).build().unwrap();
    let lease = locks.acquire("imports:1", Duration::ZERO).await.unwrap();
    lease.progress();
    keeper.advance(Duration::from_secs(600));
    lease.ensure_held().unwrap();
    assert_eq!(told(&keeper), 0);
}

#[test]
fn a_silence_of_nothing_is_told_when_the_layer_is_built() {
    let error = LeaseLayer::<Value>::builder("a").table("t").max_silence(Duration::from_micros(5)).build().unwrap_err();
    assert!(error.to_string().contains("`max_silence` is 0"), "{error}");
}
