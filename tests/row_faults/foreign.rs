//! Rows of other programs, each in the shape in which its client writes it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue::{self, Bool, L};
use leasehold::clock::Wall;
use leasehold::layer::TemplateText;
use leasehold::protocol::{Outcome, OwnerId, Request, Row, Unusable, Version};
use leasehold::session::Table;
use leasehold::store::{DynamoDb, Store};
use leasehold::{LeaseLayerBuilder, session};
use serde_json::Value;

use crate::items::{
    FAR, KEY, OTHER, assert_refused, attempt, attempt_in, b, free, held, item, map, n, of_every_type, s, with, without,
};
use crate::support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use crate::support::{lock_in, sdk_config};

const UUID: &str = "8c5f1f0e-33a4-4a8b-9d4a-2f6f5a2b7c11";

struct Foreign {
    client: &'static str,
    partition_key: &'static str,
    sort_key: Option<(&'static str, &'static str)>,
    row: Item,
}

fn under_key(client: &'static str, attributes: &[(&str, AttributeValue)]) -> Foreign {
    let row = with(item(attributes), "key", s(KEY));
    Foreign { client, partition_key: "key", sort_key: None, row }
}

fn under_two_keys(
    client: &'static str,
    (partition_key, sort_key): (&'static str, &'static str),
    attributes: &[(&str, AttributeValue)],
) -> Foreign {
    let row = with(with(item(attributes), partition_key, s(KEY)), sort_key, s("#LOCK"));
    Foreign { client, partition_key, sort_key: Some((sort_key, "#LOCK")), row }
}

fn foreign() -> Vec<Foreign> {
    let java = [
        ("ownerName", s("ip-10-0-0-7.eu-central-1.compute.internal5f2c")),
        ("leaseDuration", s("20000")),
        ("recordVersionNumber", s(UUID)),
        ("data", b("shard 7")),
    ];
    let released = [&java[..], &[("isReleased", s("1"))]].concat();
    let go = [
        ("ownerName", s("k3Jx0v8QmBfZ2hLwT7cYpR5nD1sGa9Ue")),
        ("leaseDuration", s("20s")),
        ("recordVersionNumber", s("Wq0c3m7XkPz5Lr2Tn8Vb1Yj6Hd4Gf9Sa")),
        ("data", b("")),
    ];
    let brighter = [("ResourceId", s(KEY)), ("LeaseExpiry", n(FAR)), ("LockId", s(UUID))];
    let order = [("customer", s("ACME")), ("total", n("12.50")), ("paid", Bool(true)), ("lines", L(vec![n(1)]))];
    vec![
        under_key(
            "pydynox, held",
            &[("owner", s(OTHER)), ("version", s(UUID)), ("lease_ms", n(30_000)), ("protocol", n(1))],
        ),
        under_key("amazon-dynamodb-lock-client for Java, held", &java),
        under_key("amazon-dynamodb-lock-client for Java, released", &released),
        under_key("cirello.io/dynamolock for Go, held", &go),
        under_key("cirello.io/dynamolock for Go, released", &[&go[..], &[("isReleased", s("1"))]].concat()),
        under_key(
            "Clever's dynamodb-lock-go, leased until a date",
            &[
                ("owner", s("worker-7")),
                ("leasedUntil", s("2020-01-01T00:00:00Z")),
                ("createdAt", s("2019-12-31T23:59:30Z")),
                ("ttl", n(1_578_009_600)),
            ],
        ),
        Foreign { client: "Brighter", partition_key: "ResourceId", sort_key: None, row: item(&brighter) },
        under_two_keys("a single-table lock", ("PK", "SK"), &[("expiresAt", n(1_577_836_800)), ("owner", s(OTHER))]),
        under_two_keys(
            "DynamoDb.DistributedLock for .NET",
            ("pk", "sk"),
            &[("ownerId", s(UUID)), ("expiresAt", n(1_577_836_800))],
        ),
        under_key("an application's row", &order),
        under_key("an application's row with a map named `format`", &[("format", map(&[("paper", s("A4"))]))]),
        under_key("a row with nothing but its key", &[]),
        Foreign {
            client: "ours but for its format",
            partition_key: "key",
            sort_key: None,
            row: without(held(), "format"),
        },
    ]
}

async fn table_with(Foreign { partition_key, sort_key, row, .. }: &Foreign) -> EmbeddedDynamoDb {
    let dynamodb = EmbeddedDynamoDb::start();
    dynamodb.create_table("locks", partition_key, sort_key.map(|(name, _)| name)).await;
    dynamodb.put("locks", row.clone()).await;
    dynamodb
}

#[tokio::test]
async fn a_row_of_every_other_lock_client_is_refused_in_one_request_and_left_as_it_is() {
    for foreign in foreign() {
        let dynamodb = table_with(&foreign).await;
        let Foreign { client, partition_key, sort_key, .. } = &foreign;
        let set = |layer: LeaseLayerBuilder<Value, TemplateText>| {
            let layer = layer.key_attribute(*partition_key).max_wait(Duration::from_secs(2));
            match sort_key {
                Some((name, value)) => layer.sort_key(*name, *value),
                None => layer,
            }
        };
        let met = attempt_in(&dynamodb, "locks", set).await;
        assert_refused(client, &met, "ForeignRow", "take a table or a `namespace` of its own for these locks");
    }
}

/// An owner and a version that happen to be right don't make it ours.
#[tokio::test]
async fn no_request_at_all_writes_to_such_a_row() {
    let (me, at, lease) =
        (OwnerId::parse(OTHER).unwrap(), Wall::from_millis(1_900_000_000_000), Duration::from_secs(30));
    let seen = Version::Counter(7);
    let writes = [
        Request::Acquire {
            owner: OwnerId::random(),
            version: None,
            at,
            lease,
            expires_at: None,
            unknown: vec![me],
            served: None,
        },
        Request::TakeOver {
            owner: OwnerId::random(),
            version: None,
            at,
            lease,
            expires_at: None,
            seen_owner: me,
            seen_version: seen,
            served: None,
        },
        Request::Renew { owner: me, version: seen, new_version: Version::Counter(8), expires_at: None },
        Request::Park {
            owner: me,
            version: seen,
            parked: OwnerId::random(),
            new_version: Version::Counter(8),
            at,
            lease,
            expires_at: None,
        },
        Request::Release { owners: vec![OwnerId::random()], ttl: Some(1), hold: None },
    ];
    for foreign in foreign() {
        let dynamodb = table_with(&foreign).await;
        let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
        let Foreign { client, partition_key, sort_key, .. } = &foreign;
        let row = dynamodb.only_item("locks").await;
        let table: session::Table = Table {
            key_attribute: (*partition_key).to_owned(),
            sort_key: sort_key.map(|(name, value)| (name.to_owned(), value.to_owned())),
            ..Table::new("locks")
        };
        for request in writes.clone() {
            let answer = store.send(&lock_in(table.clone(), KEY), request.clone(), crate::items::PATIENCE).await;
            let refused = matches!(answer.outcome, Outcome::Refused { row: Row::Unusable(Unusable::Foreign { .. }) });
            assert!(refused, "{client}, {request:?}: {answer:?}");
            assert_eq!(dynamodb.only_item("locks").await, row, "{client}, {request:?}");
        }
    }
}

#[tokio::test]
async fn a_row_whose_format_is_any_other_value_is_foreign() {
    for value in of_every_type("1").into_iter().chain([s(""), s("leasehold/1 "), s("LEASEHOLD/1"), s("leasehold/10")]) {
        for row in [held(), free()] {
            let row = with(row, "format", value.clone());
            assert_refused(&format!("{value:?}"), &attempt(&row).await, "ForeignRow", "its `format` is `");
        }
    }
}

#[tokio::test]
async fn a_later_releases_row_is_told_as_that() {
    for row in [held(), free()] {
        let row = with(row, "format", s("leasehold/2"));
        let says = "its `format` is `leasehold/2`; it is left alone, so take a table or a `namespace` of its own for \
                    these locks, or deploy the release that wrote it, function and extension, everywhere";
        assert_refused("leasehold/2", &attempt(&row).await, "ForeignRow", says);
    }
}

#[tokio::test]
async fn beside_a_foreign_row_under_another_sort_key_a_lock_is_taken() {
    let dynamodb = EmbeddedDynamoDb::start();
    dynamodb.create_table("locks", "PK", Some("SK")).await;
    let row = item(&[("PK", s(KEY)), ("SK", s("PROFILE")), ("name", s("ACME"))]);
    dynamodb.put("locks", row.clone()).await;
    let met = attempt_in(&dynamodb, "locks", |layer| layer.key_attribute("PK").sort_key("SK", "#LOCK")).await;
    assert_eq!((met.seen.error.as_str(), met.seen.requests), ("none", 2), "{met:?}");
    let items = dynamodb.items("locks").await;
    assert!(items.len() == 2 && items.contains(&row), "{items:?}");
}

#[tokio::test]
async fn the_message_names_key_table_and_what_was_found_and_says_once_what_to_do() {
    let row = item(&[("key", s(KEY)), ("customer", s("ACME"))]);
    assert_eq!(
        attempt(&row).await.seen.message,
        "no lease or state on `orders:A-17`: in table `locks` the row is not a lock of the format `leasehold/1`: it has no \
         attribute `format`; it is left alone, so take a table or a `namespace` of its own for these locks"
    );
}
