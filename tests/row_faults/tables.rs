//! Tables that are missing, not ready, or have another key than the settings say.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use leasehold::LeaseLayerBuilder;
use leasehold::layer::TemplateText;
use serde_json::Value;

use crate::items::{Met, assert_one_line};
use crate::played::order;
use crate::stage::Stage;
use crate::support::embedded_dynamodb::EmbeddedDynamoDb;
use crate::support::fault_server::{Fault, FaultServer};
use crate::support::sdk_config;
use crate::table::Seen;

type Builder = LeaseLayerBuilder<Value, TemplateText>;

#[track_caller]
fn assert_seen(seen: &Seen, error: &str, says: &str, requests: usize) {
    assert_eq!((seen.error.as_str(), seen.requests), (error, requests), "{seen:?}");
    assert!(seen.message.contains(says), "{says:?}: {}", seen.message);
    assert_one_line(&seen.message);
}

/// What one event makes of the table `locks`, which stays empty.
async fn attempt_in(dynamodb: &EmbeddedDynamoDb, set: impl FnOnce(Builder) -> Builder) -> Seen {
    let Met { seen, after, .. } = crate::items::attempt_in(dynamodb, "locks", set).await;
    assert_eq!(after, None, "{seen:?}");
    seen
}

#[tokio::test]
async fn a_missing_table_is_told_by_name_once() {
    let dynamodb = EmbeddedDynamoDb::start();
    let stage = Stage::over(dynamodb.url());
    let layer = stage.layer::<Value>("orders:{id}").table("lokcs").build().unwrap();
    let seen = stage.call(&layer, order()).await;
    assert_seen(&seen, "TableNotFound", "", 1);
    assert_eq!(
        seen.message,
        "no lease or state on `orders:A-17`: the lock table does not exist or is not ready: DynamoDB answered UpdateItem on table \
         `lokcs` with ResourceNotFoundException: Requested resource not found; create `lokcs`, or correct `table` \
         (LEASEHOLD_TABLE), the Region or the account; a table that was only just created is there once it is ACTIVE"
    );
}

/// While a table is made DynamoDB does not find it; control planes and emulators say that it is in use.
#[tokio::test]
async fn a_table_that_is_not_ready_is_told_as_that() {
    let answers = [
        ("ResourceNotFoundException", "Requested resource not found: Table: locks not found"),
        ("ResourceNotFoundException", "Cannot do operations on a non-existent table"),
        ("ResourceInUseException", "Table is being created: locks"),
        ("ResourceInUseException", "Table is being deleted: locks"),
    ];
    for (code, message) in answers {
        let server = FaultServer::always(Fault::error(400, code, message));
        let stage = Stage::over(server.url());
        let layer = stage.layer::<Value>("orders:{id}").build().unwrap();
        let seen = stage.call(&layer, order()).await;
        assert_seen(&seen, "TableNotFound", "is there once it is ACTIVE", 1);
        assert!(seen.message.contains(message), "{}", seen.message);
    }
}

#[tokio::test]
async fn a_partition_key_of_another_name_or_type_is_told() {
    use ScalarAttributeType::{B, N, S};
    for (name, of) in [("id", S), ("Key", S), ("key", N), ("key", B)] {
        let dynamodb = EmbeddedDynamoDb::start();
        dynamodb.create_table_of("locks", name, of, None).await;
        let seen = attempt_in(&dynamodb, |layer| layer).await;
        let says = "the settings say that `locks` has the partition key `key` of type S and no sort key: set \
                    `key_attribute` and `sort_key` to what the table has, or take a table of its own";
        assert_seen(&seen, "WrongKeySchema", says, 1);
    }
}

#[tokio::test]
async fn a_sort_key_too_many_or_too_few_or_of_another_name_or_type_is_told() {
    let with_none = EmbeddedDynamoDb::with_locks().await;
    let seen = attempt_in(&with_none, |layer| layer.sort_key("sort", "lock")).await;
    assert_seen(&seen, "WrongKeySchema", "the partition key `key` and the sort key `sort`, both of type S", 1);

    let with_one = EmbeddedDynamoDb::start();
    with_one.create_table("locks", "key", Some("sort")).await;
    let seen = attempt_in(&with_one, |layer| layer).await;
    assert_seen(&seen, "WrongKeySchema", "of type S and no sort key", 1);
    let seen = attempt_in(&with_one, |layer| layer.sort_key("SK", "lock")).await;
    assert_seen(&seen, "WrongKeySchema", "the sort key `SK`", 1);

    let of_numbers = EmbeddedDynamoDb::start();
    create_table(&of_numbers, Some(("sort", ScalarAttributeType::N)), None).await;
    let seen = attempt_in(&of_numbers, |layer| layer.sort_key("sort", "lock")).await;
    assert_seen(&seen, "WrongKeySchema", "the sort key `sort`, both of type S", 1);
}

#[tokio::test]
async fn a_key_named_like_one_of_the_formats_attributes_is_told_without_a_request() {
    for name in ["format", "version", "lease_ms", "owner", "expires_at", "holder", "ttl"] {
        let dynamodb = EmbeddedDynamoDb::start();
        dynamodb.create_table("locks", name, None).await;
        let says = format!("can't have the attribute `{name}`, for the row format keeps something else there; take a");
        assert_seen(&attempt_in(&dynamodb, |layer| layer.key_attribute(name)).await, "WrongKeySchema", &says, 0);
        let seen = attempt_in(&dynamodb, |layer| layer.sort_key(name, "lock")).await;
        assert_seen(&seen, "WrongKeySchema", &says, 0);
    }
}

/// An index wants numbers where the format writes text.
#[tokio::test]
async fn an_index_that_the_row_does_not_fit_is_told() {
    let dynamodb = EmbeddedDynamoDb::start();
    create_table(&dynamodb, None, Some(("owner", ScalarAttributeType::N))).await;
    let seen = attempt_in(&dynamodb, |layer| layer).await;
    let says = "an index of `locks` has one of the lock's attributes as its key, with another type: take a table";
    assert_seen(&seen, "WrongKeySchema", says, 1);
}

async fn create_table(
    dynamodb: &EmbeddedDynamoDb,
    sort_key: Option<(&str, ScalarAttributeType)>,
    index_key: Option<(&str, ScalarAttributeType)>,
) {
    let element = |name: &str, role| KeySchemaElement::builder().attribute_name(name).key_type(role).build().unwrap();
    let defined =
        |name: &str, of| AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().unwrap();
    let client = Client::new(&sdk_config(dynamodb.url()));
    let mut table = client
        .create_table()
        .table_name("locks")
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(defined("key", ScalarAttributeType::S))
        .key_schema(element("key", KeyType::Hash));
    if let Some((name, of)) = sort_key {
        table = table.attribute_definitions(defined(name, of)).key_schema(element(name, KeyType::Range));
    }
    if let Some((name, of)) = index_key {
        let all = Projection::builder().projection_type(ProjectionType::All).build();
        let index = GlobalSecondaryIndex::builder()
            .index_name("by-attribute")
            .key_schema(element(name, KeyType::Hash))
            .projection(all);
        table = table.attribute_definitions(defined(name, of)).global_secondary_indexes(index.build().unwrap());
    }
    table.send().await.unwrap();
}
