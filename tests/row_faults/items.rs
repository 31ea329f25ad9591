//! Items to put into a lock table, and one attempt at such a row.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue::{self, B, Bool, Bs, L, M, N, Ns, Null, S, Ss};
use leasehold::layer::TemplateText;
use leasehold::{LeaseLayer, LeaseLayerBuilder};
use serde_json::Value;

use crate::played::order;
use crate::stage::Stage;
use crate::support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use crate::table::Seen;

/// The key of the only event.
pub const KEY: &str = "orders:A-17";

/// Somebody else's identity.
pub const OTHER: &str = "00000000-0000-4000-8000-000000000001";

/// A moment that no test lives to see, in milliseconds.
pub const FAR: &str = "4102444800000";

pub fn s(text: impl Into<String>) -> AttributeValue {
    S(text.into())
}

pub fn n(number: impl ToString) -> AttributeValue {
    N(number.to_string())
}

pub fn b(bytes: impl AsRef<[u8]>) -> AttributeValue {
    B(Blob::new(bytes.as_ref()))
}

pub fn map(fields: &[(&str, AttributeValue)]) -> AttributeValue {
    M(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

pub fn item(attributes: &[(&str, AttributeValue)]) -> Item {
    attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

pub fn with(mut row: Item, attribute: &str, value: AttributeValue) -> Item {
    row.insert(attribute.to_owned(), value);
    row
}

pub fn without(mut row: Item, attribute: &str) -> Item {
    row.remove(attribute).unwrap();
    row
}

/// A row of ours that somebody else holds.
pub fn held() -> Item {
    item(&[
        ("key", s(KEY)),
        ("format", s("leasehold/1")),
        ("version", n(7)),
        ("lease_ms", n(30_000)),
        ("owner", s(OTHER)),
        ("expires_at", n(FAR)),
        ("holder", map(&[("function", s("billing"))])),
    ])
}

/// A row of ours that nobody holds.
pub fn free() -> Item {
    item(&[
        ("key", s(KEY)),
        ("format", s("leasehold/1")),
        ("version", n(1_800_000_000_000_u64)),
        ("lease_ms", n(30_000)),
        ("ttl", n(FAR)),
    ])
}

/// A value of each type that an attribute can have.
pub fn of_every_type(number: &str) -> [AttributeValue; 10] {
    [
        s("text"),
        n(number),
        b([0xff, 0xfe]),
        Bool(true),
        Null(true),
        M(HashMap::from([("a".to_owned(), n(1))])),
        L(vec![n(1)]),
        Ss(vec!["a".to_owned()]),
        Ns(vec!["1".to_owned()]),
        Bs(vec![Blob::new([1])]),
    ]
}

/// What an attempt met, and what it left.
#[derive(Debug)]
pub struct Met {
    pub seen: Seen,
    /// The row as DynamoDB spells it: `1e2` is kept as `100`.
    pub before: Option<Item>,
    pub after: Option<Item>,
}

/// One event whose key has this row in the table `locks`.
pub async fn attempt(row: &Item) -> Met {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    dynamodb.put("locks", row.clone()).await;
    attempt_in(&dynamodb, "locks", |layer| layer).await
}

/// One event in this table, with a layer set so. There would be time to wait: an error that comes in one request did
/// not need it.
pub async fn attempt_in(
    dynamodb: &EmbeddedDynamoDb,
    table: &str,
    set: impl FnOnce(LeaseLayerBuilder<Value, TemplateText>) -> LeaseLayerBuilder<Value, TemplateText>,
) -> Met {
    let stage = Stage::over(dynamodb.url());
    let layer: LeaseLayer<Value, _> = set(stage.layer("orders:{id}").table(table)).build().unwrap();
    let before = dynamodb.items(table).await.into_iter().next();
    let seen = stage.call(&layer, order()).await;
    let after = dynamodb.items(table).await.into_iter().next();
    Met { seen, before, after }
}

/// The row is refused with this error, in one request, and is byte for byte what it was.
#[track_caller]
pub fn assert_refused(name: &str, met: &Met, error: &str, says: &str) {
    let Met { seen, before, after } = met;
    assert_eq!((seen.error.as_str(), seen.requests), (error, 1), "{name}: {seen:?}");
    assert!(seen.message.contains(says), "{name}, {says:?}: {}", seen.message);
    assert_one_line(&seen.message);
    assert!(before.is_some() && after == before, "{name} was written to: {before:?}, {after:?}");
}

/// Whatever stands in a row, a message is one line that can be read, and says nothing twice.
#[track_caller]
pub fn assert_one_line(message: &str) {
    assert!(message.len() < 2_000 && !message.chars().any(char::is_control), "{message}");
    let mut clauses: Vec<_> = message.split("; ").collect();
    clauses.sort_unstable();
    let count = clauses.len();
    clauses.dedup();
    assert_eq!(clauses.len(), count, "{message}");
    for advice in ["take a table", "delete it", "delete the row", "create `", "allow the function's role", "clock:"] {
        assert!(message.matches(advice).count() <= 1, "{advice}: {message}");
    }
}

/// Enough for a process on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
