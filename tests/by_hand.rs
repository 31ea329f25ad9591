//! Leases taken by hand, over the test double.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use futures_util::FutureExt as _;
use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Context, LambdaEvent};
use leasehold::session::{FailKind, ReleaseReason};
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Error, KeyState, Lease, LeaseLayer, Leasehold};
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

/// It would wait for the handler that it runs in.
#[tokio::test]
async fn a_layer_within_a_handler_that_holds_its_key_by_hand_is_told_at_once() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let layer = LeaseLayer::builder("orders:{id}").test_keeper(&keeper).build().unwrap();
    let inner = layer.layer(service_fn(async |_: LambdaEvent<Value>| Ok::<_, Error>("shipped")));
    let outer = LeaseLayer::builder("customers:{id}").test_keeper(&keeper).build().unwrap();
    let handler = |layered: bool| {
        let (locks, inner, keeper) = (locks.clone(), inner.clone(), keeper.clone());
        move |event: LambdaEvent<Value>| {
            let (locks, mut inner, keeper) = (locks.for_invocation(&event.context), inner.clone(), keeper.clone());
            async move {
                let lease = locks.acquire("orders:17", WAIT).await?;
                let mut call = async || {
                    let mut within = keeper.event(json!({ "id": 17 }));
                    within.context = event.context.clone();
                    inner.call(within).await
                };
                let told = call().await.unwrap_err().to_string();
                assert!(told.contains("holds `orders:17` already"), "layered: {layered}: {told}");
                lease.release().await?;
                assert_eq!(call().await.unwrap(), "shipped");
                Ok::<_, Error>(())
            }
        }
    };
    keeper.invoke(&mut outer.layer(service_fn(handler(true))), json!({ "id": 17 })).await.unwrap();
    handler(false)(LambdaEvent::new(json!({ "id": 17 }), context(&keeper))).await.unwrap();
}

/// As two records of a batch are: the one's handler gives back what the other one waits for.
#[tokio::test]
async fn a_layer_beside_a_handler_that_holds_its_key_by_hand_waits_for_it() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let (held, is_held) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = tokio::sync::oneshot::channel::<()>();
    let channels = std::sync::Mutex::new(Some((held, may_go_on)));
    let holding = service_fn(|event: LambdaEvent<Value>| {
        let (locks, channels) = (locks.for_invocation(&event.context), channels.lock().unwrap().take().unwrap());
        async move {
            let lease = locks.acquire("orders:17", WAIT).await?;
            channels.0.send(()).unwrap();
            channels.1.await.unwrap();
            lease.release().await
        }
    });
    let mut holding = LeaseLayer::builder("customers:{id}").test_keeper(&keeper).build().unwrap().layer(holding);
    let other = LeaseLayer::builder("orders:{id}").test_keeper(&keeper).build().unwrap();
    let other = other.layer(service_fn(async |_: LambdaEvent<Value>| Ok::<_, Error>("shipped")));
    let parcels = LeaseLayer::builder("parcels:{id}").test_keeper(&keeper).build().unwrap();
    let mut other = parcels.layer(other);
    let event = keeper.event(json!({ "id": 17 }));
    let mut beside = keeper.event(json!({ "id": 17 }));
    beside.context = event.context.clone();
    let waits = async {
        is_held.await.unwrap();
        let call = other.call(beside);
        let (answer, ()) = tokio::join!(call, async {
            tokio::task::yield_now().await;
            go_on.send(()).unwrap();
        });
        answer.unwrap()
    };
    let (held, answer) = tokio::join!(holding.call(event), waits);
    held.unwrap();
    assert_eq!(answer, "shipped");
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
async fn a_key_that_a_layer_holds_is_told_at_once_also_in_a_task_that_the_handler_spawned() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let handler = move |event: LambdaEvent<Value>| {
        let locks = locks.clone();
        async move {
            let inside = locks.for_invocation(&event.context);
            let mut told = vec![locks.acquire("orders:17", WAIT).await.unwrap_err().to_string()];
            let spawned = tokio::spawn(async move { inside.acquire("orders:17", WAIT).await.unwrap_err() });
            told.push(spawned.await.unwrap().to_string());
            Ok::<_, Error>(told)
        }
    };
    let layer = LeaseLayer::builder("orders:{id}").test_keeper(&keeper).build().unwrap();
    let told = keeper.invoke(&mut layer.layer(service_fn(handler)), json!({ "id": 17 })).await.unwrap();
    assert_eq!(told.len(), 2);
    for told in told {
        assert!(told.contains("`orders:17` already") && told.contains("work under the lease that it has"), "{told}");
    }
}

#[tokio::test]
async fn two_layers_on_one_key_are_told_what_to_change() {
    let keeper = TestKeeper::new();
    let handler = service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(()) });
    let inner = LeaseLayer::builder("orders:{id}").test_keeper(&keeper).build().unwrap();
    let outer = LeaseLayer::builder("orders:{orderId}").test_keeper(&keeper).build().unwrap();
    let mut service = outer.layer(inner.layer(handler));
    let refused = keeper.invoke(&mut service, json!({ "id": 17, "orderId": 17 })).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("keys, namespaces or tables of their own"), "{said}");
    assert!(!keeper.is_held("orders:17"));
}

#[tokio::test]
async fn all_that_take_leases_for_one_invocation_know_what_it_holds() {
    let (keeper, elsewhere) = (TestKeeper::new(), TestKeeper::new());
    let context = context(&keeper);
    let (first, second) = (by_hand(&keeper).for_invocation(&context), by_hand(&keeper).for_invocation(&context));
    let lease = first.acquire("imports", WAIT).await.unwrap();
    assert_eq!(second.acquire("imports", WAIT).await.unwrap_err().error_type(), "AlreadyHeld");
    // Another table's row, another keeper's, and that of another invocation are others.
    let table = Leasehold::builder().table("others").test_keeper(&keeper).build().unwrap().for_invocation(&context);
    drop(table.acquire("imports-of-others", WAIT).await.unwrap());
    drop(by_hand(&elsewhere).for_invocation(&context).acquire("imports", WAIT).await.unwrap());
    let other = by_hand(&keeper).for_invocation(&keeper.event(()).context);
    assert!(other.acquire("imports", WAIT).now_or_never().is_none(), "it waits");
    lease.release().await.unwrap();
    drop(second.acquire("imports", WAIT).await.unwrap());
}

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

#[test]
fn a_program_without_a_runtime_takes_and_gives_back() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let lease = locks.acquire_blocking("imports", WAIT).unwrap();
    lease.ensure_held().unwrap();
    assert!(lease.token().is_some());
    assert_eq!(lease.metrics().unwrap().attempts, 1);
    assert!(locks.inspect_blocking("imports").unwrap().is_held());
    lease.release().unwrap();
    assert!(!keeper.is_held("imports"));
    drop(locks.try_acquire_blocking("imports").unwrap().unwrap());
    assert!(!keeper.is_held("imports"));
    keeper.hold_elsewhere("imports");
    assert!(locks.try_acquire_blocking("imports").unwrap().is_none());
    assert_eq!(locks.acquire_blocking("imports", WAIT).unwrap_err().error_type(), "LeaseBusy");
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

#[test]
fn a_blocking_lease_that_is_lost_says_so_and_its_release_is_no_error() {
    let keeper = TestKeeper::new();
    let lease = by_hand(&keeper).acquire_blocking("imports", WAIT).unwrap();
    keeper.lose("imports");
    assert_eq!(lease.ensure_held().unwrap_err().error_type(), "LeaseLost");
    lease.release().unwrap();
}

#[test]
fn a_panic_under_a_blocking_lease_is_a_crash() {
    let keeper = TestKeeper::new();
    let lease = by_hand(&keeper).acquire_blocking("imports", WAIT).unwrap();
    let panicked = std::thread::spawn(move || {
        let _lease = lease;
        panic!("on purpose");
    });
    panicked.join().unwrap_err();
    let released = Happened::Released { key: "imports".to_owned(), reason: ReleaseReason::Dropped };
    assert!(keeper.happened().contains(&released));
}

/// A lease that blocking code took may come into a runtime, and go there.
#[test]
fn blocking_calls_within_a_runtime_are_refused_and_drops_are_not() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let (dropped, released) = (locks.acquire_blocking("a", WAIT).unwrap(), locks.acquire_blocking("b", WAIT).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let errors = [
            locks.acquire_blocking("imports", WAIT).unwrap_err(),
            locks.try_acquire_blocking("imports").unwrap_err(),
            locks.inspect_blocking("imports").unwrap_err(),
            dropped.metrics().unwrap_err(),
        ];
        let instead = ["`acquire`", "`try_acquire`", "`inspect`", "`Lease::metrics`"];
        for (error, instead) in errors.into_iter().zip(instead) {
            assert_eq!(error.error_type(), "BlockingInAsync");
            assert!(error.to_string().contains(&format!("await {instead} there")), "{error}");
        }
        drop(dropped);
        released.release().unwrap();
    });
    assert!(!keeper.is_held("a") && !keeper.is_held("b"));
    let asked = keeper.happened().into_iter().filter(|happened| matches!(happened, Happened::Asked { .. })).count();
    assert_eq!(asked, 2, "nothing was asked for within the runtime");
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
