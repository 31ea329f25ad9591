//! An axum router behind API Gateway, a load balancer or a function URL: one route is locked by its path, one is not.
//!
//! Two requests for one order come one after the other, though at once and by different ways, and the check of its health
//! waits for nobody:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example axum_routes --concurrent --event events/function-url-order.json \
//!   --event events/alb-order.json --event events/function-url-health.json
//! ```
//!
//! ```text
//! {"statusCode":200,…"body":"A-1004 goes by post"…}
//! {"statusCode":200,…"body":"A-1004 goes by post"…}
//! {"statusCode":200,…"body":"ok"…}
//! ```
//!
//! While somebody else holds the order, its route answers `423 Locked` and a problem document, and the other one as ever:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example axum_routes --event events/function-url-order.json \
//!   --event events/function-url-health.json --held orders:A-1004
//! ```
//!
//! ```text
//! {"statusCode":423,…"retry-after":"…",…"body":"{…\"title\":\"Locked\"…}"…}
//! {"statusCode":200,…"body":"ok"…}
//! ```
//!
//! Behind a REST API `lambda_http` puts the stage before the path: set `AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH=true` in
//! the function's environment, so that the router finds its routes (`--env` in the sandbox).

use std::time::Duration;

use axum::extract::{Json, Path};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Router, response::IntoResponse};
use lambda_http::{Error, tracing};
use leasehold::{Lease, LeaseLayer};
use serde::Deserialize;

#[derive(Deserialize)]
struct Shipment {
    carrier: String,
    packing_ms: u64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(2)).per_route("/orders/{id}").build()?;
    let router = Router::new()
        .route("/orders/{id}", post(ship).route_layer(lease.clone()))
        .route("/health", get(async || "ok"))
        .layer(lease.session()); // requests of all routes say that they are there
    lambda_http::run(router).await
}

async fn ship(Path(id): Path<String>, Json(shipment): Json<Shipment>) -> Result<String, Refused> {
    let lease = Lease::current()?;
    tracing::info!(id, token = ?lease.token(), "packing");
    tokio::time::sleep(Duration::from_millis(shipment.packing_ms)).await;
    lease.ensure_held()?; // the parcel can't be taken back
    Ok(format!("{id} goes by {}", shipment.carrier))
}

/// What the handler answers where its lease is no more.
struct Refused(leasehold::Error);

impl From<leasehold::Error> for Refused {
    fn from(error: leasehold::Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> axum::response::Response {
        tracing::error!(error = %self.0, "not shipped");
        (StatusCode::INTERNAL_SERVER_ERROR, self.0.error_type()).into_response()
    }
}
