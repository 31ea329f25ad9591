//! An inventory that a stale holder can't spoil: the stock is written in a transaction that DynamoDB refuses unless the lease
//! is held in that very moment.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example inventory --event events/eventbridge-order.json \
//!   --event events/eventbridge-order.json --items stock=events/stock.json
//! ```
//!
//! ```text
//! {"left":10,"sku":"TEA-GREEN-250"}
//! {"left":8,"sku":"TEA-GREEN-250"}
//! ```
//!
//! A holder that was paused between reading and writing, and whose lease somebody else has by now, gets `LeaseLost` for its
//! write: see `tests/end_to_end/inventory.rs`. Its role needs `dynamodb:ConditionCheckItem` on the lock table.

use std::collections::HashMap;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use lambda_runtime::{Diagnostic, Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::error::TransactionError;
use leasehold::{Lease, LeaseLayer};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let client = Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
    let lease = LeaseLayer::builder("stock:{detail.lines[0].sku}").reserve(Duration::from_secs(5)).build()?;
    let handler = |event: LambdaEvent<Value>| take(&client, event.payload);
    lambda_runtime::run(ServiceBuilder::new().layer(lease).service_fn(handler)).await
}

/// Takes what the order's first line asks for out of the stock. A `Diagnostic` keeps the `errorType` of a lost lease.
async fn take(client: &Client, event: Value) -> Result<Value, Diagnostic> {
    let line = &event["detail"]["lines"][0];
    let sku = AttributeValue::S(line["sku"].as_str().unwrap_or_default().to_owned());
    let read = client.get_item().table_name("stock").key("key", sku.clone()).consistent_read(true).send().await;
    let quantity = |item: &HashMap<_, AttributeValue>| item.get("quantity")?.as_n().ok()?.parse::<u64>().ok();
    let (stock, wanted) = (read.map_err(Error::from)?.item().and_then(quantity), line["quantity"].as_u64());
    let left = stock.zip(wanted).and_then(|(stock, wanted)| stock.checked_sub(wanted));
    let left = left.ok_or_else(|| format!("{stock:?} are there, {wanted:?} are wanted"))?;

    let update = Update::builder().table_name("stock").key("key", sku).update_expression("SET quantity = :left");
    let update = update.expression_attribute_values(":left", AttributeValue::N(left.to_string())).build();
    let update = TransactWriteItem::builder().update(update.map_err(Error::from)?).build();
    let work = client.transact_write_items().transact_items(update);
    match Lease::current()?.guard_transaction(work)?.send().await {
        Ok(_) => Ok(json!({ "sku": line["sku"], "left": left })),
        Err(TransactionError::Lease(refused)) => {
            tracing::warn!(%refused, "nothing was written");
            Err(refused.into())
        }
        Err(other) => Err(Error::from(other).into()),
    }
}
