//! What DynamoDB answers, or what answers in its place; and tables that are not as the settings say.

use aws_sdk_dynamodb::types::ScalarAttributeType;
use serde_json::Value;

use crate::played::order;
use crate::stage::{Builder, Set, Stage};
use crate::support::embedded_dynamodb::EmbeddedDynamoDb;
use crate::support::fault_server::{Fault, FaultServer};
use crate::table::{Case, Kind, Seen, case, check};

#[derive(Debug)]
enum Input {
    /// Every request is answered so.
    Answer(Fault),
    /// The tables are there, and a layer is set so.
    Table(Set),
}

fn table(name: &'static str, set: fn(Builder) -> Builder) -> Input {
    Input::Table(Set(name, set))
}

fn named(status: u16, code: &str, message: &str) -> Input {
    Input::Answer(Fault::error(status, code, message))
}

fn answer(status: u16, body: impl AsRef<[u8]>) -> Input {
    Input::Answer(Fault::answer(status, body))
}

/// Where an attempt may have landed, a release follows it, up to three times if it is not answered either.
fn cases() -> Vec<Case<Input>> {
    use Kind::*;
    const ENDPOINT: &str =
        "is probably not DynamoDB; check the endpoint (`AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL`)";
    vec![
        case(Empty, answer(200, ""), "StoreUnavailable", ENDPOINT, 4),
        case(Empty, answer(200, "{}"), "StoreUnavailable", "DynamoDB's answer to an applied write", 2),
        case(Empty, answer(400, "{}"), "StoreRejected", "check the endpoint (`AWS_ENDPOINT_URL_DYNAMODB`", 1),
        case(Truncated, answer(200, r#"{"Attributes":{"version":{"N":"#), "StoreUnavailable", "could not be read", 4),
        case(
            Truncated,
            Input::Answer(Fault::AnswerAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec())),
            "StoreUnavailable",
            ENDPOINT,
            4,
        ),
        case(Truncated, Input::Answer(Fault::Close), "StoreUnavailable", "closed the connection without an answer", 4),
        case(Oversized, named(400, "SomethingNew", &"x".repeat(100_000)), "StoreRejected", "xxx…", 1),
        case(
            Oversized,
            named(400, "ValidationException", "Item size has exceeded the maximum allowed size"),
            "MalformedRow",
            "the row has reached DynamoDB's limit of 400 KB",
            1,
        ),
        case(WrongType, answer(200, r#"{"Attributes":{"version":{"S":"8"}}}"#), "StoreUnavailable", "is a string", 2),
        case(WrongType, answer(200, "[]"), "StoreUnavailable", "could not be read", 4),
        case(
            WrongType,
            answer(403, "<html>No</html>"),
            "StoreRejected",
            "HTTP 403 (application/x-amz-json-1.0) and without an error's name",
            1,
        ),
        case(
            WrongVersion,
            named(400, "ConditionalCheckFailedException", "The conditional request failed"),
            "StoreRejected",
            "it has to support `ReturnValuesOnConditionCheckFailure`",
            1,
        ),
        case(
            WrongVersion,
            named(400, "UnknownOperationException", ""),
            "StoreRejected",
            "UnknownOperationException",
            1,
        ),
        case(
            WrongVersion,
            Input::Answer(Fault::AnswerAndClose(b"SSH-2.0-x\r\n".to_vec())),
            "StoreUnavailable",
            "does not speak HTTP",
            4,
        ),
        case(NotUtf8, answer(200, b"{\"Attributes\":{\"\xff\":{}}}"), "StoreUnavailable", "could not be read", 4),
        case(NotUtf8, answer(502, b"\xff\xfe"), "StoreUnavailable", "HTTP 502", 4),
        case(Other, named(400, "ThrottlingException", "slow down"), "StoreThrottled", "make it on-demand", 1),
        case(Other, named(400, "TransactionConflictException", "busy"), "TransactionConflict", "raise `max_wait`", 1),
        case(
            Other,
            named(400, "AccessDeniedException", "no"),
            "AccessDenied",
            "allow the function's role dynamodb:",
            1,
        ),
        case(Other, named(400, "ExpiredTokenException", "old"), "MissingCredentials", "check the function's role", 1),
        case(
            Other,
            table("no such table", |layer| layer.table("lokcs")),
            "TableNotFound",
            "correct `table` (LEASEHOLD_TABLE)",
            1,
        ),
        case(
            WrongType,
            table("its key is a number", |layer| layer.table("numbers")),
            "WrongKeySchema",
            "has the partition key `key` of type S and no sort key",
            1,
        ),
        case(
            Other,
            table("another key", |layer| layer.key_attribute("id")),
            "WrongKeySchema",
            "set `key_attribute` and `sort_key` to what the table has",
            1,
        ),
        case(
            Other,
            table("no such sort key", |layer| layer.sort_key("sk", "lock")),
            "WrongKeySchema",
            "and the sort key `sk`, both of type S",
            1,
        ),
        case(
            Other,
            table("a key named like an attribute", |layer| layer.key_attribute("owner")),
            "WrongKeySchema",
            "can't have the attribute `owner`",
            0,
        ),
    ]
}

async fn run(input: Input) -> Seen {
    let set = match input {
        Input::Answer(fault) => {
            let server = FaultServer::always(fault);
            let stage = Stage::over(server.url());
            let layer = stage.layer::<Value>("orders:{id}").build().unwrap();
            let seen = stage.call(&layer, order()).await;
            assert_eq!(server.seen().len(), seen.requests, "each is sent once: {seen:?}");
            return seen;
        }
        Input::Table(Set(_, set)) => set,
    };
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    dynamodb.create_table_of("numbers", "key", ScalarAttributeType::N, None).await;
    let stage = Stage::over(dynamodb.url());
    let layer = set(stage.layer::<Value>("orders:{id}")).build().unwrap();
    stage.call(&layer, order()).await
}

#[tokio::test]
async fn answers_that_are_none_and_tables_that_do_not_fit() {
    check("DynamoDB", cases(), run).await;
}
