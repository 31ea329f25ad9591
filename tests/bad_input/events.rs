//! Events: refused before anything is asked of DynamoDB.

use std::time::Duration;

use lambda_runtime::{Context, LambdaEvent};
use leasehold::LeaseLayer;
use leasehold::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stage::{NOWHERE, Stage};
use crate::table::{Case, Kind, Seen, case, check};

#[derive(Debug)]
enum Input {
    /// A template, and an event that any handler takes.
    Key(&'static str, String),
    /// An event for a handler that takes an [`Order`].
    Order(String),
    /// An event for a handler that takes any JSON.
    Json(String),
    /// A layer that reserves so many seconds of an invocation that has 30.
    Reserve(u64),
    /// What a closure picks.
    Picked(Result<String, &'static str>),
}

#[derive(Debug, Deserialize)]
#[allow(dead_code, reason = "nothing reads it")]
struct Order {
    id: String,
    amount: u32,
}

fn key(template: &'static str, event: impl Into<String>) -> Input {
    Input::Key(template, event.into())
}

fn order(event: impl Into<String>) -> Input {
    Input::Order(event.into())
}

fn cases() -> Vec<Case<Input>> {
    use Kind::*;
    const ID: &str = "orders:{id}";
    const DETAIL: &str = "orders:{detail.orderId}";
    /// What an API of the payload format 1.0 sends.
    const REST: &str = r#"{"version":"1.0","requestContext":{"identity":{"sourceIp":"192.0.2.1"}}}"#;
    let fields: Vec<_> = (0..1_000).map(|n| format!(r#""name_{n:04}":0"#)).collect();
    let many = format!("{{{}}}", fields.join(","));
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(2_042));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    vec![
        case(Empty, key(ID, "{}"), "KeyNotFound", "the event has no `id`: correct the path", 0),
        case(Empty, key(ID, "null"), "KeyInvalid", "the event is null", 0),
        case(
            WrongVersion,
            key(ID, r#"{"orderId":1,"x-id":2}"#),
            "KeyNotFound",
            r#"what it has there is `orderId`, `["x-id"]`"#,
            0,
        ),
        case(
            WrongVersion,
            key(DETAIL, r#"{"detail":{"order_id":1}}"#),
            "KeyNotFound",
            "what it has there is `order_id`",
            0,
        ),
        case(
            WrongVersion,
            key(ID, r#"{"Records":[{"body":"{}"}]}"#),
            "KeyNotFound",
            "what it has there is `Records`; SQS messages and a stream's records have a key each with `per_record`",
            0,
        ),
        case(
            WrongVersion,
            key("{Records[0].body.orderId}", r#"{"Records":[{"body":"{\"orderId\":\"1\"}"}]}"#),
            "KeyInvalid",
            "`Records[0].body` is a string, so the event has no `Records[0].body.orderId` for the lock key: it must be an \
             object, or the path be corrected; SQS messages and a stream's records have a key each with `per_record`, whose \
             template begins within the record",
            0,
        ),
        case(
            WrongVersion,
            key("{Records[0].kinesis.orderId}", r#"{"Records":[{"kinesis":{"data":"e30="}}]}"#),
            "KeyNotFound",
            "what it has there is `data`; SQS messages and a stream's records have a key each with `per_record`",
            0,
        ),
        case(Oversized, key(ID, many), "KeyNotFound", "`name_0009`, 990 more", 0),
        case(
            Other,
            Input::Reserve(40),
            "DeadlineTooClose",
            "the reserve of 40s is longer than what an invocation has: 29.",
            0,
        ),
        case(Other, Input::Reserve(40), "DeadlineTooClose", "so every invocation will be refused: set `reserve`", 0),
        case(Empty, key(ID, r#"{"id":""}"#), "KeyInvalid", "it must be a string that is not empty", 0),
        case(Empty, order("null"), "EventNotDeserialized", "::Order`: invalid type: null", 0),
        case(Empty, Input::Picked(Ok(String::new())), "KeyInvalid", "needs at least one character", 0),
        case(Truncated, key(DETAIL, r#"{"detail":{}}"#), "KeyNotFound", "no `detail.orderId`: correct the path", 0),
        case(Truncated, key(DETAIL, "{}"), "KeyNotFound", "(it ends before `detail`): correct the path", 0),
        case(Truncated, order(r#"{"id":"A-17"}"#), "EventNotDeserialized", "missing field `amount`", 0),
        case(Oversized, key(ID, long), "KeyInvalid", "has 2049 bytes and DynamoDB takes 2048: take the key from", 0),
        case(Oversized, Input::Picked(Ok("x".repeat(2_049))), "KeyInvalid", "take the key from a shorter value", 0),
        case(Other, key(ID, r#"{"id":"17#state"}"#), "KeyInvalid", "ends with `#state`, and there the state of", 0),
        case(Other, Input::Picked(Ok("17#state".to_owned())), "KeyInvalid", "take the key from another value", 0),
        case(Oversized, Input::Json(deep), "EventNotDeserialized", "recursion limit exceeded", 0),
        case(
            Oversized,
            order(format!(r#"{{"id":"A-17","amount":"{}"}}"#, "x".repeat(1_000_000))),
            "EventNotDeserialized",
            "xxx\", expected u32 at line 1",
            0,
        ),
        case(
            Oversized,
            order(r#"{"id":"A-17","amount":4294967296}"#),
            "EventNotDeserialized",
            "at `amount`: invalid value: integer `4294967296`, expected u32",
            0,
        ),
        case(WrongType, key(ID, r#"{"id":1.0}"#), "KeyInvalid", "`id` is the number 1.0: it must be a string", 0),
        case(WrongType, key(ID, r#"{"id":null}"#), "KeyInvalid", "`id` is null: it must be a string", 0),
        case(WrongType, key(DETAIL, r#"{"detail":"x"}"#), "KeyInvalid", "`detail` is a string, so", 0),
        case(WrongType, key(ID, "[7]"), "KeyInvalid", "it must be an object, or the path be corrected", 0),
        case(
            WrongType,
            order(r#"{"id":7,"amount":1}"#),
            "EventNotDeserialized",
            "at `id`: invalid type: integer `7`",
            0,
        ),
        case(
            WrongVersion,
            key("{requestContext.http.sourceIp}", REST),
            "KeyNotFound",
            "(it ends before `requestContext.http`): correct the path",
            0,
        ),
        case(NotUtf8, key(ID, r#"{"id":"\ud800"}"#), "KeyInvalid", "surrogate", 0),
        case(
            NotUtf8,
            order(r#"{"id":"\ud800","amount":1}"#),
            "EventNotDeserialized",
            "at `id`: unexpected end of hex escape",
            0,
        ),
        case(Other, key(ID, r#"{"id":1,"id":2}"#), "KeyInvalid", "let the sender write each name once", 0),
        case(Other, key("{@tenant_id}", "{}"), "KeyInvalid", "turn on tenant isolation", 0),
        case(Other, Input::Picked(Err("no order in it")), "KeyInvalid", "the layer's `keyed_by`: no order in it", 0),
    ]
}

fn event(json: String) -> LambdaEvent<Box<RawValue>> {
    LambdaEvent::new(RawValue::from_string(json).unwrap(), Context::default())
}

async fn run(input: Input) -> Seen {
    let stage = Stage::over(NOWHERE);
    match input {
        Input::Key(template, json) => {
            let layer = stage.layer::<IgnoredAny>(template).build().unwrap();
            stage.call(&layer, event(json)).await
        }
        Input::Order(json) => {
            let layer = stage.layer::<Order>("orders:{id}").build().unwrap();
            stage.call(&layer, event(json)).await
        }
        Input::Json(json) => {
            let layer = stage.layer::<Value>("nightly").build().unwrap();
            stage.call(&layer, event(json)).await
        }
        Input::Reserve(seconds) => {
            let layer = stage.layer::<Value>("orders:{id}").reserve(Duration::from_secs(seconds)).build().unwrap();
            let mut event = event(r#"{"id":1}"#.to_owned());
            event.context.deadline = (SystemClock::new().now().wall + Duration::from_secs(30)).as_millis();
            stage.call(&layer, event).await
        }
        Input::Picked(picked) => {
            let layer = LeaseLayer::keyed_by(move |_: &LambdaEvent<Value>| picked.clone());
            let layer = layer.table("locks").socket(stage.socket()).environment([("LEASEHOLD_KEEPER", "extension")]);
            stage.call(&layer.build().unwrap(), event("{}".to_owned())).await
        }
    }
}

#[tokio::test]
async fn events_that_give_no_key_or_are_not_the_handlers() {
    check("event", cases(), run).await;
}
