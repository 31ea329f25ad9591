//! A table to try the command line on: 10,000 rows on an embedded DynamoDB, most of them free, and contention for a few.
//!
//! ```sh
//! cargo run -p leaseholdctl --example contended_table
//! ```
//!
//! It prints what to set in another shell, and serves until Ctrl-C.
#![allow(clippy::print_stdout, reason = "an example that tells what to type")]

use std::collections::HashMap;
use std::error::Error;
use std::time::{Duration, SystemTime};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use leasehold::clock::Wall;
use leasehold::protocol::{HolderInfo, Outcome, OwnerId, Request, Version};
use leasehold::session::Table;
use leasehold::store::{DynamoDb, Lock, Store as _};
use leasehold_sandbox::EmbeddedDynamoDb;
use tokio::time::sleep;

const ROWS: usize = 10_000;
const LEASE: Duration = Duration::from_secs(6);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dynamodb = EmbeddedDynamoDb::start(0)?;
    dynamodb.tables().create_lock_table("locks").await?;
    let config = config(dynamodb.url());
    fill(&Client::new(&config)).await?;
    for contender in 0..6_u64 {
        let store = DynamoDb::with_config(config.clone());
        tokio::spawn(async move { contend(&store, contender).await });
    }
    println!("10,000 rows are there. In another shell:\n");
    println!("export AWS_ENDPOINT_URL={} AWS_REGION=us-east-1 LEASEHOLD_TABLE=locks", dynamodb.url());
    println!("export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=example\n");
    println!("cargo run -p leaseholdctl -- watch");
    tokio::signal::ctrl_c().await?;
    Ok(())
}

fn config(url: &str) -> SdkConfig {
    let credentials = Credentials::new("AKIDEXAMPLE", "example", None, None, "example");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(url)
        .build()
}

/// Rows that were used and are free again.
async fn fill(client: &Client) -> Result<(), Box<dyn Error>> {
    let now = millis();
    for batch in (0..ROWS).collect::<Vec<_>>().chunks(25) {
        let mut puts = Vec::new();
        for number in batch {
            let row = HashMap::from([
                ("key".to_owned(), AttributeValue::S(format!("orders:{number:05}"))),
                ("format".to_owned(), AttributeValue::S("leasehold/1".to_owned())),
                ("version".to_owned(), AttributeValue::N(now.to_string())),
                ("lease_ms".to_owned(), AttributeValue::N("30000".to_owned())),
                ("ttl".to_owned(), AttributeValue::N((now / 1_000 + 604_800).to_string())),
            ]);
            let put = PutRequest::builder().set_item(Some(row)).build()?;
            puts.push(WriteRequest::builder().put_request(put).build());
        }
        client.batch_write_item().request_items("locks", puts).send().await?;
    }
    Ok(())
}

/// Takes one of four keys, works for a while, gives it back; now and then one vanishes in the middle.
async fn contend(store: &DynamoDb, contender: u64) {
    for round in 0_u64.. {
        let key = format!("orders:{:05}", (round * 7 + contender) % 4);
        let holder = HolderInfo {
            function: ["ship-orders", "bill-orders"][(contender % 2) as usize].into(),
            version: "12".into(),
            request_id: uuid_like(),
            template: "orders:{detail.orderId}".into(),
            acquired_at: None,
            ..HolderInfo::default()
        };
        let lock = Lock { table: Table::new("locks"), key, holder, attributes: Default::default() };
        let (owner, version) = match take(store, &lock).await {
            Some(taken) => taken,
            None => {
                sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        sleep(Duration::from_millis(1_500)).await;
        let Version::Counter(counter) = version else { return };
        let renew = Request::Renew { owner, version, new_version: Version::Counter(counter + 1), expires_at: None };
        store.send(&lock, renew, LEASE).await;
        sleep(Duration::from_millis(500 + contender * 150)).await;
        if round % 9 == contender {
            sleep(LEASE * 2).await;
            continue;
        }
        store
            .send(
                &lock,
                Request::Release { owners: vec![owner], ttl: Some(millis() / 1_000 + 604_800), hold: None },
                LEASE,
            )
            .await;
    }
}

/// Takes the row if it is free; takes it over where it stands unchanged for its lease.
async fn take(store: &DynamoDb, lock: &Lock) -> Option<(OwnerId, Version)> {
    let (owner, lease, at) = (OwnerId::random(), LEASE, Wall::from_millis(millis()));
    let acquire = Request::Acquire { owner, version: None, at, lease, expires_at: None, unknown: vec![], served: None };
    match store.send(lock, acquire, LEASE).await.outcome {
        Outcome::Written { version, .. } => Some((owner, version)),
        Outcome::Refused { row: leasehold::protocol::Row::Held(held) } => {
            sleep(LEASE).await;
            let (seen_owner, seen_version) = (held.owner, held.version);
            let request = Request::TakeOver {
                owner,
                version: None,
                at,
                lease,
                expires_at: None,
                seen_owner,
                seen_version,
                served: None,
            };
            match store.send(lock, request, LEASE).await.outcome {
                Outcome::Written { version, .. } => Some((owner, version)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn millis() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A request id as Lambda makes them.
fn uuid_like() -> String {
    OwnerId::random().to_string()
}
