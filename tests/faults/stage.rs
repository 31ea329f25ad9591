//! An embedded DynamoDB with a lock table, the proxy in front of it, and keepers on either side of the proxy.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::SystemClock;
use leasehold::keeper::{Keeper, KeeperOptions, PlainHome};
use leasehold::store::DynamoDb;
use leasehold_sandbox::faults::{FaultProxy, Injected, Step};
use tokio::time::{sleep, timeout};

use crate::session::{Ask, Session};
use crate::support::embedded_dynamodb::EmbeddedDynamoDb;
use crate::support::{owner, sdk_config};
use crate::weather::Weather;
use crate::{KEY, LONG};

#[derive(Debug)]
pub struct Stage {
    pub proxy: FaultProxy,
    dynamodb: EmbeddedDynamoDb,
}

/// The key's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub owner: Option<String>,
    pub version: u64,
    pub expires_at: Option<u64>,
    pub ttl: bool,
}

impl Stage {
    pub async fn new() -> Self {
        let dynamodb = EmbeddedDynamoDb::with_locks().await;
        let proxy = FaultProxy::start(dynamodb.url()).unwrap();
        Self { proxy, dynamodb }
    }

    pub fn url(&self) -> &str {
        self.dynamodb.url()
    }

    pub fn keeper(url: &str) -> Keeper {
        let store = DynamoDb::with_config(sdk_config(url));
        Keeper::new(store, Arc::new(SystemClock::new()), Arc::new(PlainHome), KeeperOptions::default())
    }

    /// A session of a keeper that knows nothing of the proxy.
    pub async fn direct(&self) -> Session {
        Session::begin(&Self::keeper(self.dynamodb.url()), "r-direct").await
    }

    /// A session of a keeper behind the proxy, whose connection has served before and is kept alive. Weather that is
    /// there from the beginning begins now.
    pub async fn through(&self, weather: &Weather) -> Session {
        let keeper = Self::keeper(self.proxy.url());
        let mut first = Session::begin(&keeper, "r-first").await;
        first.ask_for("another key", Ask::patient()).await;
        first.granted().await;
        first.release().await;
        if weather.is_from_the_beginning() {
            weather.clone().begin(&self.proxy, Step::Other);
        }
        Session::begin(&keeper, "r-through").await
    }

    /// The weather begins, unless it has begun already.
    pub fn begin(&self, weather: &Weather, step: Step) -> Option<Injected> {
        (!weather.is_from_the_beginning()).then(|| weather.clone().begin(&self.proxy, step))
    }

    /// How many requests of this step came for the key.
    pub fn count(&self, step: Step) -> usize {
        let about =
            |passing: &&leasehold_sandbox::faults::Passing| passing.step == step && passing.key.as_deref() == Some(KEY);
        self.proxy.seen().iter().filter(about).count()
    }

    /// Waits until so many requests of this step came for the key.
    pub async fn until_count(&self, step: Step, count: usize) {
        until(|| self.count(step) >= count).await;
    }

    pub async fn row(&self) -> Row {
        let items = self.dynamodb.items("locks").await;
        let key = AttributeValue::S(KEY.to_owned());
        let item = items.into_iter().find(|item| item["key"] == key).expect("the key's row");
        let number = |name: &str| item.get(name).map(|value| value.as_n().unwrap().parse().unwrap());
        Row {
            owner: item.get("owner").map(|owner| owner.as_s().unwrap().clone()),
            version: number("version").unwrap(),
            expires_at: number("expires_at"),
            ttl: item.contains_key("ttl"),
        }
    }

    /// The counter of the key's state.
    pub async fn state_counter(&self) -> u64 {
        let items = self.dynamodb.items("locks").await;
        let key = AttributeValue::S(format!("{KEY}#state"));
        let item = items.into_iter().find(|item| item["key"] == key).expect("the key's state");
        item["counter"].as_n().unwrap().parse().unwrap()
    }

    /// A row that is free; returns its version.
    pub async fn put_free(&self) -> u64 {
        let (row, version) = row();
        self.dynamodb.put("locks", row).await;
        version
    }

    /// A row whose holder is long gone, and whose lease of half a second ended a minute ago; returns its version.
    pub async fn put_abandoned(&self) -> u64 {
        let (mut row, version) = row();
        row.insert("owner".to_owned(), AttributeValue::S(abandoned_by()));
        row.insert("lease_ms".to_owned(), AttributeValue::N("500".to_owned()));
        row.insert("expires_at".to_owned(), AttributeValue::N((version - 60_000).to_string()));
        self.dynamodb.put("locks", row).await;
        version
    }
}

/// Whose the abandoned row is.
pub fn abandoned_by() -> String {
    owner(99).to_string()
}

/// A row without a holder, with a version that says now, as versions do.
fn row() -> (HashMap<String, AttributeValue>, u64) {
    let version = u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let row = [
        ("key", AttributeValue::S(KEY.to_owned())),
        ("format", AttributeValue::S("leasehold/1".to_owned())),
        ("version", AttributeValue::N(version.to_string())),
        ("lease_ms", AttributeValue::N("60000".to_owned())),
    ];
    (row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), version)
}

/// Waits until this is so.
pub async fn until(done: impl Fn() -> bool) {
    let polled = async {
        while !done() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, polled).await.expect("what was waited for");
}
