//! All that takes leases for one invocation, by hand and by layers, knows what it holds: nothing waits for itself.

use futures_util::FutureExt as _;
use lambda_runtime::LambdaEvent;
use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use leasehold::testing::TestKeeper;
use leasehold::{Error, LeaseLayer, Leasehold};
use serde_json::{Value, json};

use super::{WAIT, by_hand, context};

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
