//! The row format `pydynox/1`: that of pydynox's distributed locks, so that programs in Python and these share a table.
//!
//! | attribute | type | |
//! |---|---|---|
//! | `key` | S | the partition key; there is no sort key |
//! | `owner` | S | the holder's identity, a UUID |
//! | `version` | S | a UUID, a fresh one with every write |
//! | `lease_ms` | N | how long a lease lasts unrenewed, 100 to 86,400,000 |
//! | `protocol` | N | `1` |
//!
//! A row is there while it is held and at no other time. Every write is one that pydynox itself could send, or one on a
//! narrower condition; the one exception is that an attempt may replace what its own acquisition may have written.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Lock;
use super::leasehold_v1::decode::{kind, lease, owner_id, required};
use super::row_format::{Expressions, Item, RowFormat, Write, number, primary_key, text, version_value};
use super::text::printable;
use crate::protocol::{Format, HeldRow, OwnerId, Request, Row, Unusable, Version};

/// What `protocol` says on a row of this format.
const PROTOCOL: u64 = 1;

/// How much is told of what stands where something else was expected.
const MAX_FOUND: usize = 64;

/// The row format `pydynox/1`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PydynoxV1;

impl RowFormat for PydynoxV1 {
    fn format(&self) -> Format {
        Format::PydynoxV1
    }

    fn attributes(&self) -> &'static [&'static str] {
        &["owner", "version", "lease_ms", "protocol"]
    }

    fn actions(&self) -> &'static str {
        "dynamodb:PutItem, dynamodb:UpdateItem, dynamodb:DeleteItem and dynamodb:GetItem"
    }

    fn encode(&self, lock: &Lock, request: &Request) -> Option<Write> {
        let mut on = Expressions::default();
        Some(match request {
            Request::Acquire { owner, version, lease, unknown, .. } => {
                let absent = format!("attribute_not_exists({})", on.name_as("key", &lock.table.key_attribute));
                on.condition = match on.is_one_of(unknown) {
                    Some(mine) => format!("{absent} OR ({} AND ({mine}))", ours(&mut on)),
                    None => absent,
                };
                Write::Put(row(lock, *owner, first(*owner, *version), *lease), on)
            }
            Request::TakeOver { owner, version, lease, seen_owner, seen_version, .. } => {
                on.condition = format!("{} AND {}", ours(&mut on), on.is_at(*seen_owner, *seen_version));
                Write::Put(row(lock, *owner, first(*owner, *version), *lease), on)
            }
            Request::Renew { owner, version, new_version, .. } => {
                on.set("version", version_value(*new_version));
                on.condition = format!("{} AND {}", ours(&mut on), on.is_at(*owner, *version));
                Write::Update(on)
            }
            Request::Release { owners, .. } => {
                on.condition = on.is_to_be_freed(owners);
                Write::Delete(on)
            }
            Request::Read => return None,
        })
    }

    fn written(&self, request: &Request, updated: Option<&Item>) -> Result<Version, String> {
        match request {
            // A put answers nothing: what it wrote is what was sent.
            Request::Acquire { owner, version, .. } | Request::TakeOver { owner, version, .. } => {
                Ok(first(*owner, *version))
            }
            Request::Renew { new_version, .. } => match updated.and_then(|item| item.get("version")) {
                Some(version) if *version == version_value(*new_version) => Ok(*new_version),
                Some(_) => Err("brings another `version` than was written".to_owned()),
                None => Err("does not bring the row's new `version`".to_owned()),
            },
            Request::Release { .. } | Request::Read => Ok(Version::Counter(0)),
        }
    }

    fn decode(&self, item: Option<&Item>) -> Row {
        let Some(item) = item.filter(|item| !item.is_empty()) else {
            return Row::Absent;
        };
        // A row that names its format is no row of one that has no such attribute.
        match (item.get("format"), item.get("protocol")) {
            (Some(AttributeValue::S(format)), _) => foreign(Some(printable(format, MAX_FOUND))),
            (Some(_), _) | (None, None) => foreign(None),
            (None, Some(protocol)) if *protocol == number(PROTOCOL) => held(item).unwrap_or_else(Row::Unusable),
            (None, Some(AttributeValue::N(other))) => {
                foreign(Some(format!("protocol {}", printable(other, MAX_FOUND))))
            }
            (None, Some(other)) => foreign(Some(format!("protocol ({})", kind(other)))),
        }
    }
}

/// The version that an attempt writes. Every one of the protocol's brings its own; without it the attempt's identity
/// serves, which is as fresh.
fn first(owner: OwnerId, version: Option<Version>) -> Version {
    version.unwrap_or(Version::Opaque(owner.bits()))
}

/// A whole row.
fn row(lock: &Lock, owner: OwnerId, version: Version, lease: Duration) -> Item {
    let mut item = primary_key(&lock.table, &lock.key);
    item.extend([
        ("owner".to_owned(), text(owner)),
        ("version".to_owned(), version_value(version)),
        ("lease_ms".to_owned(), AttributeValue::N(lease.as_millis().to_string())),
        ("protocol".to_owned(), number(PROTOCOL)),
    ]);
    item
}

/// The row is of this format.
fn ours(on: &mut Expressions) -> String {
    let protocol = on.value("protocol", number(PROTOCOL));
    format!("{} = {protocol}", on.name("protocol"))
}

fn held(item: &Item) -> Result<Row, Unusable> {
    Ok(Row::Held(HeldRow {
        owner: required(item, "owner", owner_id)?,
        version: required(item, "version", version)?,
        lease: required(item, "lease_ms", lease)?,
        expires_at: None,
        holder: None,
    }))
}

/// Only the spelling that pydynox writes is a version, as only that is an owner: a condition compares the text.
fn version(value: &AttributeValue) -> Result<Version, String> {
    match value {
        AttributeValue::S(text) => Version::parse_opaque(text).ok_or_else(|| {
            format!("is a string of {} bytes that is not a UUID in lower case with hyphens", text.len())
        }),
        other => Err(format!("is {}, not a string", kind(other))),
    }
}

fn foreign(format: Option<String>) -> Row {
    Row::Unusable(Unusable::Foreign { expected: Format::PydynoxV1, format })
}
