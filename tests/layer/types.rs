//! Which handlers fit: payloads, borrows, streams, `run` and `run_concurrent`, and closures for keys and answers.

use std::convert::Infallible;
use std::rc::Rc;

use aws_lambda_events::event::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::event::s3::S3Event;
use aws_lambda_events::event::sqs::SqsEvent;
use lambda_runtime::streaming::{Body, Response, channel};
use lambda_runtime::tower::{Layer as _, Service, ServiceBuilder, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::error::LeaseBusy;
use leasehold::{Error, InvocationError, Lease, LeaseGuard, LeaseLayer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{Keeper, event, order};

#[derive(Debug, Deserialize, Serialize)]
struct Order {
    id: String,
}

async fn typed(event: LambdaEvent<Order>) -> Result<Order, Infallible> {
    Ok(event.payload)
}

async fn untyped(event: LambdaEvent<Value>) -> Result<Value, lambda_runtime::Error> {
    Ok(event.payload)
}

async fn from_api_gateway(event: LambdaEvent<ApiGatewayV2httpRequest>) -> Result<String, Diagnostic> {
    Ok(event.payload.request_context.http.method.to_string())
}

async fn from_sqs(event: LambdaEvent<SqsEvent>) -> Result<usize, Diagnostic> {
    Ok(event.payload.records.len())
}

async fn from_s3(event: LambdaEvent<S3Event>) -> Result<usize, Diagnostic> {
    Ok(event.payload.records.len())
}

/// Runs one invocation under a lease and answers the key that was asked for as well.
async fn invoke<S>(keeper: Keeper, mut service: S, payload: Value) -> (String, S::Response)
where
    S: Service<LambdaEvent<Box<RawValue>>>,
    S::Error: std::fmt::Debug,
{
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        let key = peer.hear_acquire()["key"].as_str().unwrap().to_owned();
        peer.grant();
        peer.free();
        key
    });
    let answer = service.call(event(payload)).await.unwrap();
    (keeper.join().unwrap(), answer)
}

#[tokio::test]
async fn typed_and_untyped_payloads() {
    let keeper = Keeper::bind();
    let service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(typed));
    let (key, answer) = invoke(keeper, service, json!({ "id": "A-17" })).await;
    assert_eq!((key.as_str(), answer.id.as_str()), ("orders:A-17", "A-17"));

    let keeper = Keeper::bind();
    let service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(untyped));
    let (key, answer) = invoke(keeper, service, json!({ "id": 17 })).await;
    assert_eq!((key.as_str(), answer), ("orders:17", json!({ "id": 17 })));
}

/// An event as AWS sends it.
fn real(name: &str) -> Value {
    let path = format!("{}/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test]
async fn events_of_aws() {
    let keeper = Keeper::bind();
    let template = "{requestContext.apiId}:{requestContext.http.method}";
    let service = keeper.layer(template).build().unwrap().layer(service_fn(from_api_gateway));
    let (key, method) = invoke(keeper, service, real("apigateway-v2-order")).await;
    assert!(key.ends_with(&format!(":{}:{method}", method.len())), "{key}");

    let keeper = Keeper::bind();
    let service = keeper.layer("{Records[0].messageId}").build().unwrap().layer(service_fn(from_sqs));
    let payload = real("sqs-order");
    let (key, records) = invoke(keeper, service, payload.clone()).await;
    assert_eq!((json!(key), records), (payload["Records"][0]["messageId"].clone(), 1));

    let keeper = Keeper::bind();
    let service = keeper.layer("{Records[0].s3.object.key}").build().unwrap().layer(service_fn(from_s3));
    let payload = real("s3-upload");
    let (key, records) = invoke(keeper, service, payload.clone()).await;
    assert_eq!((json!(key), records), (payload["Records"][0]["s3"]["object"]["key"].clone(), 1));
}

#[tokio::test]
async fn a_handler_may_borrow_from_main_and_need_not_be_send() {
    let keeper = Keeper::bind();
    let prices = vec![1, 2, 3];
    let shared = Rc::new(4);
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            let handler = service_fn(|event: LambdaEvent<Order>| {
                let (prices, shared) = (&prices, shared.clone());
                async move { Ok::<_, Infallible>(prices.len() + *shared + event.payload.id.len()) }
            });
            let service = keeper.layer("orders:{id}").build().unwrap().layer(handler);
            let (_, answer) = invoke(keeper, service, json!({ "id": "A-17" })).await;
            assert_eq!(answer, 3 + 4 + 4);
        })
        .await;
    assert_eq!(prices.len(), 3);
}

#[tokio::test]
async fn a_closure_picks_the_key_and_a_namespace_stands_before_it() {
    let keeper = Keeper::bind();
    let layer = LeaseLayer::keyed_by(|event: &LambdaEvent<Order>| match event.payload.id.strip_prefix("A-") {
        Some(number) => Ok(format!("order-{number}")),
        None => Err("the order's id must begin with `A-`"),
    });
    let layer = layer.namespace("billing").table("locks").socket(keeper.path()).environment::<String, String>([]);
    let layer = layer.name("orders").build().unwrap();
    assert_eq!(layer.name(), "orders");
    let service = layer.clone().layer(service_fn(typed));
    let (key, _) = invoke(keeper, service, json!({ "id": "A-17" })).await;
    assert_eq!(key, "billing/order-17");
}

#[tokio::test]
async fn a_closures_error_and_its_empty_key_are_the_invocations() {
    for (id, words) in [("B-1", "must begin with `A-`"), ("A-", "at least one character")] {
        let keeper = Keeper::bind();
        let layer = LeaseLayer::keyed_by(|event: &LambdaEvent<Order>| {
            event.payload.id.strip_prefix("A-").map(str::to_owned).ok_or("the order's id must begin with `A-`")
        });
        let layer = layer.namespace("billing").table("locks").socket(keeper.path()).environment::<String, String>([]);
        let mut service = layer.build().unwrap().layer(service_fn(typed));
        let error = Diagnostic::from(service.call(event(json!({ "id": id }))).await.unwrap_err());
        assert_eq!(error.error_type, "KeyInvalid");
        assert!(error.error_message.contains(words), "{}", error.error_message);
    }
}

#[tokio::test]
async fn a_streaming_body_keeps_the_lease_with_a_guard() {
    /// What a body's stream holds on to.
    struct Guarded {
        _body: Body,
        _guard: LeaseGuard,
    }
    let keeper = Keeper::bind();
    let inner = service_fn(|_: LambdaEvent<Value>| async {
        let stream = Guarded { _body: channel().1, _guard: Lease::current()?.guard()? };
        Ok::<_, Error>(Response { metadata_prelude: Default::default(), stream })
    });
    let mut service = keeper.layer("orders:{id}").build().unwrap().layer(inner);
    let (streaming, is_streaming) = std::sync::mpsc::channel();
    let (silent, is_silent) = std::sync::mpsc::channel();
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        is_streaming.recv().unwrap();
        peer.assert_silent();
        silent.send(()).unwrap();
        assert_eq!(peer.free()["reason"], "finished");
        peer.hear_end();
    });
    let response = service.call(order()).await.unwrap();
    streaming.send("first byte").unwrap();
    is_silent.recv().unwrap();
    drop(response);
    keeper.join().unwrap();
}

/// What `lambda_runtime::run` and `run_concurrent` ask of a service, without a runtime API to serve.
#[allow(dead_code, reason = "compiling is the test")]
fn fits_the_runtime() {
    fn layer<T>() -> LeaseLayer<T> {
        LeaseLayer::builder("orders:{id}").build().unwrap()
    }
    async fn streaming(_: LambdaEvent<Value>) -> Result<Response<Body>, Diagnostic> {
        Ok(Response::from(channel().1))
    }
    fn concurrent<S>(_: &S)
    where
        S: Service<LambdaEvent<Box<RawValue>>> + Clone + Send + 'static,
        S::Response: Send + 'static,
        S::Future: Future<Output = Result<S::Response, S::Error>> + Send + 'static,
        S::Error: Into<Diagnostic> + std::fmt::Debug,
    {
    }

    // The types are inferred: fn items, closures, stacked layers, closures for keys and answers.
    drop(lambda_runtime::run(ServiceBuilder::new().layer(layer()).service_fn(typed)));
    drop(lambda_runtime::run(ServiceBuilder::new().layer(layer()).service_fn(untyped)));
    drop(lambda_runtime::run(ServiceBuilder::new().layer(layer()).service_fn(streaming)));
    drop(lambda_runtime::run(ServiceBuilder::new().layer(layer()).layer(layer()).service_fn(typed)));
    let closure = |event: LambdaEvent<Order>| async move { Ok::<_, lambda_runtime::Error>(event.payload) };
    drop(lambda_runtime::run(ServiceBuilder::new().layer(layer()).service_fn(closure)));
    let by_closure = LeaseLayer::keyed_by(|event: &LambdaEvent<Order>| Ok::<_, Infallible>(event.payload.id.clone()));
    let by_closure = by_closure.on_busy(|busy: &LeaseBusy| Order { id: busy.key.to_string() }).build().unwrap();
    drop(lambda_runtime::run(ServiceBuilder::new().layer(by_closure.clone()).service_fn(typed)));
    let borrowed = String::new();
    let borrowing = |_: LambdaEvent<Value>| async { Ok::<_, Infallible>(borrowed.len()) };
    drop(lambda_runtime::run(ServiceBuilder::new().layer(layer()).service_fn(borrowing)));

    concurrent(&ServiceBuilder::new().layer(layer()).service_fn(typed));
    concurrent(&ServiceBuilder::new().layer(layer()).service_fn(streaming));
    concurrent(&ServiceBuilder::new().layer(layer()).layer(layer()).service_fn(untyped));
    concurrent(&ServiceBuilder::new().layer(by_closure).service_fn(typed));
}

#[test]
fn errors_of_both_kinds_look_like_errors() {
    let own = InvocationError::Handler(std::io::Error::other("my own"));
    assert_eq!((own.to_string(), format!("{own:?}").contains("my own")), ("my own".to_owned(), true));
    let ours: InvocationError<std::io::Error> = Lease::current().unwrap_err().into();
    assert!(ours.to_string().contains("no lease here"), "{ours}");
    assert!(std::error::Error::source(&ours).is_none());
}
