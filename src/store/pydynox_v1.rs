//! The row format `pydynox/1`: that of pydynox's distributed locks, so that programs in Python and these share a table.
//!
//! | attribute | type | |
//! |---|---|---|
//! | `key` | S | the partition key; there is no sort key |
//! | `owner` | S | the holder's identity, a UUID; one that is nobody's on a row that is only kept for a while |
//! | `version` | S | a UUID, a fresh one with every write |
//! | `lease_ms` | N | how long a lease lasts unrenewed, 100 to 86,400,000 |
//! | `protocol` | N | `1` |
//!
//! A row is there while it is held and at no other time. Every write is one that pydynox itself could send, or one on a
//! narrower condition; the one exception is that an attempt may replace what its own acquisition may have written.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Lock;
use super::attributes::{LEASE_MS, kind, lease, owner_id, required};
use super::row_format::{Answers, Expressions, Item, RowFormat, Write, number, primary_key, text, version_value};
use super::text::printable;
use crate::protocol::{Format, HeldRow, Hints, OwnerId, Request, Row, Unusable, Version};

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
            // Another owner with another version and lease, as if it had taken the row over just now: pydynox waits for it
            // as for any holder.
            Request::Park { owner, version, parked, new_version, lease, .. } => {
                on.set("owner", text(*parked));
                on.set("version", version_value(*new_version));
                on.set("lease_ms", AttributeValue::N(lease.as_millis().to_string()));
                on.condition = format!("{} AND {}", ours(&mut on), on.is_at(*owner, *version));
                on.answers = Answers::Nothing;
                Write::Update(on)
            }
            Request::Release { owners, .. } => {
                on.condition = on.is_to_be_freed(owners);
                Write::Delete(on)
            }
            // There are no tickets here, and none are asked for; what is shown is the row.
            Request::Ticket | Request::Read => return None,
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
            Request::Park { new_version, .. } => Ok(*new_version),
            Request::Release { .. } | Request::Ticket | Request::Read => Ok(Version::Counter(0)),
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

/// The row is of this format: another program's row and a broken one are never written.
fn ours(on: &mut Expressions) -> String {
    let (protocol, string) =
        (on.value("protocol", number(PROTOCOL)), on.value("string", AttributeValue::S("S".to_owned())));
    let (low, high) = (on.value("low", number(*LEASE_MS.start())), on.value("high", number(*LEASE_MS.end())));
    format!(
        "{} = {protocol} AND attribute_not_exists({}) AND attribute_type({}, {string}) AND {} BETWEEN {low} AND {high}",
        on.name("protocol"),
        on.name("format"),
        on.name("version"),
        on.name("lease_ms"),
    )
}

fn held(item: &Item) -> Result<Row, Unusable> {
    Ok(Row::Held(HeldRow {
        owner: required(item, "owner", owner_id)?,
        version: required(item, "version", version)?,
        lease: required(item, "lease_ms", lease)?,
        expires_at: None,
        holder: None,
        hints: Hints::default(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;
    use crate::protocol::HolderInfo;
    use crate::session::Table;

    fn lock() -> Lock {
        let table = Table::new("locks").speaking(Format::PydynoxV1);
        Lock { table, key: "sync:1".into(), holder: HolderInfo::default(), attributes: Default::default() }
    }

    fn requests() -> [Request; 8] {
        let (owner, seen_owner, expires_at) = (OwnerId::from_u128(1), OwnerId::from_u128(2), None);
        let (version, at, lease) = (Some(Version::Opaque(3)), Wall::from_millis(1), Duration::from_secs(30));
        let (old, new) = (Version::Opaque(4), Version::Opaque(5));
        [
            Request::Acquire { owner, version, at, lease, expires_at, unknown: vec![], served: None },
            Request::Acquire { owner, version, at, lease, expires_at, unknown: vec![seen_owner], served: None },
            Request::TakeOver { owner, version, at, lease, expires_at, seen_owner, seen_version: old, served: None },
            Request::Renew { owner, version: old, new_version: new, expires_at },
            Request::Release { owners: vec![owner], ttl: None, hold: None },
            Request::Release { owners: vec![], ttl: None, hold: None },
            Request::Park { owner, version: old, parked: seen_owner, new_version: new, at, lease, expires_at },
            Request::Read,
        ]
    }

    #[test]
    fn an_acquire_without_unknown_attempts_is_pydynoxs_own() {
        let [acquire, ..] = requests();
        let Some(Write::Put(item, on)) = PydynoxV1.encode(&lock(), &acquire) else { panic!("no put") };
        assert_eq!(on.condition, "attribute_not_exists(#key)");
        assert_eq!((on.names.len(), on.values.len()), (1, 0));
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let expected = [
            ("key", s("sync:1")),
            ("owner", s("00000000-0000-0000-0000-000000000001")),
            ("version", s("00000000-0000-0000-0000-000000000003")),
            ("lease_ms", number(30_000)),
            ("protocol", number(1)),
        ];
        assert_eq!(item, expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn every_alias_and_every_value_is_used_and_every_one_used_is_given() {
        for request in requests() {
            let Some(write) = PydynoxV1.encode(&lock(), &request) else { continue };
            let on = write.expressions();
            let text = format!("{} {}", on.update(), on.condition);
            let words: Vec<_> = text.split(|c: char| !(c.is_alphanumeric() || "#:_".contains(c))).collect();
            let mut used: Vec<_> = words.iter().filter(|word| word.starts_with(['#', ':'])).copied().collect();
            used.sort_unstable();
            used.dedup();
            let mut given: Vec<_> = on.names.keys().chain(on.values.keys()).map(String::as_str).collect();
            given.sort_unstable();
            assert_eq!(used, given, "{request:?}");
        }
    }

    #[test]
    fn a_renewal_writes_the_version_and_nothing_else() {
        let Some(Write::Update(on)) = PydynoxV1.encode(&lock(), &requests()[3]) else { panic!("no update") };
        assert_eq!(on.update(), "SET #version = :version");
        assert!(on.condition.ends_with("#owner = :seen_owner AND #version = :seen_version"), "{}", on.condition);
    }
}
