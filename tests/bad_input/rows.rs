//! Rows of the lock table that others wrote or broke: named, left alone, and asked for once.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue::{self, Bool, M, N, S};
use lambda_runtime::Diagnostic;
use leasehold::KeyState;
use serde_json::Value;

use crate::played::order;
use crate::stage::Stage;
use crate::support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use crate::table::{Case, Kind, Seen, case, check};

const KEY: &str = "orders:A-17";

fn item(attributes: &[(&str, AttributeValue)]) -> Item {
    let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    attributes.chain([("key".to_owned(), S(KEY.to_owned()))]).collect()
}

/// A held row of ours.
fn held() -> Item {
    item(&[
        ("format", S("leasehold/1".into())),
        ("version", N("7".into())),
        ("lease_ms", N("30000".into())),
        ("owner", S("00000000-0000-4000-8000-000000000001".into())),
    ])
}

fn without(attribute: &str) -> Item {
    let mut item = held();
    item.remove(attribute).unwrap();
    item
}

fn with(attribute: &str, value: AttributeValue) -> Item {
    let mut item = held();
    item.insert(attribute.to_owned(), value);
    item
}

fn free(version: AttributeValue) -> Item {
    let mut item = without("owner");
    item.insert("version".to_owned(), version);
    item
}

fn cases() -> Vec<Case<Item>> {
    use Kind::*;
    const OWN_TABLE: &str = "take a table or a `namespace` of its own";
    const BY_HAND: &str = "look at the row and delete it";
    let foreign = |kind, item, says| case(kind, item, "ForeignRow", says, 1);
    let malformed = |kind, item, says| case(kind, item, "MalformedRow", says, 1);
    let n = |text: &str| N(text.to_owned());
    let s = |text: &str| S(text.to_owned());
    let binary = || AttributeValue::B(Blob::new(b"\xff\xfe"));
    vec![
        foreign(Empty, item(&[]), OWN_TABLE),
        malformed(Empty, with("owner", s("")), "`owner` is a string of 0 bytes"),
        malformed(Empty, with("version", AttributeValue::Null(true)), "`version` is null, not a number"),
        malformed(Truncated, without("version"), "`version` is missing"),
        malformed(Truncated, without("lease_ms"), "`lease_ms` is missing"),
        malformed(Truncated, with("owner", s("00000000-0000-4000")), "is not a UUID in lower case with hyphens"),
        foreign(Truncated, without("format"), OWN_TABLE),
        malformed(Oversized, with("version", n("9223372036854775808")), "not an integer from 0 to 2^63 - 1"),
        malformed(Oversized, free(n("9223372036854775808")), "not an integer from 0 to 2^63 - 1"),
        malformed(Oversized, free(n("9223372036854775807")), "too high for the next lease to count on from"),
        malformed(Oversized, with("lease_ms", n("86400001")), "`lease_ms` is 86400001, not from 100 to 86400000"),
        malformed(Oversized, with("owner", s(&"x".repeat(100_000))), "is a string of 100000 bytes"),
        foreign(Oversized, with("format", s(&"x".repeat(100_000))), "…"),
        malformed(WrongType, with("version", s("7")), "`version` is a string, not a number"),
        malformed(WrongType, free(s("7")), "`version` is a string, not a number"),
        malformed(WrongType, with("version", n("1.5")), "`version` is 1.5, not an integer"),
        malformed(WrongType, free(n("-1")), "`version` is -1, not an integer"),
        malformed(WrongType, with("owner", n("1")), "`owner` is a number, not a string"),
        malformed(WrongType, with("lease_ms", Bool(true)), BY_HAND),
        malformed(WrongType, with("expires_at", s("soon")), "`expires_at` is a string, not a number"),
        foreign(WrongType, with("format", n("1")), "(a number)"),
        foreign(WrongVersion, with("format", s("leasehold/2")), "leasehold/2"),
        malformed(NotUtf8, with("owner", binary()), "`owner` is binary, not a string"),
        foreign(NotUtf8, with("format", binary()), "(binary)"),
        case(
            NotUtf8,
            with("holder", M(HashMap::from([("function".to_owned(), s("billing\n\u{1b}[2J"))]))),
            "LeaseBusy",
            "is held by billing\u{fffd}\u{fffd}[2J; waited",
            1,
        ),
        case(
            Other,
            with("holder", M(HashMap::from([("function".to_owned(), n("1"))]))),
            "LeaseBusy",
            "raise `max_wait`",
            1,
        ),
    ]
}

async fn run(row: Item) -> Seen {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    dynamodb.put("locks", row.clone()).await;
    let stage = Stage::over(dynamodb.url());
    let layer = stage.layer::<Value>("orders:{id}").build().unwrap();
    let seen = stage.call(&layer, order()).await;
    assert_eq!(dynamodb.only_item("locks").await, Some(row), "it is never overwritten");
    seen
}

/// The same rows, only looked at.
async fn look(row: Item) -> Seen {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    dynamodb.put("locks", row.clone()).await;
    let stage = Stage::over(dynamodb.url());
    let seen = match stage.by_hand().inspect(KEY).await {
        // A holder is what a look is for.
        Ok(KeyState::Held { holder, .. }) => {
            let said = format!("`{KEY}` is held by {}; waited for nothing: raise `max_wait`", holder.unwrap());
            let told = Diagnostic { error_type: "LeaseBusy".to_owned(), error_message: said };
            stage.end(Err(told)).await
        }
        Ok(state) => panic!("{state:?}"),
        Err(error) => stage.end(Err(error.into())).await,
    };
    assert_eq!(dynamodb.only_item("locks").await, Some(row), "it is never overwritten");
    seen
}

#[tokio::test]
async fn rows_that_are_no_locks_and_are_only_looked_at() {
    check("row that is looked at", cases(), look).await;
}

#[tokio::test]
async fn rows_that_are_no_locks() {
    check("row", cases(), run).await;
}
