//! The example `inventory`: a holder that is paused past its lease in the middle of its write can't spoil the stock.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold_sandbox::{Sandbox, SandboxBuilder, demo::Said, faults::Fault};
use serde_json::{Value, json};

use crate::stage::{SOON, event_file, example, is_held, start};

const SKU: &str = "TEA-GREEN-250";
const KEY: &str = "stock:TEA-GREEN-250";

/// Two environments, and twelve pieces in stock.
async fn shop(builder: SandboxBuilder) -> Sandbox {
    let builder = builder.environments(2).fault_proxy(true).timeout(Duration::from_secs(120));
    let sandbox = start(builder.env("LEASEHOLD_LEASE_DURATION", "1s").env("LEASEHOLD_MAX_WAIT", "60s")).await;
    sandbox.tables().create_lock_table("stock").await.unwrap();
    let item = [("key", AttributeValue::S(SKU.into())), ("quantity", AttributeValue::N("12".into()))];
    sandbox.tables().put("stock", HashMap::from(item.map(|(name, value)| (name.to_owned(), value)))).await.unwrap();
    sandbox
}

async fn stock(sandbox: &Sandbox) -> String {
    sandbox.tables().row("stock", SKU).await.unwrap().unwrap()["quantity"].as_n().unwrap().clone()
}

fn order_of(quantity: u64) -> Value {
    let mut order = event_file("eventbridge-order.json");
    order["detail"]["lines"][0]["quantity"] = quantity.into();
    order
}

/// The first holder has read 12 and sends 7. That request is under way while its whole environment stands still; another
/// environment takes over and writes 10. Only then the old write comes to DynamoDB.
#[tokio::test]
async fn the_write_of_a_holder_that_was_paused_past_its_lease_is_refused_and_the_stock_is_right() {
    // So that the handler itself sees what becomes of its write.
    let sandbox = shop(example("inventory").await.env("LEASEHOLD_ON_LOSS", "signal")).await;
    let transaction = sandbox
        .faults()
        .unwrap()
        .inject_where(1, |passing| (passing.operation == "TransactWriteItems").then_some(Fault::HoldRequest));
    let stale = sandbox.environment(0).start_invocation(order_of(5));
    transaction.reached(SOON).await.unwrap();
    sandbox.environment(0).freeze().await.unwrap();

    let next = sandbox.environment(1).invoke(order_of(2)).await;
    assert_eq!(next.json(), Some(json!({ "sku": SKU, "left": 10 })), "{next:?}\n{}", sandbox.log().timeline());
    transaction.open();
    transaction.carried_out(SOON).await.unwrap();
    assert_eq!(stock(&sandbox).await, "10", "the stale write was applied\n{}", sandbox.log().timeline());

    sandbox.environment(0).thaw().await.unwrap();
    let outcome = stale.outcome().await;
    assert_eq!(outcome.error_type(), Some("LeaseLost"), "{outcome:?}\n{}", sandbox.log().timeline());
    let refused = sandbox
        .log()
        .wait_for(|event| Said::in_event(event).is_some_and(|said| said.message == "nothing was written"), SOON);
    let refused = Said::in_event(&refused.await.unwrap()).unwrap().field("refused").unwrap();
    assert!(refused.contains(KEY), "{refused}");
    assert_eq!(stock(&sandbox).await, "10");
    sandbox.environment(0).wait_until_idle().await.unwrap();
    assert!(!is_held(&sandbox, KEY).await);
}

#[tokio::test]
async fn orders_that_come_at_once_are_taken_one_after_the_other() {
    let sandbox = shop(example("inventory").await).await;
    let orders: Vec<_> = (0..2).map(|n| sandbox.environment(n).start_invocation(order_of(3))).collect();
    for order in orders {
        let outcome = order.outcome().await;
        assert!(outcome.is_success(), "{outcome:?}\n{}", sandbox.log().timeline());
    }
    assert_eq!(stock(&sandbox).await, "6");
    let too_many = sandbox.invoke(order_of(7)).await;
    assert!(
        too_many.error().is_some_and(|error| error.message.contains("Some(6) are there, Some(7) are wanted")),
        "{too_many:?}"
    );
    assert_eq!(stock(&sandbox).await, "6");
}
