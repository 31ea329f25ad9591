//! The sandbox against AWS's own clients, `lambda_runtime` and `lambda-extension`.
//!
//! The test starts itself as the function and as the extension, so it has no harness: told apart by the variables that
//! Lambda sets.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(clippy::print_stdout, reason = "the lines are what the sandbox is to note")]

use std::time::Duration;

use lambda_extension::{Extension, LambdaEvent as ExtensionEvent, NextEvent};
use lambda_runtime::{
    Error, FunctionResponse, LambdaEvent, StreamResponse, service_fn,
    streaming::{Body, channel},
};
use leasehold_sandbox::{DynamoDb, EventKind, Invocation, Sandbox};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Error> {
    if std::env::var_os("_HANDLER").is_some() {
        return lambda_runtime::run(service_fn(handler)).await;
    }
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        return Extension::new().with_events_processor(lambda_extension::service_fn(extension)).run().await;
    }
    // `cargo test NAME` names another test.
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    if filter.is_none_or(|filter| "clients".contains(&filter)) {
        aws_clients_are_served().await;
        println!("test clients ... ok");
    }
    Ok(())
}

async fn handler(event: LambdaEvent<Value>) -> Result<FunctionResponse<Value, Body>, Error> {
    match event.payload["do"].as_str() {
        Some("fail") => Err("told to".into()),
        Some("panic") => panic!("told to"),
        Some("stream") => {
            let (mut sender, body) = channel();
            tokio::spawn(async move { sender.send_data("streamed".into()).await });
            Ok(FunctionResponse::StreamingResponse(StreamResponse::from(body)))
        }
        _ => Ok(FunctionResponse::BufferedResponse(json!({
            "id": event.context.request_id,
            "tenant": event.context.tenant_id,
            "left_ms": event.context.deadline().duration_since(std::time::SystemTime::now())?.as_millis() as u64,
            "function": event.context.env_config.function_name,
        }))),
    }
}

async fn extension(event: ExtensionEvent) -> Result<(), Error> {
    match event.next {
        NextEvent::Invoke(invoke) => println!("heard of {} for {}", invoke.request_id, invoke.invoked_function_arn),
        NextEvent::Shutdown(shutdown) => {
            println!("told to shut down: {}", shutdown.shutdown_reason);
            std::process::exit(0);
        }
    }
    Ok(())
}

async fn aws_clients_are_served() {
    let own = std::env::current_exe().unwrap();
    let sandbox = Sandbox::builder().function(&own).extension(&own).name("orders").dynamodb(DynamoDb::None);
    let sandbox = sandbox.init_timeout(LONG).timeout(LONG).start().await.unwrap();
    let outcome = sandbox.invoke(Invocation::from(json!({})).tenant("acme").request_id("first")).await;
    let response = outcome.json().unwrap_or_else(|| panic!("{outcome:?}\n{}", sandbox.log().timeline()));
    assert_eq!((&response["id"], &response["tenant"]), (&json!("first"), &json!("acme")));
    assert_eq!(response["function"], "orders");
    assert!((1..=60_000).contains(&response["left_ms"].as_u64().unwrap()));

    let outcome = sandbox.invoke(json!({ "do": "fail" })).await;
    assert_eq!(outcome.error().unwrap().message, "told to");
    let outcome = sandbox.invoke(json!({ "do": "panic" })).await;
    assert!(outcome.error().unwrap().message.contains("told to"), "{outcome:?}");
    let outcome = sandbox.invoke(json!({ "do": "stream" })).await;
    assert!(outcome.response().unwrap().text().ends_with("streamed"), "{outcome:?}");

    sandbox.log().wait_for(|event| event.is_output("heard of first"), LONG).await.unwrap();
    sandbox.environment(0).wait_until_idle().await.unwrap();
    sandbox.shutdown().await;
    assert!(sandbox.log().find(|event| event.is_output("told to shut down: spindown")).is_some());
    assert_eq!(sandbox.log().count(|event| event.kind == EventKind::InitDone), 1);
}
