//! What a handler can ask its lease, where it finds it, and what keeps it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use lambda_runtime::tower::{Layer as _, Service as _, ServiceBuilder, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::{Error, Lease, LeaseGuard, metrics};
use serde_json::{Value, json};

use crate::support::{Keeper, OWNER, Peer, event, order};

/// A keeper that serves one invocation: grants, then does what is asked, then hears it out.
fn serving(keeper: Keeper, meanwhile: impl FnOnce(&Keeper, &mut Peer) + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        meanwhile(&keeper, &mut peer);
        peer.free();
        peer.hear_end();
    })
}

fn held(valid_for_ms: u64) -> Value {
    json!({ "type": "checked", "state": "held", "valid_for_ms": valid_for_ms })
}

/// Runs a synchronous handler under a lease, with a keeper that does this meanwhile.
async fn ask<R: Send + 'static>(
    meanwhile: impl FnOnce(&Keeper, &mut Peer) + Send + 'static,
    question: impl Fn() -> R + Clone + Send + Sync + 'static,
) -> R {
    let keeper = Keeper::bind();
    let layer = keeper.layer::<Value>("orders:{id}").build().unwrap();
    let keeper = serving(keeper, meanwhile);
    let inner = service_fn(move |_: LambdaEvent<Value>| {
        let question = question.clone();
        async move { Ok::<_, Infallible>(question()) }
    });
    let Ok(answer) = layer.layer(inner).call(order()).await else { panic!("no answer") };
    keeper.join().unwrap();
    answer
}

#[tokio::test]
async fn the_handle_tells_key_token_and_owner() {
    let answer = ask(
        |_, _| {},
        || {
            let lease = Lease::current().unwrap();
            (lease.key().to_string(), lease.token().unwrap().get(), lease.owner().unwrap().to_string())
        },
    )
    .await;
    assert_eq!(answer, ("orders:A-17".to_owned(), 7, OWNER.to_owned()));
}

#[tokio::test]
async fn ensure_held_is_right_in_code_that_has_not_yielded() {
    let answers = ask(
        |keeper, _| {
            // One connection serves all questions.
            let mut check = keeper.accept();
            assert_eq!(check.hear("check")["owner"], OWNER);
            check.say(held(20_000));
            check.hear("check");
            check.say(json!({ "type": "checked", "state": "lost", "reason": "stolen" }));
            check.hear("check");
            check.say(json!({ "type": "checked", "state": "unknown" }));
        },
        || {
            let lease = Lease::current().unwrap();
            let left = lease.valid_for().unwrap();
            assert!(left > Duration::from_secs(19) && left <= Duration::from_secs(20), "{left:?}");
            [lease.ensure_held().unwrap_err(), lease.ensure_held().unwrap_err()]
        },
    )
    .await;
    assert_eq!(answers.each_ref().map(Error::error_type), ["LeaseLost", "LeaseLost"]);
    assert!(answers[0].to_string().contains("stolen"), "{}", answers[0]);
}

#[tokio::test]
async fn no_answer_within_fifty_milliseconds_is_unconfirmed_and_not_lost() {
    let unconfirmed = metrics::counts().unconfirmed;
    let (answer, took, again) = ask(
        |keeper, _| {
            let mut silent = keeper.accept();
            silent.hear("check");
            // What is asked next comes over a connection of its own: a late answer must not be taken for another's.
            let mut next = keeper.accept();
            silent.say_if_open(held(1));
            next.hear("check");
            next.say(held(9_000));
        },
        || {
            let lease = Lease::current().unwrap();
            let began = Instant::now();
            let answer = lease.ensure_held().unwrap_err();
            (answer, began.elapsed(), lease.valid_for().unwrap())
        },
    )
    .await;
    assert_eq!(answer.error_type(), "Unconfirmed");
    assert!((45..2_000).contains(&took.as_millis()), "{took:?}");
    assert!(again > Duration::from_secs(8), "{again:?}");
    assert!(metrics::counts().unconfirmed > unconfirmed);
}

#[tokio::test]
async fn a_broken_connection_is_made_anew_once() {
    let answer = ask(
        |keeper, _| {
            let mut first = keeper.accept();
            first.hear("check");
            first.say(held(5_000));
            drop(first);
            let mut second = keeper.accept();
            second.hear("check");
            second.say(held(4_000));
        },
        || {
            let lease = Lease::current().unwrap();
            lease.ensure_held().unwrap();
            lease.valid_for().unwrap()
        },
    )
    .await;
    assert!(answer <= Duration::from_secs(4), "{answer:?}");
}

/// Runs a handler that asks for so long, with a keeper that does this meanwhile.
async fn ask_within(limit: Duration, meanwhile: impl FnOnce(&Keeper, &mut Peer) + Send + 'static) -> Result<(), Error> {
    let keeper = Keeper::bind();
    let layer = keeper.layer::<Value>("orders:{id}").build().unwrap();
    let keeper = serving(keeper, meanwhile);
    let inner = service_fn(move |_: LambdaEvent<Value>| async move {
        let lease = Lease::current().unwrap();
        // A task of its own may ask as well.
        Ok::<_, Infallible>(tokio::spawn(async move { lease.ensure_held_within(limit).await }).await.unwrap())
    });
    let Ok(answer) = layer.layer(inner).call(order()).await else { panic!("no answer") };
    keeper.join().unwrap();
    answer
}

#[tokio::test]
async fn who_has_time_asks_again_until_there_is_an_answer_or_the_time_is_over() {
    let silent_then = |answer: Value| {
        move |keeper: &Keeper, _: &mut Peer| {
            let mut silent = keeper.accept();
            silent.hear("check");
            let mut next = keeper.accept();
            next.hear("check");
            next.say(answer);
        }
    };
    ask_within(Duration::from_secs(60), silent_then(held(9_000))).await.unwrap();
    let lost = json!({ "type": "checked", "state": "lost", "reason": "stolen" });
    let error = ask_within(Duration::from_secs(60), silent_then(lost)).await.unwrap_err();
    assert_eq!(error.error_type(), "LeaseLost");

    // Without time it is one question, as `ensure_held` asks it.
    let once = |keeper: &Keeper, _: &mut Peer| {
        let mut silent = keeper.accept();
        silent.hear("check");
        assert_eq!(silent.hear_out(), "");
        keeper.assert_alone();
    };
    assert_eq!(ask_within(Duration::ZERO, once).await.unwrap_err().error_type(), "Unconfirmed");
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_unconfirmed() {
    for line in ["nonsense\n", "{\"type\":\"released\",\"id\":1}\n", "{\"type\":\"error\",\"message\":\"no\"}\n"] {
        let answer = ask(
            move |keeper, _| {
                let mut check = keeper.accept();
                check.hear("check");
                check.say_raw(line);
            },
            || Lease::current().unwrap().ensure_held().unwrap_err(),
        )
        .await;
        assert_eq!(answer.error_type(), "Unconfirmed", "{line}");
    }
}

#[tokio::test]
async fn a_keeper_that_is_gone_is_found_out_without_yielding() {
    let keeper = Keeper::bind();
    let layer = keeper.layer::<Value>("orders:{id}").build().unwrap();
    let (runs, is_running) = mpsc::channel();
    let (gone, is_gone) = mpsc::channel();
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        is_running.recv().unwrap();
        drop((peer, keeper));
        gone.send(()).unwrap();
    });
    let is_gone = Arc::new(Mutex::new(is_gone));
    let inner = service_fn(move |_: LambdaEvent<Value>| {
        let (runs, is_gone) = (runs.clone(), is_gone.clone());
        async move {
            runs.send(()).unwrap();
            is_gone.lock().unwrap().recv().unwrap();
            Err::<(), _>(Lease::current().unwrap().ensure_held().unwrap_err())
        }
    });
    let error = layer.layer(inner).call(order()).await.unwrap_err();
    assert_eq!(Diagnostic::from(error).error_type, "KeeperGone");
    keeper.join().unwrap();
}

#[tokio::test]
async fn there_is_no_lease_outside_of_a_handler_and_in_a_task_that_it_spawned() {
    assert_eq!(Lease::current().unwrap_err().error_type(), "NoLease");
    let keeper = Keeper::bind();
    let layer = keeper.layer::<Value>("orders:{id}").build().unwrap();
    let keeper = serving(keeper, |_, _| {});
    let inner = service_fn(|_: LambdaEvent<Value>| async {
        let spawned = tokio::spawn(async { Lease::current().map(drop) }).await.unwrap();
        Ok::<_, Infallible>(spawned.unwrap_err().error_type())
    });
    assert_eq!(layer.layer(inner).call(order()).await.unwrap(), "NoLease");
    keeper.join().unwrap();
}

#[tokio::test]
async fn stacked_layers_nest_and_each_has_a_name() {
    let keeper = Keeper::bind();
    let outer = keeper.layer("tenants:{tenant}").build().unwrap();
    let inner = keeper.layer("orders:{id}").name("orders").build().unwrap();
    let service = ServiceBuilder::new().layer(outer).layer(inner).service_fn(|_: LambdaEvent<Value>| async {
        let key = |lease: Result<Lease, Error>| lease.map(|lease| lease.key().to_string());
        Ok::<_, Error>([
            key(Lease::current())?,
            key(Lease::named("orders"))?,
            key(Lease::named("tenants:{tenant}"))?,
            Lease::named("orders:{id}").unwrap_err().to_string(),
        ])
    });
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        keeper.accept_hello();
        let mut outer = keeper.accept_session();
        assert_eq!(outer.hear_acquire()["key"], "tenants:t1");
        outer.grant();
        let mut inner = keeper.accept_session();
        assert_eq!(inner.hear_acquire()["key"], "orders:A-17");
        inner.grant();
        inner.free();
        inner.hear_end();
        outer.free();
        outer.hear_end();
    });
    let mut service = service;
    let [current, orders, tenants, unknown] =
        service.call(event(json!({ "tenant": "t1", "id": "A-17" }))).await.unwrap();
    assert_eq!((current.as_str(), orders.as_str(), tenants.as_str()), ("orders:A-17", "orders:A-17", "tenants:t1"));
    assert!(unknown.contains("`orders:{id}`"), "{unknown}");
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_stacked_layer_on_the_same_row_is_told_at_once() {
    let keeper = Keeper::bind();
    let outer = keeper.layer("orders:{id}").build().unwrap();
    let inner = keeper.layer("orders:{other}").build().unwrap();
    let mut service = ServiceBuilder::new()
        .layer(outer)
        .layer(inner)
        .service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Diagnostic>(()) });
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        keeper.accept_hello();
        let mut outer = keeper.accept_session();
        outer.hear_acquire();
        outer.grant();
        let mut inner = keeper.accept();
        inner.hear("begin");
        inner.hear_end();
        outer.free();
    });
    let error = service.call(event(json!({ "other": "A-17", "id": "A-17" }))).await.unwrap_err();
    assert_eq!(Diagnostic::from(error).error_type, "AlreadyHeld");
    keeper.join().unwrap();
}

/// A handler that gives a guard away, as a streaming body or a spawned task takes one along.
async fn with_a_guard(keeper: &Keeper) -> (LeaseGuard, Peer) {
    let (give, take) = mpsc::channel();
    let inner = service_fn(move |_: LambdaEvent<Value>| {
        let give = give.clone();
        async move {
            give.send(Lease::current()?.guard()?).unwrap();
            Ok::<_, Error>("done")
        }
    });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let invocation = tokio::spawn(service.call(order()));
    let path = keeper.accept_in_background();
    let peer = tokio::task::spawn_blocking(move || {
        let mut peer = path.join().unwrap();
        peer.hear_acquire();
        peer.grant();
        peer
    });
    assert_eq!(invocation.await.unwrap().unwrap(), "done", "the answer does not wait for guards");
    (take.recv().unwrap(), peer.await.unwrap())
}

#[tokio::test]
async fn a_guard_keeps_the_lease_beyond_the_handlers_future() {
    let keeper = Keeper::bind();
    let (guard, mut peer) = with_a_guard(&keeper).await;
    peer.assert_silent();
    let another = guard.clone();
    drop(guard);
    peer.assert_silent();
    assert_eq!(another.key().as_str(), "orders:A-17");
    let keeper = std::thread::spawn(move || {
        assert_eq!(peer.free()["reason"], "finished");
        peer.hear_end();
    });
    drop(another);
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_guard_hears_of_a_loss_by_itself() {
    let keeper = Keeper::bind();
    let (guard, mut peer) = with_a_guard(&keeper).await;
    let task = tokio::spawn(async move { guard.lost().await.error_type() });
    peer.say(crate::support::lost());
    assert_eq!(task.await.unwrap(), "LeaseLost");
    peer.hear_end();
}

#[tokio::test]
async fn a_guard_dropped_by_a_panic_counts_as_a_crash() {
    let keeper = Keeper::bind();
    let (guard, mut peer) = with_a_guard(&keeper).await;
    let keeper = std::thread::spawn(move || {
        assert_eq!(peer.free()["reason"], "dropped");
        peer.hear_end();
    });
    let task = tokio::spawn(async move {
        let _guard = guard;
        panic!("the task's own");
    });
    assert!(task.await.unwrap_err().is_panic());
    keeper.join().unwrap();
}

#[cfg(feature = "dynamodb")]
#[tokio::test]
async fn the_transaction_condition_names_the_row_and_the_owner() {
    use aws_sdk_dynamodb::types::AttributeValue::S;

    let keeper = Keeper::bind();
    let layer = keeper.layer::<Value>("orders:{id}").key_attribute("pk").sort_key("sk", "lock").build().unwrap();
    let keeper = serving(keeper, |_, _| {});
    let inner = service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(Lease::current()?.condition_check()) });
    let check = layer.layer(inner).call(order()).await.unwrap().unwrap();
    keeper.join().unwrap();
    assert_eq!((check.table_name(), check.condition_expression()), ("locks", "#owner = :me"));
    assert_eq!(check.key()["pk"], S("orders:A-17".to_owned()));
    assert_eq!(check.key()["sk"], S("lock".to_owned()));
    assert_eq!(check.key().len(), 2);
    assert_eq!(check.expression_attribute_names().unwrap()["#owner"], "owner");
    assert_eq!(check.expression_attribute_values().unwrap()[":me"], S(OWNER.to_owned()));
}
