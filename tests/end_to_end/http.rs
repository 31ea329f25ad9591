//! Handlers of HTTP requests, by the events of every source that has them: a router with one locked route, and a handler
//! that is wrapped as it is.

use std::time::Duration;

use leasehold_sandbox::{Event, EventKind, Outcome, Sandbox, SandboxBuilder, faults::Step};
use serde_json::Value;

use crate::stage::{SOON, TABLE, is_held, program, start};

const KEY: &str = "orders:A-1004";

/// Every way of an HTTP request to a function.
const ORDERS: [&str; 3] = ["apigateway-v1-order.json", "alb-order.json", "function-url-order.json"];

fn event_file(name: &str) -> Value {
    let path = format!("{}/events/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The same as an HTTP API sends it: its stage has a name, and stands in the path.
fn order_over_http_api() -> Value {
    let mut event = event_file("function-url-order.json");
    event["requestContext"]["stage"] = "prod".into();
    event["requestContext"]["domainName"] = "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com".into();
    event["pathParameters"] = serde_json::json!({ "proxy": "orders/A-1004" });
    event
}

/// An order that takes so long to pack.
fn slow(event: &str, packing: Duration) -> Value {
    let mut event = event_file(event);
    event["body"] =
        serde_json::json!({ "carrier": "post", "packing_ms": packing.as_millis() as u64 }).to_string().into();
    event
}

async fn example(name: &str) -> SandboxBuilder {
    Sandbox::builder()
        .function(program(name).await)
        .extension(program("leasehold").await)
        .name("tested")
        .env("LEASEHOLD_TABLE", TABLE)
        .env("AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH", "true")
        .timeout(Duration::from_secs(60))
}

fn response(outcome: &Outcome) -> Value {
    outcome.json().unwrap_or_else(|| panic!("{outcome:?}"))
}

/// What of a response's headers the caller sees, wherever its source reads them.
fn header(response: &Value, name: &str) -> Option<String> {
    let single = response["headers"][name].as_str();
    single.or(response["multiValueHeaders"][name][0].as_str()).map(str::to_owned)
}

#[tokio::test]
async fn a_route_is_locked_by_its_path_whatever_sends_the_request() {
    let sandbox = start(example("axum-routes").await).await;
    for event in ORDERS.map(event_file).into_iter().chain([order_over_http_api()]) {
        let outcome = sandbox.environment(0).invoke(&event).await;
        let response = response(&outcome);
        assert_eq!(response["statusCode"], 200, "{response}\n{}", sandbox.log().timeline());
        assert_eq!(response["body"], "A-1004 goes by post");
        sandbox.environment(0).wait_until_idle().await.unwrap();
        assert!(!is_held(&sandbox, KEY).await);
    }
    let rows = sandbox.tables().rows(TABLE).await.unwrap();
    assert_eq!(rows.len(), 1, "all of them are about one order: {rows:?}");
}

#[tokio::test]
async fn a_busy_route_is_423_and_says_when_to_try_again_whatever_sends_the_request() {
    let builder = example("axum-routes").await.env("LEASEHOLD_MAX_WAIT", "0s").environments(2);
    let sandbox = start(builder).await;
    // The last of the requests is answered long before this one is packed.
    let holder = sandbox.environment(0).start_invocation(slow(ORDERS[0], Duration::from_secs(30)));
    sandbox.log().wait_for(|event| event.is_output("packing"), SOON).await.unwrap();
    for event in ORDERS.map(event_file).into_iter().chain([order_over_http_api()]) {
        let outcome = sandbox.environment(1).invoke(&event).await;
        let response = response(&outcome);
        assert_eq!(response["statusCode"], 423, "{response}\n{}", sandbox.log().timeline());
        let retry_after: u64 = header(&response, "retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&retry_after), "{retry_after}");
        assert_eq!(header(&response, "content-type").as_deref(), Some("application/problem+json"));
    }
    assert_eq!(response(&holder.outcome().await)["statusCode"], 200);
}

#[tokio::test]
async fn an_unlocked_route_sends_nothing_to_dynamodb_and_does_not_hold_the_environment() {
    let sandbox = start(example("axum-routes").await.fault_proxy(true)).await;
    let environment = sandbox.environment(0);
    // A layer is known by now, and the connection to DynamoDB is warm.
    assert!(environment.invoke(&event_file("function-url-order.json")).await.is_success());
    environment.wait_until_idle().await.unwrap();
    let mark = sandbox.log().len();
    let sent = sandbox.faults().unwrap().seen().len();
    // An extension that hears of no session holds Next for 50 ms, always. So once less shows that it heard of one.
    let mut held_for = Vec::new();
    while held_for.iter().all(|held| *held >= Duration::from_millis(50)) && held_for.len() < 50 {
        let outcome = environment.invoke(&event_file("function-url-health.json")).await;
        assert_eq!(response(&outcome)["body"], "ok");
        environment.wait_until_idle().await.unwrap();
        let events = sandbox.log().events();
        let last = |wanted: fn(&Event) -> bool| events.iter().skip(mark).rfind(|event| wanted(event)).unwrap().at;
        let invoked = last(|event| matches!(event.kind, EventKind::ExtensionInvoked { .. }));
        let next = last(|event| matches!(event.kind, EventKind::ExtensionNext { .. }));
        held_for.push(next - invoked);
    }
    assert!(held_for.len() < 50, "Next was held each time: {held_for:?}\n{}", sandbox.log().timeline());
    let seen = sandbox.faults().unwrap().seen();
    assert_eq!(seen.len(), sent, "{:?}", seen.get(sent..));
    assert_eq!(sandbox.faults().unwrap().count(Step::Acquire), 1);
}

#[tokio::test]
async fn an_unlocked_route_is_served_while_the_locked_one_is_busy() {
    let sandbox = start(example("axum-routes").await.environments(2)).await;
    let holder = sandbox.environment(0).start_invocation(slow(ORDERS[2], Duration::from_secs(5)));
    sandbox.log().wait_for(|event| event.is_output("packing"), SOON).await.unwrap();
    let outcome = sandbox.environment(1).invoke(&event_file("function-url-health.json")).await;
    assert_eq!(response(&outcome)["statusCode"], 200);
    assert_eq!(response(&holder.outcome().await)["statusCode"], 200);
}

#[tokio::test]
async fn a_handler_of_lambda_http_is_wrapped_as_it_is() {
    let builder = example("lambda-http-handler").await.env("LEASEHOLD_MAX_WAIT", "0s").environments(2);
    let sandbox = start(builder).await;
    let event = event_file("apigateway-v2-order.json");
    let holder = sandbox.environment(0).start_invocation(&event);
    sandbox.log().wait_for(|event| event.is_output("paying"), SOON).await.unwrap();
    let paid = response(&holder.outcome().await);
    assert_eq!((&paid["statusCode"], &paid["body"]), (&200.into(), &"A-1003 is paid".into()));
    sandbox.environment(0).wait_until_idle().await.unwrap();

    let mut row = sandbox.tables().row(TABLE, "orders:A-1003").await.unwrap().unwrap();
    assert!(!row.contains_key("owner"), "given back");
    // Somebody else takes it.
    row.insert("owner".to_owned(), aws_sdk_dynamodb::types::AttributeValue::S(uuid_of_somebody()));
    row.remove("ttl");
    sandbox.tables().put(TABLE, row).await.unwrap();
    let busy = response(&sandbox.environment(1).invoke(&event).await);
    assert_eq!(busy["statusCode"], 423, "{busy}\n{}", sandbox.log().timeline());
    assert!(header(&busy, "retry-after").unwrap().parse::<u64>().unwrap() >= 1);
}

fn uuid_of_somebody() -> String {
    "22222222-2222-4222-8222-222222222222".to_owned()
}
