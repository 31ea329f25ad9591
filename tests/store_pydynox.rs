//! Tables of the row format `pydynox/1`: every request against a row in every state, and rows that belong elsewhere.
//!
//! The expected row comes from a model of the format's rules that knows nothing of expressions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::Wall;
use leasehold::protocol::{FailureKind, Format, HeldRow, Hints, Outcome, OwnerId, Request, Row, Unusable, Version};
use leasehold::session::Table;
use leasehold::store::{DynamoDb, Lock, Store};
use support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use support::fault_server::{Fault, FaultServer};
use support::{lock_in, owner, sdk_config};

const KEY: &str = "sync:17";
const LEASE: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(10);

const ME: u128 = 1;
const OTHER: u128 = 2;
const UNKNOWN: u128 = 3;
const NEW: u128 = 4;

fn s(text: impl ToString) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn v(number: u128) -> Version {
    Version::Opaque(number)
}

fn lock() -> Lock {
    lock_in(Table::new("locks").speaking(Format::PydynoxV1), KEY)
}

/// A row as pydynox writes it.
fn written(by: u128, version: u128, lease_ms: u64) -> Item {
    [
        ("key", s(KEY)),
        ("owner", s(owner(by))),
        ("version", s(v(version))),
        ("lease_ms", n(lease_ms)),
        ("protocol", n(1)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn with(mut item: Item, name: &str, value: AttributeValue) -> Item {
    item.insert(name.to_owned(), value);
    item
}

fn without(mut item: Item, name: &str) -> Item {
    item.remove(name).unwrap();
    item
}

fn held(by: u128, version: u128, lease_ms: u64) -> Row {
    let lease = Duration::from_millis(lease_ms);
    Row::Held(HeldRow {
        owner: owner(by),
        version: v(version),
        lease,
        expires_at: None,
        holder: None,
        hints: Hints::default(),
    })
}

fn malformed(attribute: &str, found: &str) -> Row {
    Row::Unusable(Unusable::Malformed { attribute: attribute.into(), found: found.into() })
}

fn foreign(format: Option<&str>) -> Row {
    Row::Unusable(Unusable::Foreign { expected: Format::PydynoxV1, format: format.map(str::to_owned) })
}

/// A held row of the format `leasehold/1`.
fn leaseholds() -> Item {
    let mut item = without(written(OTHER, 7, 30_000), "protocol");
    item.extend([("format".to_owned(), s("leasehold/1")), ("version".to_owned(), n(7))]);
    item
}

/// Every state that a row may be found in, and how it is to be read.
fn states() -> Vec<(&'static str, Option<Item>, Row)> {
    let (mine, others) = (|| written(ME, 7, 30_000), || written(OTHER, 7, 30_000));
    let no_uuid = "is a string of 3 bytes that is not a UUID in lower case with hyphens";
    let spelled = "is a string of 36 bytes that is not a UUID in lower case with hyphens";
    let upper = s("0A1B2C3D-0000-4000-8000-0123456789AB");
    vec![
        ("absent", None, Row::Absent),
        ("mine", Some(mine()), held(ME, 7, 30_000)),
        ("mine, later version", Some(written(ME, 8, 30_000)), held(ME, 8, 30_000)),
        ("another's", Some(others()), held(OTHER, 7, 30_000)),
        ("another's, renewed", Some(written(OTHER, 8, 30_000)), held(OTHER, 8, 30_000)),
        ("another's, with a note", Some(with(others(), "note", s("hi"))), held(OTHER, 7, 30_000)),
        ("an unknown attempt's", Some(written(UNKNOWN, 5, 20_000)), held(UNKNOWN, 5, 20_000)),
        ("the shortest lease", Some(written(OTHER, 7, 100)), held(OTHER, 7, 100)),
        ("the longest lease", Some(written(OTHER, 7, 86_400_000)), held(OTHER, 7, 86_400_000)),
        ("too short", Some(written(OTHER, 7, 99)), malformed("lease_ms", "is 99, not from 100 to 86400000")),
        (
            "too long",
            Some(written(OTHER, 7, 86_400_001)),
            malformed("lease_ms", "is 86400001, not from 100 to 86400000"),
        ),
        ("no lease", Some(without(others(), "lease_ms")), malformed("lease_ms", "is missing")),
        (
            "a text's lease",
            Some(with(others(), "lease_ms", s("1"))),
            malformed("lease_ms", "is a string, not a number"),
        ),
        ("no owner", Some(without(others(), "owner")), malformed("owner", "is missing")),
        ("a number owns it", Some(with(others(), "owner", n(1))), malformed("owner", "is a number, not a string")),
        ("bob owns it", Some(with(others(), "owner", s("bob"))), malformed("owner", no_uuid)),
        ("a loud owner", Some(with(others(), "owner", upper.clone())), malformed("owner", spelled)),
        ("no version", Some(without(others(), "version")), malformed("version", "is missing")),
        ("a counter", Some(with(others(), "version", n(7))), malformed("version", "is a number, not a string")),
        ("a word for version", Some(with(others(), "version", s("one"))), malformed("version", no_uuid)),
        ("a loud version", Some(with(others(), "version", upper)), malformed("version", spelled)),
        ("no protocol", Some(without(others(), "protocol")), foreign(None)),
        ("another protocol", Some(with(others(), "protocol", n(2))), foreign(Some("protocol 2"))),
        ("a text's protocol", Some(with(others(), "protocol", s("1"))), foreign(Some("protocol (a string)"))),
        ("leasehold's", Some(leaseholds()), foreign(Some("leasehold/1"))),
        ("both at once", Some(with(others(), "format", s("leasehold/1"))), foreign(Some("leasehold/1"))),
        ("no lock at all", Some(Item::from([("key".to_owned(), s(KEY)), ("x".to_owned(), n(1))])), foreign(None)),
    ]
}

fn requests() -> Vec<(&'static str, Request)> {
    let (me, other, unknown, new) = (owner(ME), owner(OTHER), owner(UNKNOWN), owner(NEW));
    let (version, at, lease, expires_at) = (Some(v(40)), Wall::from_millis(1), LEASE, None);
    let acquire = |unknown| Request::Acquire { owner: new, version, at, lease, expires_at, unknown, served: None };
    let take_over = |seen_owner, seen_version| Request::TakeOver {
        owner: new,
        version,
        at,
        lease,
        expires_at,
        seen_owner,
        seen_version,
        served: Some(3),
    };
    vec![
        ("acquire", acquire(vec![])),
        ("acquire again", acquire(vec![unknown])),
        ("take over", take_over(other, v(7))),
        ("take over by a counter", take_over(other, Version::Counter(7))),
        ("renew", Request::Renew { owner: me, version: v(7), new_version: v(41), expires_at }),
        ("park", Request::Park { owner: me, version: v(7), parked: new, new_version: v(42), at, lease, expires_at }),
        ("release", Request::Release { owners: vec![me], ttl: None, hold: None }),
        ("release many", Request::Release { owners: vec![me, unknown], ttl: Some(9), hold: None }),
        ("release none", Request::Release { owners: vec![], ttl: None, hold: None }),
        ("ticket", Request::Ticket),
        ("read", Request::Read),
    ]
}

/// What a request does to a row: the row afterwards and the answer's version, or `None` when its condition does not hold.
fn model(request: &Request, row: &Row) -> Option<(Option<Item>, Version)> {
    let taken = || Some((Some(written(NEW, 40, 20_000)), v(40)));
    match (request, row) {
        (Request::Acquire { .. }, Row::Absent) => taken(),
        (Request::Acquire { unknown, .. }, Row::Held(held)) if unknown.contains(&held.owner) => taken(),
        (Request::TakeOver { seen_owner, seen_version, .. }, Row::Held(held))
            if (held.owner, held.version) == (*seen_owner, *seen_version) =>
        {
            taken()
        }
        (Request::Renew { owner, version, .. }, Row::Held(held))
            if (held.owner, held.version) == (*owner, *version) =>
        {
            Some((Some(written(ME, 41, 30_000)), v(41)))
        }
        (Request::Park { owner, version, .. }, Row::Held(held)) if (held.owner, held.version) == (*owner, *version) => {
            Some((Some(written(NEW, 42, 20_000)), v(42)))
        }
        (Request::Release { owners, .. }, Row::Held(held)) if owners.contains(&held.owner) => {
            Some((None, Version::Counter(0)))
        }
        _ => None,
    }
}

#[tokio::test]
async fn every_request_does_to_a_row_in_every_state_what_the_format_says() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    let mut failures = Vec::new();
    for (state, item, row) in states() {
        for (name, request) in requests() {
            dynamodb.delete("locks", KEY).await;
            if let Some(item) = item.clone() {
                dynamodb.put("locks", item).await;
            }
            let outcome = store.send(&lock(), request.clone(), TIMEOUT).await.outcome;
            let after = dynamodb.only_item("locks").await;
            let (expected, expected_after) = match model(&request, &row) {
                _ if matches!(request, Request::Read | Request::Ticket) => {
                    (Outcome::Read { row: row.clone() }, item.clone())
                }
                Some((after, version)) => (Outcome::written(version), after),
                None => (Outcome::Refused { row: row.clone() }, item.clone()),
            };
            if outcome != expected {
                failures.push(format!("{name} on {state}: {outcome:?}, not {expected:?}"));
            }
            if after != expected_after {
                failures.push(format!("{name} on {state} left {after:?}, not {expected_after:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn a_row_of_this_format_is_foreign_to_the_other_and_left_alone() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    let row = written(OTHER, 7, 30_000);
    dynamodb.put("locks", row.clone()).await;
    let leaseholds = lock_in(Table::new("locks"), KEY);
    let expected = Row::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format: None });
    for (name, request) in requests() {
        let outcome = store.send(&leaseholds, request.clone(), TIMEOUT).await.outcome;
        match outcome {
            Outcome::Refused { row } | Outcome::Read { row } => assert_eq!(row, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(dynamodb.only_item("locks").await.as_ref(), Some(&row), "{name}");
    }
}

#[tokio::test]
async fn of_many_acquires_at_once_exactly_one_is_written() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = std::sync::Arc::new(DynamoDb::with_config(sdk_config(dynamodb.url())));
    let attempts = (0..50).map(|number| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move {
            let (owner, version, at) = (owner(number), Some(v(100 + number)), Wall::from_millis(1));
            let request =
                Request::Acquire { owner, version, at, lease: LEASE, expires_at: None, unknown: vec![], served: None };
            store.send(&lock(), request, TIMEOUT).await.outcome
        })
    });
    let mut written = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        match attempt.await.unwrap() {
            Outcome::Written { .. } => written += 1,
            Outcome::Refused { row: Row::Held(_) } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(written, 1);
}

/// DynamoDB limits a list's operands and an expression's length.
#[tokio::test]
async fn an_acquisition_may_have_any_number_of_unknown_attempts() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    for count in [99, 100, 101, 350, 1_000] {
        let unknown: Vec<OwnerId> = (0..count).map(|number| owner(1_000 + number)).collect();
        dynamodb.put("locks", written(1_000 + count - 1, 7, 20_000)).await;
        let (version, at, lease) = (Some(v(8)), Wall::from_millis(1), LEASE);
        let again = Request::Acquire {
            owner: owner(NEW),
            version,
            at,
            lease,
            expires_at: None,
            unknown: unknown.clone(),
            served: None,
        };
        let outcome = store.send(&lock(), again, TIMEOUT).await.outcome;
        assert_eq!(outcome, Outcome::written(v(8)), "{count}");

        dynamodb.put("locks", written(1_000 + count - 90, 7, 20_000)).await;
        let outcome =
            store.send(&lock(), Request::Release { owners: unknown, ttl: None, hold: None }, TIMEOUT).await.outcome;
        assert_eq!(outcome, Outcome::written(Version::Counter(0)), "{count}");
        assert_eq!(dynamodb.only_item("locks").await, None);
    }
}

#[tokio::test]
async fn a_table_that_pydynox_could_not_use_or_an_unknown_format_is_told_before_any_request() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    let pydynox = || Table::new("locks").speaking(Format::PydynoxV1);
    for (table, kind, told) in [
        (Table { key_attribute: "pk".into(), ..pydynox() }, FailureKind::WrongKeySchema, "the partition key `key`"),
        (Table { sort_key: Some(("sk".into(), "x".into())), ..pydynox() }, FailureKind::WrongKeySchema, "no sort key"),
        (Table { format: "java/1".into(), ..pydynox() }, FailureKind::Rejected, "`leasehold/1` or `pydynox/1`"),
    ] {
        for (_, request) in requests() {
            match store.send(&lock_in(table.clone(), KEY), request, TIMEOUT).await.outcome {
                Outcome::Failed(failure) if failure.kind == kind && failure.message.contains(told) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(store.usage().acquires, 0);
}

#[tokio::test]
async fn a_refusal_of_permission_names_what_the_format_needs() {
    let server = FaultServer::always(Fault::error(400, "AccessDeniedException", "not authorized"));
    let store = DynamoDb::with_config(sdk_config(server.url()));
    let needed = |lock, request| {
        let store = &store;
        async move {
            match store.send(&lock, request, TIMEOUT).await.outcome {
                Outcome::Failed(failure) if failure.kind == FailureKind::AccessDenied => failure.message,
                other => panic!("{other:?}"),
            }
        }
    };
    for (operation, (_, request)) in [
        "PutItem",
        "PutItem",
        "PutItem",
        "PutItem",
        "UpdateItem",
        "UpdateItem",
        "DeleteItem",
        "DeleteItem",
        "DeleteItem",
        "GetItem",
    ]
    .into_iter()
    .zip(requests())
    {
        let told = needed(lock(), request).await;
        assert!(told.contains(&format!("{operation} on table `locks`")), "{told}");
        let all = "dynamodb:PutItem, dynamodb:UpdateItem, dynamodb:DeleteItem and dynamodb:GetItem on `locks`";
        assert!(told.contains(all), "{told}");
    }
    let told = needed(lock_in(Table::new("locks"), KEY), Request::Read).await;
    assert!(told.contains("role dynamodb:UpdateItem and dynamodb:GetItem on"), "{told}");
}

/// What a write leaves in doubt is unknown, and what is in doubt may be replaced: a reply that is cut off, late or empty.
#[tokio::test]
async fn a_reply_that_can_not_be_read_leaves_a_write_unknown() {
    for fault in [
        Fault::answer(200, "{"),
        Fault::Close,
        Fault::Hang,
        Fault::error(500, "InternalServerError", "try again"),
        Fault::answer(502, ""),
    ] {
        let server = FaultServer::always(fault.clone());
        let store = DynamoDb::with_config(sdk_config(server.url()));
        for (name, request) in requests().into_iter().filter(|(_, request)| *request != Request::Read) {
            match store.send(&lock(), request, Duration::from_millis(500)).await.outcome {
                Outcome::Failed(failure) if failure.kind.may_have_landed() => {}
                other => panic!("{name}, {fault:?}: {other:?}"),
            }
        }
    }
    // A renewal's own answer has to bring the version that it wrote.
    for body in ["{}", r#"{"Attributes":{"version":{"S":"x"}}}"#, r#"{"Attributes":{"version":{"N":"8"}}}"#] {
        let server = FaultServer::always(Fault::answer(200, body));
        let store = DynamoDb::with_config(sdk_config(server.url()));
        let renew = Request::Renew { owner: owner(ME), version: v(7), new_version: v(41), expires_at: None };
        match store.send(&lock(), renew, TIMEOUT).await.outcome {
            Outcome::Failed(failure) if failure.kind == FailureKind::Server => {}
            other => panic!("{body}: {other:?}"),
        }
    }
}
