//! The embedded DynamoDB and the view on its tables.

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold_sandbox::{DynamoDb, LockTable, Row};

use crate::*;

fn row(pairs: &[(&str, &str)]) -> Row {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), AttributeValue::S((*value).to_owned()))).collect()
}

#[tokio::test]
async fn tables_are_created_and_rows_written_and_read() {
    let sandbox = builder().dynamodb(DynamoDb::Embedded).start().await.unwrap();
    let tables = sandbox.tables();
    tables.create_lock_table("locks").await.unwrap();
    tables.create_lock_table("locks").await.unwrap();
    assert_eq!(tables.row("locks", "a").await.unwrap(), None);
    tables.put("locks", row(&[("key", "a"), ("owner", "me")])).await.unwrap();
    assert_eq!(tables.row("locks", "a").await.unwrap().unwrap()["owner"], AttributeValue::S("me".to_owned()));
    assert_eq!(tables.rows("locks").await.unwrap().len(), 1);

    let ttl = tables.client().await.describe_time_to_live().table_name("locks").send().await.unwrap();
    assert_eq!(ttl.time_to_live_description().unwrap().attribute_name(), Some("ttl"));

    tables.create_lock_table(LockTable::new("shared").partition_key("PK").sort_key("SK").ttl("gone")).await.unwrap();
    tables.put("shared", row(&[("PK", "a"), ("SK", "lock")])).await.unwrap();
    assert!(tables.row_by("shared", &[("PK", "a"), ("SK", "lock")]).await.unwrap().is_some());
    let missing = tables.row("nowhere", "a").await.unwrap_err().to_string();
    assert!(missing.contains("read from nowhere") && missing.contains("ResourceNotFound"), "{missing}");
}

#[tokio::test]
async fn function_and_extension_are_pointed_to_it() {
    let sandbox = builder().dynamodb(DynamoDb::Embedded).start().await.unwrap();
    let response = sandbox.invoke(steps(&["env:AWS_ENDPOINT_URL_DYNAMODB", "env:AWS_REGION"])).await.json().unwrap();
    assert_eq!(response["AWS_ENDPOINT_URL_DYNAMODB"], json!(sandbox.endpoint_url().unwrap()));
    assert_eq!(response["AWS_REGION"], "us-east-1");

    let other = builder().dynamodb(DynamoDb::Endpoint(sandbox.endpoint_url().unwrap().to_owned()));
    let other = other.start().await.unwrap();
    other.tables().create_lock_table("seen-by-both").await.unwrap();
    assert!(sandbox.tables().rows("seen-by-both").await.unwrap().is_empty());
}
