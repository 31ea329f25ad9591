//! Leases taken by hand, over the test double.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Context, LambdaEvent};
use leasehold::session::{FailKind, ReleaseReason};
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Error, LeaseLayer, Leasehold};
use serde_json::{Value, json};

const WAIT: Duration = Duration::from_secs(2);

fn by_hand(keeper: &TestKeeper) -> Leasehold {
    Leasehold::builder().test_keeper(keeper).build().unwrap()
}

fn context(keeper: &TestKeeper) -> Context {
    keeper.event(()).unwrap().context
}

#[tokio::test]
async fn a_lease_is_held_until_it_is_released_or_dropped() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let lease = locks.acquire("imports", WAIT).await.unwrap();
    lease.ensure_held().unwrap();
    assert!(keeper.is_held("imports"));
    lease.release().await.unwrap();
    assert!(!keeper.is_held("imports"));
    drop(locks.acquire("imports", WAIT).await.unwrap());
    assert!(!keeper.is_held("imports"));
    let released = Happened::Released { key: "imports".to_owned(), reason: ReleaseReason::Finished };
    assert_eq!(keeper.happened().into_iter().filter(|happened| *happened == released).count(), 2);
}

#[tokio::test]
async fn a_busy_key_is_an_error_or_none() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    keeper.hold_elsewhere("imports");
    let Err(Error::LeaseBusy(busy)) = locks.acquire("imports", WAIT).await else { panic!() };
    assert_eq!(busy.waited, WAIT);
    assert!(locks.try_acquire("imports").await.unwrap().is_none());
    keeper.free_elsewhere("imports");
    assert!(locks.try_acquire("imports").await.unwrap().is_some());
}

#[tokio::test]
async fn try_acquire_tells_every_other_failure() {
    let keeper = TestKeeper::new();
    keeper.fail(FailKind::AccessDenied);
    assert_eq!(by_hand(&keeper).try_acquire("imports").await.unwrap_err().error_type(), "AccessDenied");
    assert_eq!(by_hand(&keeper).acquire("", WAIT).await.unwrap_err().error_type(), "KeyInvalid");
}

#[tokio::test]
async fn parts_of_a_program_wait_for_each_other() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let first = locks.acquire("imports", WAIT).await.unwrap();
    let release = async {
        tokio::task::yield_now().await;
        first.release().await.unwrap();
    };
    let (second, ()) = tokio::join!(locks.acquire("imports", WAIT), release);
    drop(second.unwrap());
}

#[tokio::test]
async fn a_key_that_the_invocation_holds_already_is_told_at_once() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper).for_invocation(&context(&keeper));
    let lease = locks.acquire("imports", WAIT).await.unwrap();
    assert_eq!(locks.clone().acquire("imports", WAIT).await.unwrap_err().error_type(), "AlreadyHeld");
    let other = locks.acquire("exports", WAIT).await.unwrap();
    lease.release().await.unwrap();
    drop(locks.acquire("imports", WAIT).await.unwrap());
    drop(other);

    let inside = locks.clone();
    let handler = move |_: LambdaEvent<Value>| {
        let inside = inside.clone();
        async move { Ok::<_, Error>(inside.acquire("orders:17", WAIT).await.unwrap_err().error_type()) }
    };
    let layer = LeaseLayer::builder("orders:{id}").test_keeper(&keeper).build().unwrap();
    let told = keeper.invoke(&mut layer.layer(service_fn(handler)), json!({ "id": 17 })).await.unwrap();
    assert_eq!(told, "AlreadyHeld");
}

#[tokio::test]
async fn an_invocations_wait_leaves_its_reserve_alone() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().reserve(Duration::from_secs(29)).test_keeper(&keeper).build().unwrap();
    let locks = locks.for_invocation(&context(&keeper));
    keeper.hold_elsewhere("imports");
    let Err(Error::LeaseBusy(busy)) = locks.acquire("imports", Duration::from_secs(60)).await else { panic!() };
    assert_eq!(busy.waited, Duration::from_secs(1));
}

#[tokio::test]
async fn a_lost_lease_is_told_and_its_release_is_no_error() {
    let keeper = TestKeeper::new();
    let lease = by_hand(&keeper).acquire("imports", WAIT).await.unwrap();
    keeper.lose("imports");
    assert_eq!(lease.ensure_held().unwrap_err().error_type(), "LeaseLost");
    assert_eq!(lease.lost().await.error_type(), "LeaseLost");
    lease.release().await.unwrap();
}

#[tokio::test]
async fn an_acquisition_that_is_dropped_is_taken_back() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let held = locks.acquire("imports", WAIT).await.unwrap();
    let mut waiting = tokio_test::task::spawn(locks.acquire("imports", WAIT));
    assert!(waiting.poll().is_pending());
    drop(waiting);
    held.release().await.unwrap();
    assert!(!keeper.is_held("imports"), "nobody waits for it any more");
}

#[tokio::test]
async fn the_modes_observe_and_off_refuse_nothing() {
    for mode in ["observe", "off"] {
        let keeper = TestKeeper::new();
        keeper.hold_elsewhere("imports");
        let builder = Leasehold::builder().test_keeper(&keeper).environment([("LEASEHOLD_MODE", mode)]);
        let lease = builder.build().unwrap().acquire("imports", WAIT).await.unwrap();
        lease.ensure_held().unwrap();
        lease.release().await.unwrap();
        let asked = keeper.happened().iter().any(|happened| matches!(happened, Happened::Asked { .. }));
        assert_eq!(asked, mode == "observe");
    }
}
