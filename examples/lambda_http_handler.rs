//! A handler for `lambda_http` behind an HTTP API, wrapped as it is: every request is locked by a value of its event.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example lambda_http_handler --event events/apigateway-v2-order.json
//! ```
//!
//! ```text
//! {"statusCode":200,…"body":"A-1003 is paid"…}
//! ```
//!
//! While somebody else holds the order, the caller is told to try again, and when:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example lambda_http_handler --event events/apigateway-v2-order.json --held orders:A-1003
//! ```
//!
//! ```text
//! {"body":"{\"detail\":\"Another request works on this resource. Try again later.\",…","headers":{…"retry-after":"…"},…"statusCode":423}
//! ```

use std::time::Duration;

use lambda_http::lambda_runtime::{self, tower::ServiceBuilder};
use lambda_http::{Adapter, Error, IntoResponse, Request, RequestExt as _, service_fn, tracing};
use leasehold::layer::AnswerFor;
use leasehold::{Lease, LeaseLayer};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let lease = LeaseLayer::builder("orders:{pathParameters.orderId}") // a path into the raw event
        .reserve(Duration::from_secs(2))
        .answer_for(AnswerFor::api_gateway_v2())
        .build()?;
    // What `lambda_http::run` does itself, with the layer around it.
    let handler = ServiceBuilder::new().layer(lease).service(Adapter::from(service_fn(pay)));
    lambda_runtime::run(handler).await
}

async fn pay(request: Request) -> Result<impl IntoResponse, Error> {
    let order = request.path_parameters().first("orderId").unwrap_or_default().to_owned();
    let lease = Lease::current()?;
    tracing::info!(order, token = ?lease.token(), "paying");
    tokio::time::sleep(Duration::from_millis(500)).await;
    lease.ensure_held()?; // the payment can't be taken back
    Ok(format!("{order} is paid"))
}
