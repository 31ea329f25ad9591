//! What is sent when, poll by poll, and that the handler runs once or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::InvocationError;
use serde_json::{Value, json};
use tokio_test::{assert_pending, assert_ready, assert_ready_ok, task};
use tower_test::mock;

use crate::support::{Keeper, at_risk, event, event_within, granted, order, secured, settle};

#[tokio::test]
async fn begin_acquire_handler_release_answer() {
    let keeper = Keeper::bind();
    let (inner, mut handler) = mock::pair::<LambdaEvent<Value>, Value>();
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();

    let mut response = task::spawn(service.call(order()));
    assert_pending!(response.poll());
    let mut peer = keeper.accept();
    let begin = peer.hear("begin");
    assert_eq!(begin["request_id"], "r-1");
    assert_eq!(begin["deadline_ms"], Value::Null);
    // Of one version there is no choice to wait for.
    let acquire = peer.hear_acquire();
    assert_eq!(acquire["key"], "orders:A-17");
    assert_eq!(acquire["table"], json!({ "name": "locks", "key_attribute": "key" }));
    assert_eq!((&acquire["lease_ms"], &acquire["wait_ms"]), (&json!(30_000), &json!(2_000)));
    assert_eq!(acquire["answer_within_ms"], Value::Null);
    assert_eq!(acquire["polling"], Value::Null, "by tickets");
    assert_eq!((&acquire["on_crash"], &acquire["server_time"]), (&json!("release"), &json!(true)));
    assert_eq!(
        (&acquire["holder"]["request_id"], &acquire["holder"]["template"]),
        (&json!("r-1"), &json!("orders:{id}"))
    );
    peer.say(json!({ "type": "began", "version": 1, "of_a_later_release": true }));
    settle().await;
    assert!(response.is_woken());
    assert_pending!(response.poll());
    assert!(handler.poll_request().is_pending(), "the handler must not run without the lease");
    peer.assert_silent();

    peer.grant();
    settle().await;
    assert_pending!(response.poll());
    let (request, answer) = assert_ready!(handler.poll_request()).unwrap();
    assert_eq!((request.payload, request.context.request_id.as_str()), (json!({ "id": "A-17" }), "r-1"));
    peer.assert_silent();

    answer.send_response(json!("done"));
    assert_pending!(response.poll(), "the keeper has not confirmed");
    let release = peer.hear("release");
    assert_eq!(release, json!({ "type": "release", "id": 1, "reason": "finished", "wait": false }));
    peer.say(json!({ "type": "released", "id": 1 }));
    settle().await;
    assert_eq!(assert_ready_ok!(response.poll()), "done");
    peer.hear_end();
    assert!(handler.poll_request().is_pending(), "the handler runs once");
    keeper.assert_alone();
}

#[tokio::test]
async fn what_is_never_polled_sends_nothing() {
    let keeper = Keeper::bind();
    let (inner, mut handler) = mock::pair::<LambdaEvent<Value>, Value>();
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    drop(service.call(order()));
    settle().await;
    keeper.assert_alone();
    assert!(handler.poll_request().is_pending());
}

#[tokio::test]
async fn a_bad_event_takes_no_lock() {
    #[derive(Debug, serde::Deserialize)]
    struct Order {
        #[allow(dead_code)]
        items: Vec<u32>,
    }
    let keeper = Keeper::bind();
    let inner = service_fn(|_: LambdaEvent<Order>| async { Ok::<_, Diagnostic>(()) });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let answer = service.call(event(json!({ "id": "A-17", "items": [1, "two"] }))).await;
    let diagnostic = Diagnostic::from(answer.unwrap_err());
    assert_eq!(diagnostic.error_type, "EventNotDeserialized");
    assert!(diagnostic.error_message.contains("items[1]"), "{}", diagnostic.error_message);
    assert!(diagnostic.error_message.contains("Order"), "{}", diagnostic.error_message);
    let mut peer = keeper.accept();
    peer.hear("begin");
    peer.hear_end();
}

#[tokio::test]
async fn the_handlers_error_and_diagnostic_pass_through() {
    #[derive(Debug, PartialEq)]
    struct OutOfStock(u32);
    impl From<OutOfStock> for Diagnostic {
        fn from(error: OutOfStock) -> Self {
            Self { error_type: "OutOfStock".to_owned(), error_message: format!("only {}", error.0) }
        }
    }
    let keeper = Keeper::bind();
    let inner = service_fn(|_: LambdaEvent<Value>| async { Err::<(), _>(OutOfStock(3)) });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let invocation = tokio::spawn(service.call(order()));
    let mut peer = tokio::task::spawn_blocking(move || {
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        assert_eq!(peer.free()["reason"], "finished", "an error is an end like any other");
        peer
    })
    .await
    .unwrap();
    let error = invocation.await.unwrap().unwrap_err();
    assert_eq!(format!("{error:?}"), "OutOfStock(3)", "the log shows it as it did without a layer");
    let InvocationError::Handler(error) = error else { panic!("{error:?}") };
    assert_eq!(error, OutOfStock(3));
    let diagnostic = Diagnostic::from(InvocationError::Handler(error));
    assert_eq!((diagnostic.error_type.as_str(), diagnostic.error_message.as_str()), ("OutOfStock", "only 3"));
    peer.hear_end();
}

#[tokio::test]
async fn readiness_is_waited_for_before_the_lease_and_its_error_is_the_invocations() {
    let keeper = Keeper::bind();
    let (inner, mut handler) = mock::pair::<LambdaEvent<Value>, Value>();
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    handler.allow(0);
    let is_ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(is_ready, Poll::Ready(Ok(()))), "an error from here would end the runtime");

    let mut response = task::spawn(service.call(order()));
    assert_pending!(response.poll());
    let mut peer = keeper.accept_session();
    settle().await;
    assert_pending!(response.poll());
    peer.assert_silent();

    handler.send_error("the pool is closed");
    let error = assert_ready!(response.poll()).unwrap_err();
    assert!(matches!(error, InvocationError::Handler(_)), "{error:?}");
    peer.hear_end();
}

#[tokio::test]
async fn the_budget_follows_from_the_deadline() {
    let keeper = Keeper::bind();
    let (inner, _handler) = mock::pair::<LambdaEvent<Value>, Value>();
    let layer = keeper.layer("orders:{id}").reserve(Duration::from_secs(5)).max_wait(Duration::from_secs(20));
    let mut service = layer.build().unwrap().layer(inner);
    keeper.accept_hello();

    let mut response = task::spawn(service.call(event_within(json!({ "id": 1 }), Some(Duration::from_secs(15)))));
    assert_pending!(response.poll());
    let mut peer = keeper.accept();
    assert!(peer.hear("begin")["deadline_ms"].as_u64().unwrap() > 1_600_000_000_000);
    peer.say(json!({ "type": "began", "version": 1 }));
    settle().await;
    assert_pending!(response.poll());
    let acquire = peer.hear_acquire();
    for field in ["wait_ms", "answer_within_ms"] {
        let ms = acquire[field].as_u64().unwrap();
        assert!((8_000..=10_000).contains(&ms), "{field} {ms}");
    }
}

#[tokio::test]
async fn a_deadline_too_close_sends_no_request() {
    let keeper = Keeper::bind();
    let (inner, mut handler) = mock::pair::<LambdaEvent<Value>, Value>();
    let layer = keeper.layer("orders:{id}").reserve(Duration::from_secs(5)).build().unwrap();
    let mut service = layer.layer(inner);
    keeper.accept_hello();
    let answer = service.call(event_within(json!({ "id": 1 }), Some(Duration::from_secs(4)))).await;
    assert_eq!(Diagnostic::from(answer.unwrap_err()).error_type, "DeadlineTooClose");
    let mut peer = keeper.accept();
    peer.hear("begin");
    peer.hear_end();
    assert!(handler.poll_request().is_pending());
}

#[tokio::test]
async fn the_body_runs_once_however_often_the_future_is_polled() {
    let keeper = Keeper::bind();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let inner = service_fn(move |_: LambdaEvent<Value>| {
        let runs = counted.clone();
        async move {
            runs.fetch_add(1, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Ok::<_, Diagnostic>("done")
        }
    });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    keeper.accept_hello();
    let keeper = tokio::task::spawn_blocking(move || {
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        // News for the future to wake up for while the handler runs.
        for line in [granted(), at_risk(), secured(), at_risk()] {
            peer.say(line);
        }
        peer.free();
        peer.hear_end();
    });
    assert_eq!(service.call(order()).await.unwrap(), "done");
    keeper.await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
