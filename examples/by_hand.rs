//! A handler that decides while it works which keys it needs: it reads an order, then locks the stock of each of its items.
//!
//! A layer takes its lease before the handler begins, by a key that stands in the event. Here the keys are known only later,
//! and so they are taken by hand, in one order everywhere so that two invocations never wait for each other. Two at once, of
//! which one waits for the other's keys (`waited` in what they log):
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example by_hand --concurrent --event events/eventbridge-order.json \
//!   --event events/eventbridge-order.json
//! ```
//!
//! ```text
//! {"reserved":["stock/hinges","stock/screws"]}
//! {"reserved":["stock/hinges","stock/screws"]}
//! ```

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, service_fn, tracing};
use leasehold::Leasehold;
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    // Once, before the first event: every wrong setting is told here.
    let locks = Leasehold::builder().namespace("stock").reserve(Duration::from_secs(5)).build()?;
    lambda_runtime::run(service_fn(move |event| handler(locks.clone(), event))).await
}

async fn handler(locks: Leasehold, event: LambdaEvent<Value>) -> Result<Value, Error> {
    // From here on the wait leaves the reserve alone, and the rows name this invocation.
    let locks = locks.for_invocation(&event.context);
    let mut items = items_of(&event.payload["detail"]["orderId"]).await;
    items.sort_unstable();
    items.dedup();

    let mut leases = Vec::new();
    for item in items {
        leases.push(locks.acquire(item, Duration::from_secs(10)).await?);
    }
    reserve_the_stock().await;
    for lease in &leases {
        lease.ensure_held()?; // before a step that can't be taken back
    }

    let mut taken = Vec::new();
    for lease in leases {
        let metrics = lease.metrics().await?;
        tracing::info!(key = %lease.key(), waited = ?metrics.waited, writes = metrics.write_requests, "reserved");
        taken.push(lease.key().to_string());
        lease.release().await?; // a drop gives it back as well
    }
    Ok(json!({ "reserved": taken }))
}

/// What an order consists of: a query, in a real function.
async fn items_of(_order: &Value) -> Vec<String> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    vec!["screws".to_owned(), "hinges".to_owned()]
}

async fn reserve_the_stock() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}
