//! Writes that a stale holder can't make: transactions under the lease's condition, and items that remember tokens.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, TransactWriteItem, Update};
use lambda_runtime::LambdaEvent;
use lambda_runtime::tower::{Layer as _, service_fn};
use leasehold::error::TransactionError;
use leasehold::testing::TestKeeper;
use leasehold::{Error, Lease, LeaseGuard, LeaseLayer};
use serde_json::{Value, json};
use support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use support::fault_server::{Fault, FaultServer};
use support::sdk_config;

const KEY: &str = "orders:17";

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A lease of a test double's, kept by a guard.
async fn lease(keeper: &TestKeeper) -> LeaseGuard {
    lease_in(keeper, "locks").await
}

async fn lease_in(keeper: &TestKeeper, table: &str) -> LeaseGuard {
    let handler = |_: LambdaEvent<Value>| async { Lease::current()?.guard() };
    let layer = LeaseLayer::builder("orders:{id}").table(table).test_keeper(keeper).build().unwrap();
    keeper.invoke(&mut layer.layer(service_fn(handler)), json!({ "id": 17 })).await.unwrap()
}

/// The lock's row, as this owner's.
async fn row_of(dynamodb: &EmbeddedDynamoDb, owner: &str) {
    let row = [("key", text(KEY)), ("owner", text(owner))].map(|(name, value)| (name.to_owned(), value));
    dynamodb.put("locks", Item::from(row)).await;
}

fn operation(put: &str) -> TransactWriteItem {
    let put = Put::builder().table_name("stock").item("key", text(put)).build().unwrap();
    TransactWriteItem::builder().put(put).build()
}

fn work(client: &Client, puts: &[&str]) -> TransactWriteItemsFluentBuilder {
    client.transact_write_items().set_transact_items(Some(puts.iter().map(|put| operation(put)).collect()))
}

async fn place() -> (EmbeddedDynamoDb, Client) {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    dynamodb.create_table("stock", "key", None).await;
    let client = Client::new(&sdk_config(dynamodb.url()));
    (dynamodb, client)
}

#[tokio::test]
async fn a_transaction_is_written_while_the_row_is_the_leases_own_and_never_after() {
    let (dynamodb, client) = place().await;
    let keeper = TestKeeper::new();
    let lease = lease(&keeper).await;
    row_of(&dynamodb, &lease.owner().unwrap().to_string()).await;
    lease.guard_transaction(work(&client, &["first", "second"])).unwrap().send().await.unwrap();
    assert_eq!(dynamodb.items("stock").await.len(), 2);

    // The handler still believes; DynamoDB knows better.
    row_of(&dynamodb, "somebody-else").await;
    lease.ensure_held().unwrap();
    let refused = lease.guard_transaction(work(&client, &["third"])).unwrap().send().await.unwrap_err();
    assert!(
        matches!(&refused, TransactionError::Lease(Error::LeaseLost(lost)) if lost.key.as_str() == KEY),
        "{refused}"
    );
    assert_eq!(dynamodb.items("stock").await.len(), 2);

    dynamodb.delete("locks", KEY).await;
    let refused = lease.guard_transaction(work(&client, &["third"])).unwrap().send().await.unwrap_err();
    assert!(matches!(&refused, TransactionError::Lease(Error::LeaseLost(_))), "{refused}");
}

#[tokio::test]
async fn a_refusal_of_ones_own_condition_keeps_its_index() {
    let (dynamodb, client) = place().await;
    let keeper = TestKeeper::new();
    let lease = lease(&keeper).await;
    row_of(&dynamodb, &lease.owner().unwrap().to_string()).await;
    let impossible = Update::builder()
        .table_name("stock")
        .key("key", text("second"))
        .update_expression("SET a = :a")
        .condition_expression("attribute_exists(a)")
        .expression_attribute_values(":a", number(1));
    let impossible = TransactWriteItem::builder().update(impossible.build().unwrap()).build();
    let work = work(&client, &["first"]).transact_items(impossible);
    let refused = lease.guard_transaction(work).unwrap().send().await.unwrap_err();
    let codes: Vec<_> = refused.cancellation_reasons().iter().map(|reason| reason.code().unwrap()).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed", "None"]);
    assert!(dynamodb.items("stock").await.is_empty());
}

#[tokio::test]
async fn misuse_is_told_before_anything_is_sent() {
    let client = Client::new(&sdk_config("http://127.0.0.1:9"));
    let keeper = TestKeeper::new();
    let lease = lease(&keeper).await;
    let many: Vec<_> = (0..100).map(|n| operation(&n.to_string())).collect();
    let full = client.transact_write_items().set_transact_items(Some(many.clone()));
    assert_eq!(lease.guard_transaction(full).unwrap_err().error_type(), "TransactionFull");
    let room = client.transact_write_items().set_transact_items(Some(many[1..].to_vec()));
    assert!(lease.guard_transaction(room).is_ok());

    for table in ["locks", "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"] {
        let delete = Delete::builder().table_name(table).key("key", text(KEY)).build().unwrap();
        let work = work(&client, &["first"]).transact_items(TransactWriteItem::builder().delete(delete).build());
        let Err(Error::LockRowInTransaction(twice)) = lease.guard_transaction(work) else { panic!("{table}") };
        assert_eq!((twice.key.as_str(), twice.index), (KEY, 1));
    }
    let other = Delete::builder().table_name("locks").key("key", text("orders:18")).build().unwrap();
    let work = work(&client, &[]).transact_items(TransactWriteItem::builder().delete(other).build());
    assert!(lease.guard_transaction(work).is_ok(), "another lock's row is nobody's business here");
}

/// DynamoDB's answer to a transaction that it cancelled for these reasons.
fn cancelled(codes: &[&str]) -> Fault {
    let reasons: Vec<_> = codes.iter().map(|code| json!({ "Code": code, "Message": "as injected" })).collect();
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": "Transaction cancelled",
        "CancellationReasons": reasons,
    });
    Fault::answer(400, body.to_string())
}

#[tokio::test]
async fn a_renewal_in_the_way_is_waited_out_with_the_same_token() {
    let server = FaultServer::start(|n| match n {
        0..3 => cancelled(&["None", "TransactionConflict"]),
        _ => Fault::answer(200, "{}"),
    });
    let keeper = TestKeeper::new();
    let lease = lease(&keeper).await;
    let client = Client::new(&sdk_config(server.url()));
    lease.guard_transaction(work(&client, &["first"])).unwrap().send().await.unwrap();
    let tokens: Vec<_> = server.seen().iter().map(|seen| seen.body["ClientRequestToken"].clone()).collect();
    assert_eq!(tokens.len(), 4);
    assert!(tokens[0].is_string() && tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");

    let work = work(&client, &["first"]).client_request_token("mine");
    lease.guard_transaction(work).unwrap().send().await.unwrap();
    assert_eq!(server.seen().last().unwrap().body["ClientRequestToken"], "mine");
}

#[tokio::test]
async fn a_conflict_on_the_works_own_items_is_the_callers() {
    for codes in
        [["TransactionConflict", "None"], ["TransactionConflict", "TransactionConflict"], ["ThrottlingError", "None"]]
    {
        let server = FaultServer::always(cancelled(&codes));
        let keeper = TestKeeper::new();
        let lease = lease(&keeper).await;
        let client = Client::new(&sdk_config(server.url()));
        let refused = lease.guard_transaction(work(&client, &["first"])).unwrap().send().await.unwrap_err();
        let told: Vec<_> = refused.cancellation_reasons().iter().map(|reason| reason.code().unwrap()).collect();
        assert_eq!(told, codes);
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_conflict_is_not_waited_out_once_the_lease_is_lost() {
    let keeper = TestKeeper::new();
    let taker = keeper.clone();
    let server = FaultServer::start(move |n| {
        if n == 2 {
            taker.lose(KEY);
        }
        cancelled(&["None", "TransactionConflict"])
    });
    let lease = lease(&keeper).await;
    let client = Client::new(&sdk_config(server.url()));
    let refused = lease.guard_transaction(work(&client, &["first"])).unwrap().send().await.unwrap_err();
    assert!(matches!(refused, TransactionError::Lease(Error::LeaseLost(_))), "{refused}");
    assert!(server.seen().len() <= 3, "sent on without a lease");
}

#[tokio::test]
async fn an_item_that_has_seen_a_higher_token_refuses_a_stale_holder() {
    let (dynamodb, client) = place().await;
    let keeper = TestKeeper::new();
    let stale = lease(&keeper).await;
    keeper.advance(Duration::from_secs(1));
    keeper.hold_elsewhere(KEY);
    keeper.free_elsewhere(KEY);
    let next = lease(&keeper).await;
    assert!(stale.token() < next.token());

    let count = |lease: &Lease, by: u64| {
        let update = client
            .update_item()
            .table_name("stock")
            .key("key", text("A-17"))
            .update_expression("ADD amount :by")
            .expression_attribute_values(":by", number(by));
        lease.fence_update(update, "fence")
    };
    count(&stale, 1).send().await.unwrap();
    count(&next, 10).send().await.unwrap();
    count(&next, 10).send().await.unwrap();
    let refused = count(&stale, 100).send().await.unwrap_err().into_service_error();
    assert!(refused.is_conditional_check_failed_exception(), "{refused:?}");
    let put = client.put_item().table_name("stock").item("key", text("A-17"));
    let refused = stale.fence_put(put, "fence").send().await.unwrap_err().into_service_error();
    assert!(refused.is_conditional_check_failed_exception(), "{refused:?}");

    let item = dynamodb.only_item("stock").await.unwrap();
    assert_eq!((&item["amount"], &item["fence"]), (&number(21), &number(next.token().unwrap().get())));
    let put = client.put_item().table_name("stock").item("key", text("A-17"));
    next.fence_put(put, "fence").send().await.unwrap();
    let item = dynamodb.only_item("stock").await.unwrap();
    assert_eq!((item.get("amount"), &item["fence"]), (None, &number(next.token().unwrap().get())));
}

#[tokio::test]
async fn a_condition_of_ones_own_is_asked_beside_the_fence() {
    let (dynamodb, client) = place().await;
    let keeper = TestKeeper::new();
    let lease = lease(&keeper).await;
    let put = || {
        let put = client.put_item().table_name("stock").item("key", text("A-17"));
        put.condition_expression("attribute_not_exists(#k)").expression_attribute_names("#k", "key")
    };
    lease.fence_put(put(), "fence").send().await.unwrap();
    let refused = lease.fence_put(put(), "fence").send().await.unwrap_err().into_service_error();
    assert!(refused.is_conditional_check_failed_exception());
    assert_eq!(dynamodb.items("stock").await.len(), 1);
}

#[tokio::test]
async fn where_two_keys_are_locked_both_rows_are_checked() {
    let (dynamodb, client) = place().await;
    let keeper = TestKeeper::new();
    let handler = |_: LambdaEvent<Value>| async { Lease::current()?.guard() };
    let layer = LeaseLayer::builder("orders:{id}").also("legacy:{id}").table("locks").test_keeper(&keeper);
    let lease =
        keeper.invoke(&mut layer.build().unwrap().layer(service_fn(handler)), json!({ "id": 17 })).await.unwrap();
    // The layer's own row is the lease's, the other one is not any more.
    row_of(&dynamodb, &lease.owner().unwrap().to_string()).await;
    let stolen = [("key", text("legacy:17")), ("owner", text("somebody-else"))];
    dynamodb.put("locks", Item::from(stolen.map(|(name, value)| (name.to_owned(), value)))).await;
    let refused = lease.guard_transaction(work(&client, &["first"])).unwrap().send().await.unwrap_err();
    assert!(
        matches!(&refused, TransactionError::Lease(Error::LeaseLost(lost)) if lost.key.as_str() == "legacy:17"),
        "{refused}"
    );
    assert!(dynamodb.items("stock").await.is_empty());

    // Two conditions need room for two, and neither row may be worked on.
    let puts: Vec<_> = (0..99).map(|n| n.to_string()).collect();
    let full = work(&client, &puts.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(matches!(lease.guard_transaction(full), Err(Error::TransactionFull(_))));
    let delete = Delete::builder().table_name("locks").key("key", text("legacy:17")).build().unwrap();
    let touching = work(&client, &["first"]).transact_items(TransactWriteItem::builder().delete(delete).build());
    let Err(Error::LockRowInTransaction(touched)) = lease.guard_transaction(touching) else { panic!() };
    assert_eq!((touched.key.as_str(), touched.index), ("legacy:17", 1));
}
