//! Tables of every shape that the settings allow, and of shapes that they don't.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as ProvideFuture;
use aws_sdk_dynamodb::config::ProvideCredentials;
use aws_sdk_dynamodb::types::{AttributeValue, ScalarAttributeType};
use leasehold::clock::Wall;
use leasehold::protocol::{Failure, FailureKind, Outcome, Request, Row, Version};
use leasehold::session::Table;
use leasehold::store::{DynamoDb, Store};
use support::embedded_dynamodb::EmbeddedDynamoDb;
use support::{lock_in, owner, sdk_config};

const TIMEOUT: Duration = Duration::from_secs(10);

fn requests() -> [Request; 5] {
    let (me, at, lease) = (owner(1), Wall::from_millis(1_700_000_000_000), Duration::from_secs(30));
    [
        Request::Acquire { owner: me, version: None, at, lease, expires_at: None, unknown: vec![], served: None },
        Request::TakeOver {
            owner: me,
            version: None,
            at,
            lease,
            expires_at: None,
            seen_owner: owner(2),
            seen_version: Version::Counter(7),
            served: None,
        },
        Request::Renew {
            owner: me,
            version: Version::Counter(1_700_000_000_001),
            new_version: Version::Counter(1_700_000_000_002),
            expires_at: None,
        },
        Request::Release { owners: vec![me], ttl: None, hold: None },
        Request::Read,
    ]
}

async fn outcomes(store: &DynamoDb, table: &Table, key: &str) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for request in requests() {
        outcomes.push(store.send(&lock_in(table.clone(), key), request, TIMEOUT).await.outcome);
    }
    outcomes
}

#[track_caller]
fn assert_works(outcomes: &[Outcome]) {
    let [
        Outcome::Written { version: Version::Counter(1_700_000_000_001), .. },
        Outcome::Refused { row: Row::Held(_) },
        Outcome::Written { version: Version::Counter(1_700_000_000_002), .. },
        Outcome::Written { version: Version::Counter(0), .. },
        Outcome::Read { row: Row::Free { version: 1_700_000_000_002, .. } },
    ] = outcomes
    else {
        panic!("{outcomes:#?}");
    };
}

#[track_caller]
fn assert_all_fail(outcomes: &[Outcome], kind: FailureKind, told: &str) {
    for outcome in outcomes {
        match outcome {
            Outcome::Failed(failure) if failure.kind == kind && failure.message.contains(told) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn start() -> (EmbeddedDynamoDb, DynamoDb) {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    (dynamodb, store)
}

#[tokio::test]
async fn keys_may_be_named_as_one_likes_be_it_by_reserved_words() {
    let (dynamodb, store) = start().await;
    let names = ["PK", "data", "name", "lock.key", "lock-key", "schlüssel", "#n", "1st"];
    for (number, name) in names.into_iter().enumerate() {
        let table = format!("table-{number}");
        dynamodb.create_table(&table, name, None).await;
        let table = Table { key_attribute: name.to_owned(), ..Table::new(table) };
        assert_works(&outcomes(&store, &table, "k").await);
    }
}

#[tokio::test]
async fn a_table_may_have_a_sort_key_of_one_value() {
    let (dynamodb, store) = start().await;
    dynamodb.create_table("single", "PK", Some("SK")).await;
    let table =
        Table { key_attribute: "PK".into(), sort_key: Some(("SK".into(), "#LOCK".into())), ..Table::new("single") };
    assert_works(&outcomes(&store, &table, "orders:1").await);
    let item = dynamodb.only_item("single").await.unwrap();
    assert_eq!(item["SK"], AttributeValue::S("#LOCK".into()));
    assert_eq!(item["PK"], AttributeValue::S("orders:1".into()));
}

#[tokio::test]
async fn a_key_may_have_2048_bytes_and_any_characters() {
    let (_dynamodb, store) = start().await;
    for key in ["k".repeat(2_048), "ü".repeat(1_024), "\u{0}\n\"\\ :#{}".into(), "🔒".into()] {
        assert_works(&outcomes(&store, &Table::new("locks"), &key).await);
    }
    let long = store.send(&lock_in(Table::new("locks"), &"k".repeat(2_049)), Request::Read, TIMEOUT).await;
    assert_all_fail(&[long.outcome], FailureKind::Rejected, "2048");
}

#[tokio::test]
async fn a_missing_table_is_told_by_name() {
    let (_dynamodb, store) = start().await;
    let outcomes = outcomes(&store, &Table::new("nowhere"), "k").await;
    assert_all_fail(&outcomes, FailureKind::MissingTable, "create `nowhere`");
}

#[tokio::test]
async fn a_table_with_another_key_is_told() {
    let (dynamodb, store) = start().await;
    dynamodb.create_table("other-name", "id", None).await;
    dynamodb.create_table("with-sort-key", "key", Some("sort")).await;
    dynamodb.create_table_of("of-numbers", "key", ScalarAttributeType::N, None).await;
    for name in ["other-name", "with-sort-key", "of-numbers"] {
        let outcomes = outcomes(&store, &Table::new(name), "k").await;
        let told = format!("the settings say that `{name}` has the partition key `key` of type S and no sort key");
        assert_all_fail(&outcomes, FailureKind::WrongKeySchema, &told);
    }
    let sort_key = Some(("sort".to_owned(), "lock".to_owned()));
    let outcomes = outcomes(&store, &Table { sort_key, ..Table::new("locks") }, "k").await;
    let told = "`locks` has the partition key `key` and the sort key `sort`, both of type S: set `key_attribute`";
    assert_all_fail(&outcomes, FailureKind::WrongKeySchema, told);
}

#[tokio::test]
async fn a_key_named_like_what_the_format_keeps_is_refused_before_any_request() {
    let (_dynamodb, store) = start().await;
    for name in ["owner", "version", "format", "ttl", "holder", "lease_ms", "expires_at"] {
        let partition = Table { key_attribute: name.into(), ..Table::new("locks") };
        let sort = Table { sort_key: Some((name.into(), "x".into())), ..Table::new("locks") };
        for table in [partition, sort] {
            assert_all_fail(&outcomes(&store, &table, "k").await, FailureKind::WrongKeySchema, name);
        }
    }
    assert_eq!(store.usage().acquires, 0);
}

/// The end of a chain of providers that have none.
#[derive(Debug)]
struct NoCredentials;

impl ProvideCredentials for NoCredentials {
    fn provide_credentials<'a>(&'a self) -> ProvideFuture<'a>
    where
        Self: 'a,
    {
        ProvideFuture::ready(Err(CredentialsError::not_loaded("no providers in chain provided credentials")))
    }
}

#[tokio::test]
async fn without_a_region_or_credentials_the_answer_says_so() {
    use aws_config::{BehaviorVersion, Region, SdkConfig};
    use aws_sdk_dynamodb::config::SharedCredentialsProvider;
    let (dynamodb, _) = start().await;
    let lock = lock_in(Table::new("locks"), "k");
    let bare = || SdkConfig::builder().behavior_version(BehaviorVersion::v2026_01_12());

    let without = || bare().region(Region::new("eu-central-1")).endpoint_url(dynamodb.url());
    let empty_handed = without().credentials_provider(SharedCredentialsProvider::new(NoCredentials));
    for config in [without(), empty_handed] {
        let store = DynamoDb::with_config(config.build());
        let Outcome::Failed(Failure { kind, message }) = store.send(&lock, Request::Read, TIMEOUT).await.outcome else {
            panic!("answered without credentials");
        };
        assert_eq!(kind, FailureKind::Credentials, "{message}");
    }

    let mut config = sdk_config(dynamodb.url()).into_builder();
    config.set_region(None);
    let store = DynamoDb::with_config(config.build());
    let Outcome::Failed(Failure { kind, message }) = store.send(&lock, Request::Read, TIMEOUT).await.outcome else {
        panic!("answered without a Region");
    };
    assert_eq!(kind, FailureKind::Rejected, "{message}");
    assert!(message.contains("AWS_REGION"), "{message}");
}
