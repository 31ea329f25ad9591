//! Leases taken by hand, over the test double.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod blocking;
mod looks;
mod one_invocation;

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Context, LambdaEvent};
use leasehold::session::{FailKind, ReleaseReason};
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Error, LeaseLayer, Leasehold};
use serde_json::{Value, json};
use tokio::time::timeout;

const WAIT: Duration = Duration::from_secs(2);

fn by_hand(keeper: &TestKeeper) -> Leasehold {
    Leasehold::builder().test_keeper(keeper).build().unwrap()
}

fn context(keeper: &TestKeeper) -> Context {
    keeper.event(()).context
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
async fn who_does_not_wait_is_told_at_once_that_the_same_program_holds_it() {
    let keeper = TestKeeper::new();
    for mode in ["enforce", "observe"] {
        let locks = Leasehold::builder().test_keeper(&keeper).environment([("LEASEHOLD_MODE", mode)]).build().unwrap();
        let held = locks.try_acquire("stock:17").await.unwrap().unwrap();
        let second =
            timeout(Duration::from_secs(30), locks.try_acquire("stock:17")).await.expect("nothing to wait for");
        assert_eq!(second.unwrap().is_some(), mode == "observe");
        held.ensure_held().unwrap();
        held.release().await.unwrap();
    }
}

#[tokio::test]
async fn try_acquire_tells_every_other_failure() {
    let keeper = TestKeeper::new();
    keeper.fail(FailKind::AccessDenied);
    assert_eq!(by_hand(&keeper).try_acquire("imports").await.unwrap_err().error_type(), "AccessDenied");
    let nameless = by_hand(&keeper).acquire("", WAIT).await.unwrap_err();
    assert_eq!(nameless.error_type(), "KeyInvalid");
    // It names nothing that only a layer has.
    assert!(nameless.to_string().starts_with("no lock key from the text that was given by hand: "), "{nameless}");
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

#[tokio::test]
async fn a_release_takes_no_lease_away_from_a_guard() {
    let keeper = TestKeeper::new();
    let lease = by_hand(&keeper).acquire("stock:17", WAIT).await.unwrap();
    let guard = lease.guard().unwrap();
    let kept = lease.release().await.unwrap_err();
    assert_eq!(kept.error_type(), "ReleaseFailed");
    assert!(kept.to_string().contains("a guard still keeps it"), "{kept}");
    guard.ensure_held().unwrap();
    assert!(keeper.is_held("stock:17"));
    drop(guard);
    assert!(!keeper.is_held("stock:17"));

    let lease = by_hand(&keeper).acquire("stock:17", WAIT).await.unwrap();
    drop(lease.guard().unwrap());
    lease.release().await.unwrap();
    assert!(!keeper.is_held("stock:17"));
}

#[tokio::test]
async fn a_reserve_that_no_invocation_has_is_told_apart_from_one_that_came_late() {
    let keeper = TestKeeper::new();
    let handler = service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(()) });
    let layer = LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(40)).test_keeper(&keeper);
    let mut service = layer.build().unwrap().layer(handler);
    let refused = keeper.invoke(&mut service, json!({ "id": 17 })).await.unwrap_err();
    let Some(Error::DeadlineTooClose(too_close)) = refused.lease_error() else { panic!("{refused:?}") };
    assert!(too_close.is_of_every_invocation());
    let said = too_close.to_string();
    assert!(said.contains("the reserve of 40s is longer") && said.contains("30s were left when it began"), "{said}");

    // An outer layer that has waited makes the inner one late, also for the first invocation that it sees.
    let handler = service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(()) });
    let inner = LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(12)).test_keeper(&keeper);
    let outer = LeaseLayer::builder("tenants:{id}").reserve(Duration::from_secs(1)).max_wait(Duration::from_secs(25));
    let outer = outer.test_keeper(&keeper).build().unwrap();
    let mut service = outer.layer(inner.build().unwrap().layer(handler));
    keeper.hold_elsewhere_for("tenants:17", Duration::from_secs(20));
    let refused = keeper.invoke(&mut service, json!({ "id": 17 })).await.unwrap_err().to_string();
    assert!(refused.contains("10s are left") && refused.contains("up to 30s, so this one came late"), "{refused}");

    // In a handler that has used up most of its time, a reserve of 10 s is none that no invocation has.
    let locks = Leasehold::builder().reserve(Duration::from_secs(10)).test_keeper(&keeper).build().unwrap();
    let locks = locks.for_invocation(&context(&keeper));
    keeper.advance(Duration::from_secs(25));
    let Err(Error::DeadlineTooClose(late)) = locks.acquire("imports", WAIT).await else { panic!() };
    assert!(!late.is_of_every_invocation());
    assert!(late.to_string().contains("5s are left") && late.to_string().contains("up to 30s"), "{late}");
}
