//! From a request to its key.

use axum::Router;
use axum::routing::post;
use lambda_runtime::LambdaEvent;
use leasehold::layer::route::RouteRequest;
use leasehold::testing::TestKeeper;
use leasehold::{LeaseLayer, MissingPath};

use crate::support::{KEY, ROUTE, asked, lock, orders, post_order, problem, read, request, router, send, ship};

#[tokio::test]
async fn a_stage_before_the_path_changes_no_key() {
    let keeper = TestKeeper::new();
    let lock = lock(&keeper);
    // Inside of the nest the path has no stage any more; outside of it it still has.
    let inside = Router::new().nest("/prod", router(&lock));
    let outside = Router::new().nest("/prod", Router::new().route(ROUTE, post(ship))).route_layer(lock);
    for router in [inside, outside] {
        assert_eq!(read(send(&router, request(&keeper, "POST", "/prod/orders/17")).await).await.0, 200);
    }
    assert_eq!(asked(&keeper), [KEY, KEY]);
}

#[tokio::test]
async fn two_spellings_of_one_order_are_one_lock() {
    let keeper = TestKeeper::new();
    let router = router(&lock(&keeper));
    for path in ["/orders/17", "/orders/%31%37?x=%32", "https://api.example.com/orders/1%37"] {
        let answer = read(send(&router, request(&keeper, "POST", path)).await).await;
        assert_eq!(answer, (200, "17 under orders:17".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn one_layer_serves_several_routes() {
    let keeper = TestKeeper::new();
    let lock = orders(&keeper).per_route(ROUTE).route("/orders/{id}/payment").build().unwrap();
    let router = Router::new().route(ROUTE, post(ship)).route("/orders/{id}/payment", post(ship)).route_layer(lock);
    for path in ["/orders/17", "/orders/17/payment"] {
        assert_eq!(read(send(&router, request(&keeper, "POST", path)).await).await.0, 200, "{path}");
    }
    assert_eq!(asked(&keeper), [KEY, KEY]);
}

#[tokio::test]
async fn a_path_that_is_none_of_the_routes_is_refused_or_unlocked() {
    let keeper = TestKeeper::new();
    let around = |layer| Router::new().route("/jobs/{id}", post(async || "done")).route_layer(layer);
    let (status, ..) = problem(send(&around(lock(&keeper)), request(&keeper, "POST", "/jobs/17")).await).await;
    assert_eq!(status, 500);
    let unlocked = orders(&keeper).missing_path(MissingPath::RunUnlocked).per_route(ROUTE).build().unwrap();
    let answer = read(send(&around(unlocked), request(&keeper, "POST", "/jobs/17")).await).await;
    assert_eq!(answer, (200, "done".to_owned()));
    assert_eq!(asked(&keeper), Vec::<String>::new());
}

#[tokio::test]
async fn a_refusal_of_a_path_says_what_to_change() {
    let keeper = TestKeeper::new();
    let told = orders(&keeper).per_route(ROUTE).on_refusal(|error, problem| {
        assert_eq!(error.error_type(), "RouteNotMatched");
        problem.map(|_| axum::body::Body::from(error.to_string()))
    });
    let router = Router::new().route("/jobs/{id}", post(async || "done")).route_layer(told.build().unwrap());
    let (_, message) = read(send(&router, request(&keeper, "POST", "/jobs/17")).await).await;
    for part in ["`orders:{id}`", "`/jobs/17`", "`/orders/{id}`", "`route`"] {
        assert!(message.contains(part), "{part} in {message}");
    }
}

#[tokio::test]
async fn a_closure_sees_parameters_and_headers() {
    let keeper = TestKeeper::new();
    let lock = LeaseLayer::keyed_by(|request: &LambdaEvent<RouteRequest>| {
        let request = &request.payload;
        let tenant = request.parts().headers.get("x-tenant-id").ok_or("no tenant")?.to_str().map_err(|_| "no text")?;
        Ok::<_, &str>(format!("{tenant}:{}", request.param("id").ok_or("no id")?))
    });
    let lock = lock.test_keeper(&keeper).per_route(ROUTE).build().unwrap();
    let router = Router::new().route(ROUTE, post(ship)).route_layer(lock);
    let mut with_tenant = request(&keeper, "POST", "/orders/17");
    with_tenant.headers_mut().insert("x-tenant-id", "acme".parse().unwrap());
    assert_eq!(read(send(&router, with_tenant).await).await, (200, "17 under acme:17".to_owned()));
    assert_eq!(post_order(&router, &keeper).await.0, 400, "the request lacks a header");
}

#[test]
fn values_that_no_route_has_are_errors_of_the_build() {
    let keeper = TestKeeper::new();
    let problems = |template: &str, route: &str| {
        let layer = LeaseLayer::builder(template).test_keeper(&keeper).per_route(route).build();
        layer.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(problems("orders:{id}", "/orders/{id}"), Ok(()));
    assert_eq!(problems("files:{path}", "/files/{*path}"), Ok(()));
    assert_eq!(problems("{@function_name}:{id}", "/orders/{id}"), Ok(()));
    for (template, route, says) in [
        (
            "orders:{orderId}",
            "/orders/{id}",
            "`{orderId}`, which is no parameter of the route `/orders/{id}`: its parameters are `id`",
        ),
        ("orders:{pathParameters.id}", "/orders/{id}", "`{pathParameters.id}`"),
        ("orders:{id}", "/orders/:id", "it has none; one is written `{name}` in the route"),
        ("orders:{id}", "orders/{id}", "does not begin with `/`"),
        ("orders:{id}", "/orders/{id", "`/orders/{id` can't be used"),
        ("orders:{id}", "/{*id}/payment", "can't be used"),
    ] {
        let message = problems(template, route).unwrap_err();
        assert!(message.contains(says), "{says} in {message}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let twice = LeaseLayer::builder("orders:{order}").environment([("LEASEHOLD_MAX_WAIT", "soon")]);
    let error = twice.per_route("orders/{id}").route("/x/{y}").route("/x/{z}").build().unwrap_err().to_string();
    for problem in
        ["does not begin with `/`", "`/x/{z}` can't be used", "`{order}`", "LEASEHOLD_MAX_WAIT", "LEASEHOLD_TABLE"]
    {
        assert!(error.contains(problem), "{problem} in {error}");
    }
}
