//! What callers of a locked route are told.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::Response;
use leasehold::session::FailKind;
use leasehold::testing::TestKeeper;

use crate::support::{KEY, ROUTE, asked, lock, orders, problem, request, request_within, router, send, ship};

#[tokio::test]
async fn a_busy_key_is_423_and_says_when_to_try_again() {
    let keeper = TestKeeper::new();
    let router = router(&lock(&keeper));
    keeper.hold_elsewhere_for(KEY, Duration::from_millis(12_500));
    let (status, retry_after, document) = problem(send(&router, request(&keeper, "POST", "/orders/17")).await).await;
    // Two of the twelve and a half seconds were waited away.
    assert_eq!((status, retry_after.as_deref()), (423, Some("11")));
    assert_eq!(document["title"], "Locked");
    for secret in ["17", "orders", "elsewhere", "locks"] {
        assert!(!document.to_string().contains(secret), "{secret} in {document}");
    }
}

#[tokio::test]
async fn a_busy_key_can_be_a_conflict() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere(KEY);
    let conflict = orders(&keeper).per_route(ROUTE).busy_is_conflict().build().unwrap();
    let (status, retry_after, _) =
        problem(send(&router(&conflict), request(&keeper, "POST", "/orders/17")).await).await;
    assert_eq!((status, retry_after.is_some()), (409, true));
}

#[tokio::test]
async fn too_little_time_is_503_and_nothing_is_asked_for() {
    let keeper = TestKeeper::new();
    let late = request_within(&keeper, "POST", "/orders/17", Duration::from_secs(4));
    let (status, retry_after, _) = problem(send(&router(&lock(&keeper)), late).await).await;
    assert_eq!((status, retry_after.as_deref()), (503, Some("1")));
    assert_eq!(asked(&keeper), Vec::<String>::new());
}

#[tokio::test]
async fn failures_are_the_callers_or_the_operators() {
    let keeper = TestKeeper::new();
    let router = router(&lock(&keeper));
    for (kind, expected) in [
        (FailKind::Throttled, (503, Some("1"))),
        (FailKind::Connection, (503, Some("1"))),
        (FailKind::AccessDenied, (500, None)),
        (FailKind::MissingTable, (500, None)),
    ] {
        keeper.fail(kind);
        let (status, retry_after, _) = problem(send(&router, request(&keeper, "POST", "/orders/17")).await).await;
        assert_eq!((status, retry_after.as_deref()), expected, "{kind:?}");
    }
    keeper.recover();
    for path in ["/orders/%FF".to_owned(), format!("/orders/{}", "x".repeat(3_000))] {
        let bad =
            problem(send(&Router::new().fallback(ship).layer(lock(&keeper)), request(&keeper, "POST", &path)).await);
        assert_eq!(bad.await.0, 400, "{path}");
    }
    keeper.vanish();
    assert_eq!(problem(send(&router, request(&keeper, "POST", "/orders/17")).await).await.0, 500);
}

#[tokio::test]
async fn a_closure_has_the_last_word_and_any_body() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere(KEY);
    let told = orders(&keeper).per_route(ROUTE).on_refusal(|error, problem| {
        assert_eq!(problem.status(), 423);
        let mut response: Response<Body> = problem.map(|_| Body::from(error.error_type()));
        *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
        response
    });
    let router = Router::new().route(ROUTE, post(ship)).route_layer(told.build().unwrap());
    let answer = crate::support::post_order(&router, &keeper).await;
    assert_eq!(answer, (429, "LeaseBusy".to_owned()));
}
