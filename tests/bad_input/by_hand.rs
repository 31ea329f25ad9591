//! Leases taken by hand in a way that can't work: refused before anything is asked of DynamoDB.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Context, Diagnostic, LambdaEvent};
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::{Error, LeaseLayer};
use serde_json::{Value, json};

use crate::played::event;
use crate::stage::{NOWHERE, Stage};
use crate::table::{Case, Kind, Seen, case, check};

/// What is done.
#[derive(Clone, Debug)]
enum Input {
    /// A key is acquired.
    Acquire(String),
    /// A key is looked at.
    Inspect(String),
    /// A blocking call, within a runtime.
    Blocking(&'static str),
    /// A batch, or what is none, for a layer with this template over its records.
    Batch(&'static str, Value),
    /// An invocation that is over takes a lease.
    Late,
}

fn message(body: &str) -> Value {
    json!({
        "messageId": "1", "receiptHandle": "r", "body": body, "attributes": {}, "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders",
    })
}

fn cases() -> Vec<Case<Input>> {
    use Input::*;
    const EMPTY: &str = "needs at least one character";
    const LONG: &str = "take the key from a shorter value";
    const BODY: &str = "orders:{body.orderId}";
    let long = || "x".repeat(2_049);
    let records = |bodies: &[&str]| json!({ "Records": bodies.iter().map(|body| message(body)).collect::<Vec<_>>() });
    let of = |kind, input, error, says| case(kind, input, error, says, 0);
    vec![
        of(Kind::Empty, Acquire(String::new()), "KeyInvalid", EMPTY),
        of(Kind::Empty, Inspect(String::new()), "KeyInvalid", EMPTY),
        of(Kind::Empty, Batch(BODY, json!({})), "NotABatch", "missing field `Records`"),
        of(Kind::Oversized, Acquire(long()), "KeyInvalid", LONG),
        of(Kind::Oversized, Inspect(long()), "KeyInvalid", LONG),
        of(
            Kind::Truncated,
            Batch(BODY, records(&[r#"{"order_id":1,"amount":2}"#, "{}"])),
            "NoUsableRecord",
            "none of the batch's records (2)",
        ),
        of(
            Kind::Truncated,
            Batch(BODY, records(&[r#"{"order_id":1,"amount":2}"#])),
            "NoUsableRecord",
            "no `body.orderId`: correct the path",
        ),
        of(
            Kind::Truncated,
            Batch(BODY, records(&[r#"{"order_id":1,"amount":2}"#])),
            "NoUsableRecord",
            "what it has there is `amount`, `order_id`",
        ),
        of(
            Kind::WrongType,
            Batch(BODY, json!({ "detail": {}, "detail-type": "order", "source": "orders" })),
            "NotABatch",
            "what it has is `detail`, `[\"detail-type\"]`, `source`",
        ),
        of(Kind::WrongType, Batch(BODY, records(&["17"])), "NoUsableRecord", "`body` is a string"),
        of(
            Kind::WrongVersion,
            Batch(BODY, json!({ "Records": [{ "eventSource": "aws:s3", "s3": {} }] })),
            "NotABatch",
            "its `eventSource` is \"aws:s3\"",
        ),
        of(Kind::NotUtf8, Batch(BODY, records(&["/w=="])), "NoUsableRecord", "`body` is a string"),
        of(Kind::Other, Blocking("acquire"), "BlockingInAsync", "await `acquire` there"),
        of(Kind::Other, Blocking("try_acquire"), "BlockingInAsync", "await `try_acquire` there"),
        of(Kind::Other, Blocking("inspect"), "BlockingInAsync", "await `inspect` there"),
        of(Kind::Other, Late, "DeadlineTooClose", "raise the function's timeout or lower the reserve"),
    ]
}

async fn run(input: Input) -> Seen {
    let stage = Stage::over(NOWHERE);
    let (locks, wait) = (stage.by_hand(), Duration::ZERO);
    let refused = match input {
        Input::Acquire(key) => locks.acquire(key, wait).await.map(drop),
        Input::Inspect(key) => locks.inspect(key).await.map(drop),
        Input::Blocking("acquire") => locks.acquire_blocking("k", wait).map(drop),
        Input::Blocking("try_acquire") => locks.try_acquire_blocking("k").map(drop),
        Input::Blocking(_) => locks.inspect_blocking("k").map(drop),
        Input::Late => {
            let mut context = Context::default();
            // Long over, and no emulator's that has no deadline.
            context.deadline = 1_600_000_000_000;
            locks.for_invocation(&context).acquire("k", wait).await.map(drop)
        }
        Input::Batch(template, payload) => {
            let layer = LeaseLayer::<Value>::builder(template).table("locks").socket(stage.socket());
            let layer = layer.environment([("LEASEHOLD_KEEPER", "extension")]).per_record(ReportBatchItemFailures);
            let handler = service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Error>(()) });
            layer.build().unwrap().layer(handler).call(event(payload)).await.map(drop)
        }
    };
    stage.end(refused.map_err(Diagnostic::from)).await
}

#[tokio::test]
async fn leases_that_are_asked_for_in_a_way_that_can_not_work() {
    check("by hand and by record", cases(), run).await;
}
