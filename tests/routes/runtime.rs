//! What `lambda_runtime` asks of a handler is there: for `lambda_http`'s handlers under the layer, streaming ones as well.

use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Body, Error, IntoResponse, Request, Response, StreamAdapter, service_fn};
use lambda_runtime::LambdaEvent;
use lambda_runtime::tower::{Layer as _, Service};
use leasehold::layer::AnswerFor;
use leasehold::testing::TestKeeper;
use leasehold::{Lease, LeaseLayer};
use serde_json::{Value, json, value::RawValue};

async fn pay(_: Request) -> Result<impl IntoResponse, Error> {
    Ok(Lease::current()?.key().to_string())
}

async fn export(_: Request) -> Result<Response<Body>, Error> {
    Ok(Response::new(Body::from("exported")))
}

/// What `run_concurrent` asks for.
fn runs_concurrently<S>(service: S) -> S
where
    S: Service<LambdaEvent<Box<RawValue>>, Future: Send> + Clone + Send + 'static,
{
    service
}

fn event(name: &str) -> Value {
    let path = format!("{}/events/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test]
async fn a_handler_under_the_layer_is_one_for_the_runtime() {
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::<LambdaRequest>::builder("orders:{pathParameters.orderId}").test_keeper(&keeper);
    let layer = layer.answer_for(AnswerFor::api_gateway_v2()).build().unwrap();
    let mut service = runs_concurrently(layer.layer(Adapter::from(service_fn(pay))));
    drop(lambda_runtime::run(service.clone()));
    let paid = keeper.invoke(&mut service, event("apigateway-v2-order.json")).await.unwrap();
    assert_eq!(serde_json::to_value(paid).unwrap()["body"], "orders:A-1003");
    keeper.hold_elsewhere("orders:A-1003");
    let busy = keeper.invoke(&mut service, event("apigateway-v2-order.json")).await.unwrap();
    assert_eq!(serde_json::to_value(busy).unwrap()["statusCode"], 423);
}

#[tokio::test]
async fn a_streaming_handler_under_the_layer_is_one_as_well() {
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::builder("orders:{rawPath}").test_keeper(&keeper).build().unwrap();
    let mut service = runs_concurrently(layer.layer(StreamAdapter::from(service_fn(export))));
    drop(lambda_runtime::run(service.clone()));
    let answer = keeper.invoke(&mut service, event("function-url-order.json")).await.unwrap();
    assert_eq!(answer.metadata_prelude.status_code, 200);
}

#[tokio::test]
async fn an_event_that_is_no_request_takes_no_lease() {
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::builder("orders:{id}").test_keeper(&keeper).build().unwrap();
    let mut service = layer.layer(Adapter::from(service_fn(pay)));
    let Err(refused) = keeper.invoke(&mut service, json!({ "id": 17 })).await else { panic!("it is none") };
    assert_eq!(refused.lease_error().unwrap().error_type(), "EventNotDeserialized");
}
