//! DynamoDB, made when it is first needed: reading its settings must not stand between Lambda and the registration.

use std::time::Duration;

use leasehold::protocol::{Answer, Request};
use leasehold::store::{DynamoDb, Lock, Store};
use tokio::sync::OnceCell;

/// A store that reads its settings from the environment with its first use.
#[derive(Debug, Default)]
pub struct LazyDynamoDb {
    store: OnceCell<DynamoDb>,
}

impl LazyDynamoDb {
    async fn store(&self) -> &DynamoDb {
        self.store.get_or_init(DynamoDb::from_env).await
    }
}

impl Store for LazyDynamoDb {
    async fn send(&self, lock: &Lock, request: Request, timeout: Duration) -> Answer {
        self.store().await.send(lock, request, timeout).await
    }

    async fn warm_up(&self) {
        self.store().await.warm_up().await;
    }

    fn drop_connections(&self) {
        if let Some(store) = self.store.get() {
            store.drop_connections();
        }
    }
}
