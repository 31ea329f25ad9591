//! Sessions of requests: begun once, first thing, locked or not; and several layers in one router.

use axum::Router;
use axum::routing::post;
use leasehold::LeaseLayer;
use leasehold::layer::route::RouteLayer;
use leasehold::testing::{Happened, TestKeeper};

use crate::support::{KEY, ROUTE, asked, begun, lock, orders, post_order, problem, read, request, router, send, ship};

fn tenants(keeper: &TestKeeper, template: &str) -> RouteLayer {
    LeaseLayer::builder(template).test_keeper(keeper).per_route(ROUTE).build().unwrap()
}

#[tokio::test]
async fn an_unlocked_route_begins_a_session_and_asks_for_nothing() {
    let keeper = TestKeeper::new();
    let lock = lock(&keeper);
    let router = router(&lock).layer(lock.session());
    let answer = read(send(&router, request(&keeper, "GET", "/health")).await).await;
    assert_eq!(answer, (200, "unlocked".to_owned()));
    assert!(matches!(keeper.happened()[..], [Happened::Began { .. }]), "{:?}", keeper.happened());
}

#[tokio::test]
async fn a_locked_route_goes_on_with_the_session_that_has_begun() {
    let keeper = TestKeeper::new();
    let lock = lock(&keeper);
    assert_eq!(post_order(&router(&lock), &keeper).await.0, 200);
    assert_eq!(begun(&keeper), 1, "without one around it it begins its own");
    assert_eq!(post_order(&router(&lock).layer(lock.session()), &keeper).await.0, 200);
    assert_eq!(begun(&keeper), 2);
    assert_eq!(asked(&keeper), [KEY, KEY]);
    assert!(!keeper.is_held(KEY));
}

#[tokio::test]
async fn a_session_with_another_keeper_is_left_alone() {
    let (keeper, other) = (TestKeeper::new(), TestKeeper::new());
    let router = router(&lock(&keeper)).layer(lock(&other).session());
    assert_eq!(post_order(&router, &keeper).await.0, 200);
    assert_eq!((begun(&keeper), begun(&other)), (1, 1));
    assert_eq!(asked(&other), Vec::<String>::new());
}

#[tokio::test]
async fn a_keeper_that_is_gone_fails_only_what_needs_it() {
    let keeper = TestKeeper::new();
    let lock = lock(&keeper);
    let router = router(&lock).layer(lock.session());
    keeper.vanish();
    assert_eq!(read(send(&router, request(&keeper, "GET", "/health")).await).await.0, 200);
    assert_eq!(post_order(&router, &keeper).await.0, 500);
}

#[tokio::test]
async fn two_layers_take_their_locks_from_the_outside_in() {
    let keeper = TestKeeper::new();
    let (outer, inner) = (tenants(&keeper, "tenant-of:{id}"), lock(&keeper));
    let both = post(ship).route_layer(inner).route_layer(outer.clone());
    let router = Router::new().route(ROUTE, both).layer(outer.session());
    assert_eq!(post_order(&router, &keeper).await, (200, "17 under orders:17".to_owned()));
    assert_eq!(asked(&keeper), ["tenant-of:17", KEY]);
    assert_eq!(begun(&keeper), 2, "a session is for one lease");
    assert!(!keeper.is_held(KEY) && !keeper.is_held("tenant-of:17"));
}

#[tokio::test]
async fn the_same_key_twice_is_refused_at_once() {
    let keeper = TestKeeper::new();
    let told = orders(&keeper).per_route(ROUTE).on_refusal(|error, problem| {
        assert_eq!(error.error_type(), "AlreadyHeld");
        problem.map(axum::body::Body::from)
    });
    let twice = post(ship).route_layer(told.build().unwrap()).route_layer(lock(&keeper));
    let router = Router::new().route(ROUTE, twice);
    assert_eq!(problem(send(&router, request(&keeper, "POST", "/orders/17")).await).await.0, 500);
    assert_eq!(asked(&keeper), [KEY]);
}

#[tokio::test]
async fn two_layers_on_routes_of_their_own_share_a_router_and_a_session() {
    let keeper = TestKeeper::new();
    let jobs = LeaseLayer::builder("jobs:{name}").test_keeper(&keeper).per_route("/jobs/{name}").build().unwrap();
    let router =
        router(&lock(&keeper)).route("/jobs/{name}", post(ship).route_layer(jobs.clone())).layer(jobs.session());
    assert_eq!(post_order(&router, &keeper).await.0, 200);
    let answer = read(send(&router, request(&keeper, "POST", "/jobs/nightly")).await).await;
    assert_eq!(answer, (200, "nightly under jobs:nightly".to_owned()));
    assert_eq!((begun(&keeper), asked(&keeper)), (2, vec![KEY.to_owned(), "jobs:nightly".to_owned()]));
}
