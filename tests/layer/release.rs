//! The lease goes back however the invocation ends, and what becomes of that changes no answer.

use std::future::Future;
use std::time::{Duration, Instant};

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Context, Diagnostic, LambdaEvent};
use leasehold::{Lease, Release, metrics};
use serde_json::{Value, json};
use tokio_test::{assert_pending, assert_ready_ok, task};

use crate::support::{Keeper, Peer, failed, granted, lost, order, settle};

/// A keeper's side that grants, and what it hears afterwards.
fn granting(keeper: Keeper, then: impl FnOnce(&mut Peer) + Send + 'static) -> std::thread::JoinHandle<Keeper> {
    std::thread::spawn(move || {
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        then(&mut peer);
        keeper
    })
}

async fn answer() -> Result<&'static str, Diagnostic> {
    Ok("done")
}

#[tokio::test]
async fn before_the_response_waits_for_the_write() {
    let keeper = Keeper::bind();
    let layer = keeper.layer::<Value>("orders:{id}").release(Release::BeforeResponse).build().unwrap();
    let mut service = layer.layer(service_fn(|_: LambdaEvent<Value>| answer()));
    keeper.accept_hello();
    let keeper = granting(keeper, |peer| assert_eq!(peer.free()["wait"], true));
    assert_eq!(service.call(order()).await.unwrap(), "done");
    keeper.join().unwrap();
}

/// A program may end with the drop, and a keeper on a thread of its own with it.
#[tokio::test]
async fn the_drop_of_a_programs_lease_waits_for_the_write_and_that_of_an_invocations_does_not() {
    for (in_an_invocation, waits) in [(false, true), (true, false)] {
        let keeper = Keeper::bind();
        let mut locks = keeper.by_hand();
        keeper.accept_hello();
        if in_an_invocation {
            let mut context = Context::default();
            context.request_id = "r-by-hand".to_owned();
            locks = locks.for_invocation(&context);
        }
        let keeper = granting(keeper, move |peer| assert_eq!(peer.free()["wait"], waits));
        drop(locks.acquire("orders:A-17", Duration::from_secs(2)).await.unwrap());
        keeper.join().unwrap();
    }
}

#[tokio::test]
async fn a_late_confirmation_is_not_waited_for_and_changes_no_answer() {
    let keeper = Keeper::bind();
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(|_: LambdaEvent<Value>| answer()));
    keeper.accept_hello();
    let keeper = granting(keeper, |peer| {
        peer.hear("release");
        peer.hear_end();
    });
    let (began, late) = (Instant::now(), metrics::counts().late_releases);
    assert_eq!(service.call(order()).await.unwrap(), "done");
    assert!((900..5_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert!(metrics::counts().late_releases > late);
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_failed_release_changes_no_answer() {
    for how in ["failed", "closed"] {
        let keeper = Keeper::bind();
        let mut service =
            keeper.layer("orders:{id}").build().unwrap().layer(service_fn(|_: LambdaEvent<Value>| answer()));
        keeper.accept_hello();
        let keeper = granting(keeper, move |peer| {
            peer.hear("release");
            if how == "failed" {
                peer.say(failed("server"));
            }
        });
        let failures = metrics::counts().failed_releases;
        assert_eq!(service.call(order()).await.unwrap(), "done", "{how}");
        assert!(metrics::counts().failed_releases > failures, "{how}");
        keeper.join().unwrap();
    }
}

#[tokio::test]
async fn a_loss_that_crosses_the_release_changes_no_answer() {
    let keeper = Keeper::bind();
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(|_: LambdaEvent<Value>| answer()));
    keeper.accept_hello();
    let keeper = granting(keeper, |peer| {
        peer.hear("release");
        peer.say(lost());
        peer.hear_end();
    });
    assert_eq!(service.call(order()).await.unwrap(), "done");
    keeper.join().unwrap();
}

/// A drop blocks, so the keeper answers from a thread.
fn hear_dropped(mut peer: Peer, reason: &'static str) -> std::thread::JoinHandle<Peer> {
    std::thread::spawn(move || {
        assert_eq!(peer.free()["reason"], reason);
        peer.hear_end();
        peer
    })
}

#[tokio::test]
async fn a_drop_while_the_lease_is_asked_for_takes_the_request_back() {
    for (begun, crossing) in [(false, false), (true, false), (true, true)] {
        let keeper = Keeper::bind();
        let mut service =
            keeper.layer("orders:{id}").build().unwrap().layer(service_fn(|_: LambdaEvent<Value>| answer()));
        keeper.accept_hello();
        let mut response = task::spawn(service.call(order()));
        assert_pending!(response.poll());
        let mut peer = if begun { keeper.accept_session() } else { keeper.accept() };
        if !begun {
            peer.hear("begin");
        }
        peer.hear_acquire();
        if crossing {
            peer.say(granted());
        }
        let keeper = hear_dropped(peer, "cancelled");
        drop(response);
        keeper.join().unwrap();
    }
}

#[tokio::test]
async fn a_drop_while_the_handler_runs_drops_the_handler_first() {
    struct Noisy;
    impl Drop for Noisy {
        fn drop(&mut self) {
            // Still under the lease: what the handler tidies up is covered.
            assert_eq!(Lease::current().unwrap().key().as_str(), "orders:A-17");
        }
    }
    let keeper = Keeper::bind();
    let inner = service_fn(|_: LambdaEvent<Value>| async {
        let _noisy = Noisy;
        std::future::pending::<Result<(), Diagnostic>>().await
    });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let (response, peer) = run_to_the_handler(&keeper, service.call(order())).await;
    let keeper = hear_dropped(peer, "dropped");
    drop(response);
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_drop_while_the_confirmation_is_awaited_sends_nothing_more() {
    let keeper = Keeper::bind();
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(|_: LambdaEvent<Value>| answer()));
    keeper.accept_hello();
    let (response, mut peer) = run_to_the_handler(&keeper, service.call(order())).await;
    assert_eq!(peer.hear("release")["reason"], "finished");
    drop(response);
    peer.hear_end();
}

#[tokio::test]
async fn a_drop_waits_for_a_silent_keeper_but_not_for_long() {
    let keeper = Keeper::bind();
    let inner = service_fn(|_: LambdaEvent<Value>| std::future::pending::<Result<(), Diagnostic>>());
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let (response, mut peer) = run_to_the_handler(&keeper, service.call(order())).await;
    let began = Instant::now();
    drop(response);
    assert!((240..4_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_eq!(peer.hear("release")["reason"], "dropped");
    peer.hear_end();
}

#[tokio::test]
async fn a_panic_releases() {
    let keeper = Keeper::bind();
    let inner = service_fn(|event: LambdaEvent<Value>| async move {
        assert!(event.payload.is_null(), "the handler's own");
        Ok::<_, Diagnostic>(())
    });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let keeper = granting(keeper, |peer| {
        assert_eq!(peer.free()["reason"], "dropped");
        peer.hear_end();
    });
    let error = tokio::spawn(service.call(order())).await.unwrap_err();
    assert!(error.is_panic());
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_panic_before_the_handlers_future_is_there_releases() {
    let keeper = Keeper::bind();
    let inner = service_fn(|event: LambdaEvent<Value>| {
        assert!(event.payload.is_null(), "the handler's own");
        std::future::ready(Ok::<_, Diagnostic>(()))
    });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let keeper = granting(keeper, |peer| {
        assert_eq!(peer.free()["reason"], "dropped");
        peer.hear_end();
    });
    assert!(tokio::spawn(service.call(order())).await.unwrap_err().is_panic());
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_slow_handler_is_ended_before_the_deadline() {
    let keeper = Keeper::bind();
    let inner = service_fn(|_: LambdaEvent<Value>| std::future::pending::<Result<(), Diagnostic>>());
    let layer = keeper.layer::<Value>("orders:{id}").reserve(Duration::from_millis(2_500));
    let layer = layer.end_before_deadline(Duration::from_millis(2_400)).build().unwrap();
    let mut service = layer.layer(inner);
    keeper.accept_hello();
    let keeper = granting(keeper, |peer| {
        assert_eq!(peer.free()["reason"], "dropped");
        peer.hear_end();
    });
    let began = Instant::now();
    let within = Some(Duration::from_secs(3));
    let error = service.call(crate::support::event_within(json!({ "id": 1 }), within)).await.unwrap_err();
    assert_eq!(Diagnostic::from(error).error_type, "OutOfTime");
    assert!((500..3_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    keeper.join().unwrap();
}

#[tokio::test]
async fn managed_instances_end_a_handler_at_its_deadline() {
    let keeper = Keeper::bind();
    let inner = service_fn(|_: LambdaEvent<Value>| std::future::pending::<Result<(), Diagnostic>>());
    let variables = [("AWS_LAMBDA_INITIALIZATION_TYPE", "lambda-managed-instances")];
    let layer = keeper.layer_under::<Value>("orders:{id}", &variables).reserve(Duration::from_millis(10));
    let mut service = layer.build().unwrap().layer(inner);
    keeper.accept_hello();
    let keeper = granting(keeper, |peer| {
        assert_eq!(peer.free()["reason"], "dropped");
    });
    let within = Some(Duration::from_millis(200));
    let error = service.call(crate::support::event_within(json!({ "id": 1 }), within)).await.unwrap_err();
    assert_eq!(Diagnostic::from(error).error_type, "OutOfTime");
    keeper.join().unwrap();
}

/// Polls an invocation to where its handler was polled once.
async fn run_to_the_handler<F: Future>(keeper: &Keeper, response: F) -> (task::Spawn<F>, Peer) {
    let mut response = task::spawn(response);
    assert!(response.poll().is_pending());
    let mut peer = keeper.accept_session();
    settle().await;
    assert!(response.poll().is_pending());
    peer.hear_acquire();
    peer.grant();
    settle().await;
    assert!(response.poll().is_pending());
    (response, peer)
}

#[tokio::test]
async fn a_service_serves_one_invocation_after_the_other() {
    let keeper = Keeper::bind();
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(|_: LambdaEvent<Value>| answer()));
    keeper.accept_hello();
    for _ in 0..3 {
        let (mut response, mut peer) = run_to_the_handler(&keeper, service.call(order())).await;
        peer.free();
        settle().await;
        assert_eq!(assert_ready_ok!(response.poll()), "done");
        peer.hear_end();
    }
}
