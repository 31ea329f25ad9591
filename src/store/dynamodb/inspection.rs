//! Rows as operators look at them: a table page by page, one row with all that stands in it, and a row freed by hand.
//!
//! Nothing of this belongs to the protocol: no lease is taken or extended here, and no [`Request`] describes it.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use tokio::time::timeout;

use super::{DynamoDb, failed, format_of};
use crate::clock::{Now, Wall};
use crate::protocol::{Failure, FailureKind, HeldRow, Outcome, Request, Row, free_until};
use crate::session::Table;
use crate::store::Lock;
use crate::store::errors::{failure, late};
use crate::store::row_format::{Expressions, Item, primary_key};
use crate::store::witness::Witness;
use crate::store::write::{self, Reply};

/// Which rows of a table are wanted, and how they are read.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table. Where it has a sort key, only rows with the fixed value of its description are locks.
    pub table: Table,
    /// Only keys that begin like this; all, where it is empty.
    pub prefix: String,
    /// Only rows with an attribute `owner`: held ones, and those that look so and can't be read.
    pub owned: bool,
    /// Whether a page shows every write that was answered before it was asked for, for twice the capacity.
    pub consistent: bool,
    /// How many rows DynamoDB looks at for a page, whether they are wanted or not.
    pub page: i32,
}

/// Where the next page begins.
#[derive(Clone, Debug)]
pub struct Position(Item);

/// A part of a table.
#[derive(Clone, Debug)]
pub struct Page {
    /// The wanted rows that were found.
    pub rows: Vec<FoundRow>,
    /// How many rows were looked at for them.
    pub looked_at: u64,
    /// Read capacity units consumed.
    pub read_units: f64,
    /// The answer's `Date` in seconds since the Unix epoch, where there was one that serves.
    pub date: Option<u64>,
    /// Where to go on; `None` at the table's end.
    pub next: Option<Position>,
}

/// A row as it was found.
#[derive(Clone, Debug)]
pub struct FoundRow {
    /// Its key; `None` where the attribute is no string.
    pub key: Option<String>,
    /// What it means in the table's row format.
    pub row: Row,
    /// Everything that stands in it.
    pub attributes: Item,
}

/// One row, looked up by its key.
#[derive(Clone, Debug)]
pub struct Look {
    /// The row; it has no attributes where it is absent.
    pub found: FoundRow,
    /// The answer's `Date` in seconds since the Unix epoch, where there was one that serves.
    pub date: Option<u64>,
    /// Read capacity units consumed.
    pub read_units: f64,
}

impl DynamoDb {
    /// Reads one page of the table. Needs `dynamodb:Scan`.
    ///
    /// # Errors
    ///
    /// What DynamoDB or the way to it refused, in the store's own words.
    pub async fn scan(&self, scan: &Scan, from: Option<Position>, limit: Duration) -> Result<Page, Failure> {
        let (table, format) = (&scan.table, format_of(&scan.table)?);
        let mut on = Expressions::default();
        let mut conditions = Vec::new();
        if !scan.prefix.is_empty() {
            let prefix = on.value("prefix", AttributeValue::S(scan.prefix.clone()));
            conditions.push(format!("begins_with({}, {prefix})", on.name_as("key", &table.key_attribute)));
        }
        if let Some((name, value)) = &table.sort_key {
            let value = on.value("sort", AttributeValue::S(value.clone()));
            conditions.push(format!("{} = {value}", on.name_as("sort", name)));
        }
        if scan.owned {
            conditions.push(format!("attribute_exists({})", on.name("owner")));
        }
        let filter = (!conditions.is_empty()).then(|| conditions.join(" AND "));
        let connection = self.connections.current();
        let (client, witness) = (self.connections.client(&connection).await, Witness::default());
        let request = client.scan().table_name(&table.name).consistent_read(scan.consistent).limit(scan.page);
        let request = request.set_filter_expression(filter).set_exclusive_start_key(from.map(|Position(key)| key));
        let request = request
            .set_expression_attribute_names((!on.names.is_empty()).then_some(on.names))
            .set_expression_attribute_values((!on.values.is_empty()).then_some(on.values))
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        let sent = request.customize().interceptor(witness.clone()).send();
        let answer = timeout(limit, sent).await.map_err(|_| late(&witness, limit, table))?;
        let output = answer.map_err(|error| failure(&error, &witness, "Scan", table))?;
        let decode = |item: Item| FoundRow {
            key: item.get(&table.key_attribute).and_then(|key| key.as_s().ok()).cloned(),
            row: format.decode(Some(&item)),
            attributes: item,
        };
        Ok(Page {
            looked_at: u64::try_from(output.scanned_count).unwrap_or(0),
            read_units: output.consumed_capacity.and_then(|consumed| consumed.capacity_units).unwrap_or(0.0),
            date: witness.date(),
            next: output.last_evaluated_key.filter(|key| !key.is_empty()).map(Position),
            rows: output.items.unwrap_or_default().into_iter().map(decode).collect(),
        })
    }

    /// Reads one row, consistently, with everything that stands in it. Needs `dynamodb:GetItem`.
    ///
    /// # Errors
    ///
    /// What DynamoDB or the way to it refused, in the store's own words.
    pub async fn look(&self, table: &Table, key: &str, limit: Duration) -> Result<Look, Failure> {
        let format = format_of(table)?;
        let connection = self.connections.current();
        let (client, witness) = (self.connections.client(&connection).await, Witness::default());
        let request = client.get_item().table_name(&table.name).set_key(Some(primary_key(table, key)));
        let request = request.consistent_read(true).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let sent = request.customize().interceptor(witness.clone()).send();
        let answer = timeout(limit, sent).await.map_err(|_| late(&witness, limit, table))?;
        let output = answer.map_err(|error| failure(&error, &witness, "GetItem", table))?;
        let read_units = output.consumed_capacity().and_then(|consumed| consumed.capacity_units).unwrap_or(0.0);
        let row = format.decode(output.item());
        let found = FoundRow { key: Some(key.to_owned()), row, attributes: output.item.unwrap_or_default() };
        Ok(Look { found, date: witness.date(), read_units })
    }

    /// Frees a row by hand: the holder's own release, on the narrower condition that the row still has the owner *and* the
    /// version that were seen on it. `at` is this host's wall time; a free row is kept for a week after it.
    ///
    /// Answers [`Outcome::Written`], or [`Outcome::Refused`] with the row as it is by now. A holder that still runs loses
    /// its lease with its next renewal and works on without one until then.
    pub async fn free(&self, table: &Table, key: &str, seen: &HeldRow, at: Wall, limit: Duration) -> Outcome {
        let format = match format_of(table) {
            Ok(format) => format,
            Err(failure) => return Outcome::Failed(failure),
        };
        let lock = Lock {
            table: table.clone(),
            key: key.to_owned(),
            holder: Default::default(),
            attributes: Default::default(),
        };
        let ttl = seen.version.counter().map(|version| free_until(Now { wall: at, ..Now::default() }, version));
        let release = Request::Release { owners: vec![seen.owner], ttl, hold: None };
        let Some(release) = format.encode(&lock, &release) else {
            return failed(FailureKind::Rejected, "the row format has no release");
        };
        let connection = self.connections.current();
        let (client, witness) = (self.connections.client(&connection).await, Witness::default());
        let sent = write::send(client, &lock, release.only_at(seen.owner, seen.version), &witness);
        match timeout(limit, sent).await {
            Ok(Reply::Applied { .. }) => Outcome::written(seen.version),
            Ok(Reply::Refused(item)) => Outcome::Refused { row: format.decode(item.as_ref()) },
            Ok(Reply::Failed(failure)) => Outcome::Failed(failure),
            Err(_) => Outcome::Failed(late(&witness, limit, table)),
        }
    }
}
