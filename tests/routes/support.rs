//! A router whose orders are locked, requests to it, and what comes back.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Path;
use axum::routing::{get, post};
use http::{Request, Response};
use lambda_runtime::tower::{Service, ServiceExt as _};
use leasehold::layer::route::{RouteLayer, RouteRequest};
use leasehold::testing::{Happened, TestKeeper};
use leasehold::{Lease, LeaseLayer, LeaseLayerBuilder};
use serde_json::Value;

pub(crate) const KEY: &str = "orders:17";
pub(crate) const ROUTE: &str = "/orders/{id}";

/// A layer's settings with this keeper.
pub(crate) fn orders(keeper: &TestKeeper) -> LeaseLayerBuilder<RouteRequest> {
    LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(5)).test_keeper(keeper)
}

pub(crate) fn lock(keeper: &TestKeeper) -> RouteLayer {
    orders(keeper).per_route(ROUTE).build().unwrap()
}

/// Answers with the key that it holds, after it made sure of it.
pub(crate) async fn ship(Path(id): Path<String>) -> String {
    let lease = Lease::current().unwrap();
    lease.ensure_held().unwrap();
    format!("{id} under {}", lease.key())
}

/// One locked route, one that is not, and no session around them.
pub(crate) fn router(lock: &RouteLayer) -> Router {
    let health = get(async || if Lease::current().is_err() { "unlocked" } else { "locked" });
    Router::new().route(ROUTE, post(ship).route_layer(lock.clone())).route("/health", health)
}

/// A request as `lambda_http` makes it: with the invocation's context, of which this much time is left.
pub(crate) fn request_within(keeper: &TestKeeper, method: &str, path: &str, remaining: Duration) -> Request<Body> {
    let context = keeper.event_within((), remaining).context;
    Request::builder().method(method).uri(path).extension(context).body(Body::empty()).unwrap()
}

pub(crate) fn request(keeper: &TestKeeper, method: &str, path: &str) -> Request<Body> {
    request_within(keeper, method, path, Duration::from_secs(30))
}

pub(crate) async fn send<S>(service: &S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
{
    let Ok(response) = service.clone().oneshot(request).await;
    response
}

/// Status and text of a response.
pub(crate) async fn read(response: Response<Body>) -> (u16, String) {
    let (status, body) = (response.status().as_u16(), response.into_body());
    (status, String::from_utf8(to_bytes(body, 10_000).await.unwrap().to_vec()).unwrap())
}

/// A request to a locked order, answered.
pub(crate) async fn post_order<S>(service: &S, keeper: &TestKeeper) -> (u16, String)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
{
    read(send(service, request(keeper, "POST", "/orders/17")).await).await
}

/// Status, `Retry-After` and problem document of a refusal.
pub(crate) async fn problem(response: Response<Body>) -> (u16, Option<String>, Value) {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let retry_after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let (status, text) = read(response).await;
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["status"], status);
    (status, retry_after, document)
}

pub(crate) fn begun(keeper: &TestKeeper) -> usize {
    keeper.happened().iter().filter(|happened| matches!(happened, Happened::Began { .. })).count()
}

/// The keys that leases were asked for, in their order.
pub(crate) fn asked(keeper: &TestKeeper) -> Vec<String> {
    let asked = keeper.happened().into_iter().filter_map(|happened| match happened {
        Happened::Asked { key } => Some(key),
        _ => None,
    });
    asked.collect()
}
