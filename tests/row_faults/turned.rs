//! Rows that turn into something else while somebody waits for them, takes them over or holds them.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::store::StoreUsage;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;
use tower::{Layer as _, Service as _, service_fn};

use crate::items::{KEY, PATIENCE, held, item, map, n, of_every_type, s, with, without};
use crate::played::order;
use crate::stage::Stage;
use crate::support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use crate::support::sdk_config;
use crate::table::Seen;

fn foreign() -> Item {
    item(&[("key", s(KEY)), ("customer", s("ACME"))])
}

/// Comes back when this is seen.
async fn until(what: &str, mut seen: impl AsyncFnMut() -> bool) {
    let poll = async {
        while !seen().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, poll).await.unwrap_or_else(|_| panic!("never seen: {what}"));
}

/// A handler at work under its lease, while `meddle` does something to its row; it ends when `done` says so.
async fn while_held(lease: Duration, meddle: impl AsyncFnOnce(&EmbeddedDynamoDb, Item) -> bool) -> (Seen, Vec<Item>) {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let stage = Stage::over(dynamodb.url());
    let layer = stage.layer::<Value>("orders:{id}").lease_duration(lease).build().unwrap();
    let (begun, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut service = {
        let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
        layer.layer(service_fn(move |_: LambdaEvent<Value>| {
            let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
            async move {
                begun.notify_one();
                done.notified().await;
                Ok::<_, Diagnostic>(())
            }
        }))
    };
    let meddling = async {
        timeout(PATIENCE, begun.notified()).await.unwrap();
        let row = dynamodb.only_item("locks").await.unwrap();
        if meddle(&dynamodb, row).await {
            done.notify_one();
        }
    };
    let (outcome, ()) = tokio::join!(async { timeout(PATIENCE, service.call(order())).await.unwrap() }, meddling);
    let seen = stage.end(outcome.map_err(Diagnostic::from)).await;
    let client = Client::new(&sdk_config(dynamodb.url()));
    let left = client.scan().table_name("locks").send().await.map(|scan| scan.items.unwrap_or_default());
    (seen, left.unwrap_or_default())
}

#[track_caller]
fn assert_lost(seen: &Seen, reason: &str) {
    assert_eq!(seen.error, "LeaseLost", "{seen:?}");
    assert!(seen.message.contains(reason), "{reason:?}: {}", seen.message);
}

/// Renewed after two seconds, and then with as many to spare for a busy machine.
const LEASE: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_row_that_turns_foreign_under_its_holder_is_a_loss_and_is_left_as_it_is() {
    let (seen, left) = while_held(LEASE, async |dynamodb, _| {
        dynamodb.put("locks", foreign()).await;
        false
    })
    .await;
    assert_lost(&seen, "the row was overwritten by something else");
    assert_eq!(left, [foreign()]);
}

#[tokio::test]
async fn a_row_that_is_broken_under_its_holder_is_a_loss_and_is_left_as_it_is() {
    let broken: [fn(Item) -> Item; 6] = [
        |row| with(row, "version", s("8")),
        |row| with(row, "version", n("1.5")),
        |row| without(row, "version"),
        |row| with(row, "format", s("leasehold/2")),
        |row| without(row, "format"),
        |row| with(row, "owner", n(1)),
    ];
    let all = LocalSet::new();
    let mut tasks = JoinSet::new();
    for broken in broken {
        tasks.spawn_local_on(
            async move {
                let mut expected = None;
                let (seen, left) = while_held(LEASE, async |dynamodb, row| {
                    let row = broken(row);
                    dynamodb.put("locks", row.clone()).await;
                    expected = Some(row);
                    false
                })
                .await;
                assert_lost(&seen, "the row was overwritten by something else");
                assert_eq!(left, [expected.unwrap()]);
            },
            &all,
        );
    }
    all.run_until(tasks.join_all()).await;
}

/// What a renewal does not rest on may be odd: the lease goes on, and the row is in good order when it is given back.
#[tokio::test]
async fn odd_notes_on_a_row_cost_its_holder_nothing() {
    let (seen, left) = while_held(LEASE, async |dynamodb, row| {
        let version = row["version"].clone();
        for value in of_every_type("-1") {
            let row = ["holder", "ttl", "lease_ms", "expires_at"]
                .into_iter()
                .fold(dynamodb.only_item("locks").await.unwrap(), |row, attribute| with(row, attribute, value.clone()));
            // Unless a renewal came in between, and the whole row would be set back by this.
            let client = Client::new(&sdk_config(dynamodb.url()));
            let put = client.put_item().table_name("locks").condition_expression("#v = :v");
            let put = put
                .expression_attribute_names("#v", "version")
                .expression_attribute_values(":v", row["version"].clone());
            let _ = put.set_item(Some(row)).send().await;
        }
        until("two renewals", async || {
            let now = dynamodb.only_item("locks").await.unwrap();
            now["version"].as_n().unwrap().parse::<u64>().unwrap()
                >= version.as_n().unwrap().parse::<u64>().unwrap() + 2
        })
        .await;
        true
    })
    .await;
    assert_eq!(seen.error, "none", "{seen:?}");
    let left = left.first().unwrap();
    assert!(!left.contains_key("owner") && !left.contains_key("holder") && left["ttl"].is_n(), "{left:?}");
}

#[tokio::test]
async fn a_row_filled_up_to_the_limit_under_its_holder_is_renewed_and_freed() {
    let photo = s("x".repeat(400 * 1024 - 1_000));
    let (seen, left) = while_held(LEASE, async |dynamodb, row| {
        let version: u64 = row["version"].as_n().unwrap().parse().unwrap();
        dynamodb.put("locks", with(row, "photo", photo.clone())).await;
        until("a renewal", async || {
            dynamodb.only_item("locks").await.unwrap()["version"].as_n().unwrap().parse::<u64>().unwrap() > version
        })
        .await;
        true
    })
    .await;
    assert_eq!(seen.error, "none", "{}", seen.message);
    assert!(!left[0].contains_key("owner") && left[0]["photo"] == photo);
}

#[tokio::test]
async fn a_table_that_is_deleted_under_its_holder_is_a_loss_that_names_it() {
    let (seen, left) = while_held(LEASE, async |dynamodb, _| {
        let client = Client::new(&sdk_config(dynamodb.url()));
        client.delete_table().table_name("locks").send().await.unwrap();
        false
    })
    .await;
    assert_lost(&seen, "no renewal was answered before the lease ended, the last one: the lock table does not exist");
    assert!(seen.message.contains("ResourceNotFoundException"), "{}", seen.message);
    assert_eq!(left, []);
}

/// A waiter that looks at this row until it is `turned` into something else.
async fn while_waited_for(row: Item, turned: Item) -> (Seen, StoreUsage) {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    dynamodb.put("locks", row).await;
    let stage = Stage::over(dynamodb.url());
    let layer = stage.layer::<Value>("orders:{id}").max_wait(PATIENCE).build().unwrap();
    let mut service = layer.layer(service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Diagnostic>(()) }));
    let turning = async {
        until("a look", async || stage.usage().reads >= 1).await;
        dynamodb.put("locks", turned.clone()).await;
    };
    let (outcome, ()) = tokio::join!(service.call(order()), turning);
    let usage = stage.usage();
    let seen = stage.end(outcome.map_err(Diagnostic::from)).await;
    assert_eq!(dynamodb.only_item("locks").await, Some(turned), "{seen:?}");
    (seen, usage)
}

#[tokio::test]
async fn a_row_that_turns_foreign_or_broken_under_a_waiter_ends_the_wait_without_a_write() {
    let (seen, usage) = while_waited_for(held(), foreign()).await;
    assert_eq!((seen.error.as_str(), usage.acquires, usage.takeovers), ("ForeignRow", 1, 0), "{seen:?}");
    let broken = with(held(), "lease_ms", map(&[]));
    let (seen, usage) = while_waited_for(held(), broken).await;
    assert_eq!((seen.error.as_str(), usage.acquires, usage.takeovers), ("MalformedRow", 1, 0), "{seen:?}");
    let fraction = without(with(held(), "version", n("1.5")), "owner");
    let (seen, usage) = while_waited_for(held(), fraction).await;
    assert_eq!((seen.error.as_str(), usage.acquires, usage.takeovers), ("MalformedRow", 1, 0), "{seen:?}");
}
