//! `table check`: good tables, and each thing that can be wrong with one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::protocol::Format;
use leasehold::session::Table;
use leasehold_sandbox::LockTable;
use leasehold_sandbox::faults::{Answer, DateHeader, Fault, FaultProxy};
use serde_json::{Value, json};

use crate::stage::{Stage, n, run, s};
use crate::stand_in::{self, Asked};

/// The findings of this check, as (status, told).
fn found(told: &Value, check: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let checks = told["checks"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    checks.map(|finding| (text(&finding["status"]), text(&finding["told"]))).collect()
}

/// The only finding of this check has this status, and says this.
fn assert_found(told: &Value, check: &str, status: &str, says: &str) {
    match &found(told, check)[..] {
        [(of, text)] if of == status && text.contains(says) => {}
        other => panic!("{check}: {other:?} in {told:#}"),
    }
}

#[tokio::test]
async fn a_good_table_passes_and_nothing_in_it_is_touched() {
    for format in Format::ALL {
        let stage = Stage::speaking(format).await;
        stage.take("orders:1", Duration::from_secs(30)).await;
        let before = stage.rows().await;
        let ran = stage.run(&["table", "check", "--json"]);
        let told = if format == Format::LeaseholdV1 { ran.ended(0).json() } else { ran.json() };
        for action in ["GetItem", "UpdateItem", "ConditionCheckItem", "Scan"] {
            assert_found(&told, &format!("dynamodb:{action}"), "ok", "allowed");
        }
        let whole_rows = usize::from(format == Format::PydynoxV1);
        assert_eq!(found(&told, "dynamodb:PutItem").len(), whole_rows);
        assert_eq!(found(&told, "dynamodb:DeleteItem").len(), whole_rows);
        assert_found(&told, "clock", "ok", "agrees");
        assert_found(&told, "key", "ok", "partition key `key`");
        assert_found(&told, "billing", "ok", "on demand");
        assert_found(&told, "replicas", "ok", "none");
        assert_eq!(stage.rows().await, before);
    }
}

#[tokio::test]
async fn what_is_missing_or_another_key_is_a_problem() {
    let stage = Stage::without_tables(Table::new("locks"));
    stage
        .run(&["table", "check"])
        .ended(1)
        .says(&["there is no such table", "leaseholdctl table create --table locks"]);
    let stage = Stage::with(LockTable::new("locks").partition_key("pk"), Table::new("locks")).await;
    let told = stage.run(&["table", "check", "--json"]).ended(1).json();
    assert_found(&told, "key", "problem", "its partition key is `pk`");
}

#[tokio::test]
async fn a_ttl_by_another_attribute_or_in_another_unit_is_a_problem() {
    let stage = Stage::with(LockTable::new("locks").ttl("expires_at"), Table::new("locks")).await;
    let told = stage.run(&["table", "check", "--json"]).ended(1).json();
    assert_found(&told, "TTL", "problem", "on `expires_at`");

    let stage = Stage::new().await;
    let lock = [("key", s("a")), ("format", s("leasehold/1")), ("version", n(7)), ("lease_ms", n(30_000))];
    stage.put(&[&lock[..], &[("ttl", n(1_800_000_000))]].concat()).await;
    let told = stage.run(&["table", "check", "--json"]).ended(0).json();
    assert_found(&told, "TTL", "ok", "1 rows looked at have seconds there");
    stage.put(&[&lock[..], &[("ttl", n(1_800_000_000_000))]].concat()).await;
    let told = stage.run(&["table", "check", "--json"]).ended(1).json();
    assert_found(&told, "TTL", "problem", "1 of 1 rows have no epoch seconds");
}

#[tokio::test]
async fn permissions_are_told_action_by_action() {
    let stage = Stage::new().await;
    let proxy = FaultProxy::start(stage.dynamodb.url()).unwrap();
    let check = || run(&["table", "check", "--table", "locks", "--endpoint-url", proxy.url(), "--json"]);
    for (operation, action, status) in [
        ("GetItem", "dynamodb:GetItem", "problem"),
        ("UpdateItem", "dynamodb:UpdateItem", "problem"),
        ("TransactWriteItems", "dynamodb:ConditionCheckItem", "warning"),
        ("Scan", "dynamodb:Scan", "warning"),
        ("DescribeTable", "table", "unknown"),
        ("DescribeTimeToLive", "TTL", "unknown"),
    ] {
        let denied = Answer::error(400, "AccessDeniedException", "User: me is not authorized");
        proxy.inject_where(usize::MAX, move |passing| {
            (passing.operation == operation).then(|| Fault::Answer(denied.clone()))
        });
        let told = check().ended(i32::from(status == "problem")).json();
        assert_found(&told, action, status, "not authorized");
        let others = told["checks"].as_array().unwrap().iter().filter(|finding| finding["check"] != action);
        assert!(others.clone().all(|finding| finding["status"] != "problem"), "{told:#}");
        proxy.clear();
        assert!(stage.rows().await.is_empty());
    }
}

#[tokio::test]
async fn a_clock_that_is_an_hour_off_is_a_problem() {
    let stage = Stage::new().await;
    let proxy = FaultProxy::start(stage.dynamodb.url()).unwrap();
    for (shift, says) in [(3_600, "behind DynamoDB's"), (-3_600, "ahead of DynamoDB's")] {
        proxy.clear();
        proxy.inject_where(usize::MAX, move |_| Some(Fault::Date(DateHeader::Shifted(shift))));
        let ran = run(&["table", "check", "--table", "locks", "--endpoint-url", proxy.url(), "--json"]);
        assert_found(&ran.json(), "clock", "problem", says);
    }
}

#[tokio::test]
async fn replicas_and_restores_are_warned_of() {
    let url = stand_in::start(|asked: &Asked| match asked.what.as_str() {
        "DescribeTable" => (
            200,
            json!({ "Table": {
            "TableName": "locks", "TableStatus": "ACTIVE",
            "AttributeDefinitions": [{ "AttributeName": "key", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "key", "KeyType": "HASH" }],
            "BillingModeSummary": { "BillingMode": "PAY_PER_REQUEST" },
            "Replicas": [{ "RegionName": "eu-west-1", "ReplicaStatus": "ACTIVE" }],
        } }),
        ),
        "DescribeTimeToLive" => (200, json!({ "TimeToLiveDescription": { "TimeToLiveStatus": "DISABLED" } })),
        "DescribeContinuousBackups" => (
            200,
            json!({ "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": { "PointInTimeRecoveryStatus": "ENABLED" },
        } }),
        ),
        _ => stand_in::error(400, "ConditionalCheckFailedException", "The conditional request failed"),
    });
    let told = run(&["table", "check", "--table", "locks", "--endpoint-url", &url, "--json"]).ended(0).json();
    assert_found(&told, "replicas", "warning", "eu-west-1");
    assert_found(&told, "restore", "warning", "point-in-time recovery is on");
    assert_found(&told, "TTL", "warning", "off");
}

/// One reason is told once, not by each of a dozen checks.
#[test]
fn credentials_that_do_not_serve_end_it_at_the_first_request() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let url = stand_in::start(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        stand_in::error(400, "ExpiredTokenException", "The security token included in the request is expired")
    });
    let ran = run(&["table", "check", "--table", "locks", "--endpoint-url", &url]).ended(3);
    for part in ["ExpiredTokenException: The security token", "aws sso login", "asked with --endpoint-url http://127"] {
        assert!(ran.err.contains(part), "{part:?} is missing in {}", ran.err);
    }
    assert_eq!((ran.out.as_str(), asked.load(Ordering::Relaxed)), ("", 1));
}
