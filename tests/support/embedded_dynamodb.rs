//! A DynamoDB in memory, on loopback, on threads of its own: it serves also while a test's own threads are blocked.

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use dynoxide::Database;
use tokio::sync::oneshot;

use super::sdk_config;

pub type Item = HashMap<String, AttributeValue>;

/// The embedded DynamoDB. It ends when this is dropped.
#[derive(Debug)]
pub struct EmbeddedDynamoDb {
    url: String,
    client: Client,
    _stop: oneshot::Sender<()>,
}

impl EmbeddedDynamoDb {
    /// One without tables.
    pub fn start() -> Self {
        let database = Database::memory().expect("a database in memory");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("the port"));
        listener.set_nonblocking(true).expect("a listener that does not block");
        let (stop, stopped) = oneshot::channel::<()>();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("tokio takes the listener");
                tokio::select! {
                    () = dynoxide::server::serve_on(listener, database) => {}
                    _ = stopped => {}
                }
            });
        });
        let client = Client::new(&sdk_config(&url));
        Self { url, client, _stop: stop }
    }

    /// One with the table `locks`, whose partition key is `key`.
    pub async fn with_locks() -> Self {
        let dynamodb = Self::start();
        dynamodb.create_table("locks", "key", None).await;
        dynamodb
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Creates a table whose keys are strings.
    pub async fn create_table(&self, name: &str, partition_key: &str, sort_key: Option<&str>) {
        self.create_table_of(name, partition_key, ScalarAttributeType::S, sort_key).await;
    }

    /// Creates a table whose partition key has this type.
    pub async fn create_table_of(
        &self,
        name: &str,
        partition_key: &str,
        of: ScalarAttributeType,
        sort_key: Option<&str>,
    ) {
        let mut table = self.client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
        let keys =
            [Some((partition_key, of, KeyType::Hash)), sort_key.map(|k| (k, ScalarAttributeType::S, KeyType::Range))];
        for (attribute, of, role) in keys.into_iter().flatten() {
            let defined = AttributeDefinition::builder().attribute_name(attribute).attribute_type(of);
            let element = KeySchemaElement::builder().attribute_name(attribute).key_type(role);
            table = table
                .attribute_definitions(defined.build().expect("a definition"))
                .key_schema(element.build().expect("a key's element"));
        }
        table.send().await.expect("a table");
    }

    /// Writes a whole item.
    pub async fn put(&self, table: &str, item: Item) {
        self.client.put_item().table_name(table).set_item(Some(item)).send().await.expect("a written item");
    }

    /// Deletes an item by its partition key `key`.
    pub async fn delete(&self, table: &str, key: &str) {
        let key = AttributeValue::S(key.to_owned());
        self.client.delete_item().table_name(table).key("key", key).send().await.expect("a deleted item");
    }

    /// Everything in the table.
    pub async fn items(&self, table: &str) -> Vec<Item> {
        self.client.scan().table_name(table).send().await.expect("a scan").items.unwrap_or_default()
    }

    /// The only item in the table, if there is one.
    pub async fn only_item(&self, table: &str) -> Option<Item> {
        let mut items = self.items(table).await;
        assert!(items.len() <= 1, "{items:?}");
        items.pop()
    }
}
