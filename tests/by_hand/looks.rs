//! Keys that are only looked at, and what a lease has taken.

use std::time::Duration;

use lambda_runtime::LambdaEvent;
use lambda_runtime::tower::{Layer as _, service_fn};
use leasehold::session::FailKind;
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{KeyState, Lease, LeaseLayer, Leasehold};
use serde_json::{Value, json};

use super::{WAIT, by_hand};

#[tokio::test]
async fn a_key_is_looked_at_without_being_taken() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().namespace("prod").test_keeper(&keeper).build().unwrap();
    assert_eq!(locks.inspect("imports").await.unwrap(), KeyState::Absent);
    let lease = locks.acquire("imports", WAIT).await.unwrap();
    let KeyState::Held { owner, version, lease: length, .. } = locks.inspect("imports").await.unwrap() else {
        panic!()
    };
    assert_eq!((Some(owner), version), (lease.owner(), lease.token().map(|token| token.get())));
    assert_eq!(length, Duration::from_secs(30));
    lease.ensure_held().unwrap();
    lease.release().await.unwrap();
    let state = locks.inspect("imports").await.unwrap();
    assert!(matches!(state, KeyState::Free { .. }) && !state.is_held(), "{state:?}");
    keeper.hold_elsewhere_for("prod/imports", Duration::from_secs(20));
    keeper.advance(Duration::from_secs(5));
    let KeyState::Held { holder, retry_after, unchanged_for, .. } = locks.inspect("imports").await.unwrap() else {
        panic!()
    };
    assert_eq!((retry_after, unchanged_for), (Duration::from_secs(15), Duration::from_secs(5)));
    assert_eq!(holder.unwrap().function, "elsewhere");
    let looks = keeper.happened().into_iter().filter(|happened| matches!(happened, Happened::Inspected { .. })).count();
    assert_eq!(looks, 4);
}

#[tokio::test]
async fn a_look_fails_with_the_errors_of_an_acquisition() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    for (kind, name) in [
        (FailKind::ForeignRow, "ForeignRow"),
        (FailKind::MalformedRow, "MalformedRow"),
        (FailKind::AccessDenied, "AccessDenied"),
        (FailKind::Timeout, "StoreUnavailable"),
        (FailKind::ShuttingDown, "KeeperGone"),
    ] {
        keeper.fail(kind);
        assert_eq!(locks.inspect("imports").await.unwrap_err().error_type(), name);
    }
    assert_eq!(locks.inspect("").await.unwrap_err().error_type(), "KeyInvalid");
    keeper.vanish();
    assert_eq!(locks.inspect("imports").await.unwrap_err().error_type(), "KeeperMissing");
}

#[tokio::test]
async fn a_lease_tells_what_it_has_taken() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    keeper.hold_elsewhere_for("imports", Duration::from_secs(1));
    let lease = locks.acquire("imports", WAIT).await.unwrap();
    keeper.advance(Duration::from_secs(25));
    let metrics = lease.metrics().await.unwrap();
    assert_eq!((metrics.waited, metrics.attempts, metrics.renewals), (Duration::from_secs(1), 2, 2));
    assert_eq!((metrics.write_requests, metrics.write_capacity_units), (4, None));
    keeper.stop_renewing();
    keeper.advance(Duration::from_secs(20));
    let (first, second) = tokio::join!(lease.metrics(), lease.metrics());
    assert_eq!(first.unwrap(), second.unwrap());
    keeper.lose("imports");
    assert!(lease.metrics().await.unwrap().renewal_failures > 0, "a lost lease has its counts");
    let handle: Lease = (*lease).clone();
    lease.release().await.unwrap();
    assert_eq!(handle.metrics().await.unwrap_err().error_type(), "NoLease");

    let lease = locks.acquire("exports", WAIT).await.unwrap();
    keeper.vanish();
    assert_eq!(lease.metrics().await.unwrap_err().error_type(), "KeeperGone");
}

#[tokio::test]
async fn a_lease_of_a_mode_that_takes_none_has_taken_nothing() {
    let keeper = TestKeeper::new();
    let off = Leasehold::builder().test_keeper(&keeper).environment([("LEASEHOLD_MODE", "off")]).build().unwrap();
    let lease = off.acquire("imports", WAIT).await.unwrap();
    assert_eq!(lease.metrics().await.unwrap().write_requests, 0);
}

#[tokio::test]
async fn a_layers_handler_asks_for_its_counts() {
    let keeper = TestKeeper::new();
    let handler = service_fn(|_: LambdaEvent<Value>| async { Lease::current()?.metrics().await });
    let layer = LeaseLayer::builder("orders:{id}").test_keeper(&keeper).build().unwrap();
    let metrics = keeper.invoke(&mut layer.layer(handler), json!({ "id": 17 })).await.unwrap();
    assert_eq!((metrics.attempts, metrics.write_requests), (1, 1));
}
