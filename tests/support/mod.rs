//! What several tests need: a DynamoDB that works and one that does not.

#![allow(dead_code, reason = "no test needs all of it")]
#![allow(unreachable_pub, reason = "each test is a crate of its own")]

pub mod embedded_dynamodb;
pub mod fault_server;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use leasehold::protocol::{HolderInfo, OwnerId};
use leasehold::session::Table;
use leasehold::store::Lock;

/// Settings for the DynamoDB at this address.
pub fn sdk_config(url: &str) -> SdkConfig {
    let credentials = Credentials::new("AKIDEXAMPLE", "not a secret", None, None, "tests");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(url)
        .build()
}

/// A lock in this table.
pub fn lock_in(table: Table, key: &str) -> Lock {
    let holder = HolderInfo {
        function: "orders".into(),
        version: "$LATEST".into(),
        request_id: "5f1c".into(),
        template: "orders:{id}".into(),
        note: String::new(),
        acquired_at: None,
        parked: false,
    };
    Lock { table, key: key.to_owned(), holder, attributes: Default::default() }
}

/// A lock in the table `locks`.
pub fn lock(key: &str) -> Lock {
    lock_in(Table::new("locks"), key)
}

/// The identity with this number.
pub fn owner(n: u128) -> OwnerId {
    OwnerId::from_u128(n)
}
