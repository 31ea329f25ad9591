//! What becomes of the lease and of the handler under it.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::{Request, Response};
use lambda_runtime::tower::{Layer as _, ServiceExt as _, service_fn};
use leasehold::session::{FailKind, ReleaseReason};
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Lease, LeaseGuard, OnLoss, OnUnavailable};

use crate::support::{KEY, ROUTE, asked, lock, orders, post_order, problem, read, request, router, send};

fn released(keeper: &TestKeeper) -> Vec<ReleaseReason> {
    let released = keeper.happened().into_iter().filter_map(|happened| match happened {
        Happened::Released { key, reason } if key == KEY => Some(reason),
        _ => None,
    });
    released.collect()
}

#[tokio::test]
async fn a_route_is_locked_by_its_parameter_and_given_back() {
    let keeper = TestKeeper::new();
    let router = router(&lock(&keeper));
    for _ in 0..2 {
        assert_eq!(post_order(&router, &keeper).await, (200, "17 under orders:17".to_owned()));
    }
    assert!(!keeper.is_held(KEY));
    assert_eq!(released(&keeper), [ReleaseReason::Finished; 2]);
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let keeper = TestKeeper::new();
    let mut router = router(&lock(&keeper));
    let future = lambda_runtime::tower::Service::call(&mut router, request(&keeper, "POST", "/orders/17"));
    drop(future);
    assert_eq!(keeper.happened(), []);
}

#[tokio::test]
async fn other_methods_of_a_locked_path_are_answered_without_its_lock() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere(KEY);
    let response = send(&router(&lock(&keeper)), request(&keeper, "GET", "/orders/17")).await;
    assert_eq!(response.status(), 405);
    assert_eq!(asked(&keeper), Vec::<String>::new());
}

#[tokio::test]
async fn a_plain_service_is_locked_without_a_router() {
    let keeper = TestKeeper::new();
    let handler = service_fn(async |_: Request<lambda_http::Body>| {
        let key = Lease::current().unwrap().key().to_string();
        Ok::<_, Infallible>(Response::new(lambda_http::Body::from(key)))
    });
    // As `lambda_http` writes the path of a REST API's stage.
    let request = request(&keeper, "POST", "/prod/orders/17").map(|_| lambda_http::Body::Empty);
    let Ok(response) = lock(&keeper).layer(handler).oneshot(request).await;
    assert_eq!(response.body(), &lambda_http::Body::from("orders:17"));
}

#[tokio::test]
async fn a_lost_lease_ends_the_handler_unless_it_is_only_to_be_told() {
    let keeper = TestKeeper::new();
    let loses = |taker: TestKeeper, goes_on: bool| {
        service_fn(move |_: Request<Body>| {
            let taker = taker.clone();
            async move {
                taker.lose(KEY);
                if !goes_on {
                    pending::<()>().await;
                }
                Lease::current().unwrap().lost().await;
                Ok::<_, Infallible>(Response::new(Body::from("told")))
            }
        })
    };
    let response =
        send(&lock(&keeper).layer(loses(keeper.clone(), false)), request(&keeper, "POST", "/orders/17")).await;
    let (status, retry_after, _) = problem(response).await;
    assert_eq!((status, retry_after), (500, None));

    let signal = orders(&keeper).on_loss(OnLoss::Signal).per_route(ROUTE).build().unwrap();
    let response = send(&signal.layer(loses(keeper.clone(), true)), request(&keeper, "POST", "/orders/17")).await;
    assert_eq!(read(response).await, (200, "told".to_owned()));
}

#[tokio::test]
async fn a_panic_and_a_drop_give_the_lease_back_as_after_a_crash() {
    let keeper = TestKeeper::new();
    let panics = service_fn(async |_: Request<Body>| -> Result<Response<Body>, Infallible> { panic!("as asked") });
    let call = lock(&keeper).layer(panics).oneshot(request(&keeper, "POST", "/orders/17"));
    assert!(tokio::spawn(call).await.unwrap_err().is_panic());

    let hangs = service_fn(async |_: Request<Body>| {
        pending::<()>().await;
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    let mut call = tokio_test::task::spawn(lock(&keeper).layer(hangs).oneshot(request(&keeper, "POST", "/orders/17")));
    while !keeper.is_held(KEY) {
        assert!(call.poll().is_pending());
    }
    drop(call);
    assert!(!keeper.is_held(KEY));
    assert_eq!(released(&keeper), [ReleaseReason::Dropped; 2]);
}

#[tokio::test]
async fn a_body_that_goes_on_streaming_takes_a_guard_along() {
    let keeper = TestKeeper::new();
    let streams = service_fn(async |_: Request<Body>| {
        let guard = Lease::current().unwrap().guard().unwrap();
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(std::sync::Arc::new(guard));
        Ok::<_, Infallible>(response)
    });
    let response = send(&lock(&keeper).layer(streams), request(&keeper, "POST", "/orders/17")).await;
    assert!(keeper.is_held(KEY) && response.extensions().get::<std::sync::Arc<LeaseGuard>>().is_some());
    drop(response);
    assert!(!keeper.is_held(KEY));
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_is_ended_before_its_deadline() {
    let keeper = TestKeeper::new();
    let hangs = service_fn(async |_: Request<Body>| {
        pending::<()>().await;
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    let ends = orders(&keeper).end_before_deadline(Duration::from_secs(1)).per_route(ROUTE).build().unwrap();
    let (status, retry_after, _) =
        problem(send(&ends.layer(hangs), request(&keeper, "POST", "/orders/17")).await).await;
    assert_eq!((status, retry_after.as_deref()), (504, None));
    assert!(!keeper.is_held(KEY));
}

#[tokio::test]
async fn where_there_is_no_lease_to_be_had_the_handler_may_run_unlocked() {
    let keeper = TestKeeper::new();
    keeper.fail(FailKind::Connection);
    let unlocked = orders(&keeper).on_unavailable(OnUnavailable::RunUnlocked).per_route(ROUTE).build().unwrap();
    let asks = service_fn(async |_: Request<Body>| {
        assert!(Lease::current().is_err());
        Ok::<_, Infallible>(Response::new(Body::from("unlocked")))
    });
    let response = send(&unlocked.layer(asks), request(&keeper, "POST", "/orders/17")).await;
    assert_eq!(read(response).await, (200, "unlocked".to_owned()));
}

#[tokio::test]
async fn an_operator_can_only_watch_or_turn_it_off() {
    for (mode, asks) in [("observe", 1), ("off", 0)] {
        let keeper = TestKeeper::new();
        keeper.hold_elsewhere(KEY);
        let layer = orders(&keeper).environment([("LEASEHOLD_MODE", mode)]).per_route(ROUTE).build().unwrap();
        let works = post(async || {
            tokio::task::yield_now().await; // what is observed is asked for beside the handler
            Lease::current().unwrap().ensure_held().unwrap();
        });
        let router = Router::new().route(ROUTE, works.route_layer(layer.clone())).layer(layer.session());
        assert_eq!(post_order(&router, &keeper).await.0, 200, "{mode}");
        assert_eq!(asked(&keeper).len(), asks, "{mode}");
        if mode == "off" {
            assert_eq!(keeper.happened(), []);
        }
    }
}

#[tokio::test]
async fn a_request_without_an_invocation_has_no_deadline() {
    let keeper = TestKeeper::new();
    let mut request = request(&keeper, "POST", "/orders/17");
    request.extensions_mut().clear();
    assert_eq!(read(send(&router(&lock(&keeper)), request).await).await.0, 200);
    let Some(Happened::Began { request_id }) = keeper.happened().into_iter().next() else { panic!() };
    assert!(!request_id.is_empty(), "the row says who holds it");
}
