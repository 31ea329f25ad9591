//! A lock that somebody holds who is not there: to see what others are told.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::{Row, Tables};
use crate::Error;

impl Tables {
    /// Writes a row in the format `leasehold/1` as a function named `somebody-else` leaves it that took this key's lock just
    /// now, and will not renew it: nobody gets the lock before `lease` is over.
    ///
    /// # Errors
    ///
    /// When DynamoDB refuses or can't be reached.
    pub async fn hold(&self, table: &str, key: &str, lease: Duration) -> Result<(), Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.put(table, row(key, now, lease)).await
    }
}

fn row(key: &str, now: Duration, lease: Duration) -> Row {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let millis = |duration: Duration| AttributeValue::N(duration.as_millis().to_string());
    let request_id = Uuid::new_v4().to_string();
    let holder = [
        ("function", text("somebody-else")),
        ("version", text("$LATEST")),
        ("request_id", text(&request_id)),
        ("template", text(key)),
        ("acquired_at", millis(now)),
    ];
    let holder: HashMap<_, _> = holder.map(|(name, value)| (name.to_owned(), value)).into();
    let row = [
        ("key", text(key)),
        ("format", text("leasehold/1")),
        ("version", millis(now)),
        ("lease_ms", millis(lease)),
        ("owner", text(&Uuid::new_v4().to_string())),
        ("expires_at", millis(now + lease)),
        ("holder", AttributeValue::M(holder)),
    ];
    row.map(|(name, value)| (name.to_owned(), value)).into()
}
