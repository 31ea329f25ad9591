//! Reads that are tried again while DynamoDB throttles or fails: the library's store never does, for its protocol has to
//! know what became of each request. A write is never sent twice here.

use std::time::Duration;

use leasehold::protocol::Failure;
use leasehold::session::Table;
use leasehold::store::{DynamoDb, Look, Page, Position, Scan};
use tokio::time::{Instant, sleep};

use crate::aws::PATIENCE;

/// After how long each next attempt follows.
const DELAYS: [u64; 5] = [100, 200, 400, 800, 1_600];
/// No attempt begins after this.
const AGAIN: Duration = Duration::from_secs(4);

/// One page of a table.
pub(crate) async fn page(store: &DynamoDb, scan: &Scan, from: Option<Position>) -> Result<Page, Failure> {
    again(async || store.scan(scan, from.clone(), PATIENCE).await).await
}

/// One row.
pub(crate) async fn look(store: &DynamoDb, table: &Table, key: &str) -> Result<Look, Failure> {
    again(async || store.look(table, key, PATIENCE).await).await
}

/// An answer that took long to fail to come is not waited for once more: who asks would wait for minutes.
async fn again<T>(ask: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
    let begun = Instant::now();
    for delay in DELAYS {
        match ask().await {
            Err(failure) if failure.kind.is_transient() && begun.elapsed() < AGAIN => {
                sleep(Duration::from_millis(delay)).await;
            }
            answered => return answered,
        }
    }
    ask().await
}
