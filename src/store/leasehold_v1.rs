//! The row format `leasehold/1`: which conditional write carries out each request.
//!
//! | attribute | type | |
//! |---|---|---|
//! | `key` (settable) | S | the partition key |
//! | `format` | S | `leasehold/1` |
//! | `version` | N | one higher with every write that gives or extends a lease |
//! | `lease_ms` | N | how long a lease lasts unrenewed |
//! | `owner` | S | the holder's identity; only while the row is held |
//! | `expires_at` | N | when the lease ends by server time, in epoch milliseconds; only while held, and not always then |
//! | `holder` | M | what people are told; only while held. With `parked` = true its work is done, and the row only stays held |
//! | `ttl` | N | epoch seconds for DynamoDB's TTL; only while free |
//! | `tickets` | N | how many tickets those who wait have taken; a hint, as are the next two, which any write but these leaves |
//! | `served` | N | the highest ticket with which the row was taken, as far as is known |
//! | `hold_ms` | N | how long the work under a lease takes, as a moving average |
//! | others | S | what the layer's author has for people; only while held. Nothing is decided by them |

mod decode;
#[cfg(test)]
mod tests;

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Lock;
use super::attributes::natural;
use super::row_format::{Answers, Expressions, Item, RowFormat, Write, number, text, version_value};
use crate::clock::Wall;
use crate::protocol::{Format, Hints, HolderInfo, OwnerId, Request, Row, Unusable, Version};

/// What `format` says on a row of this format.
const FORMAT: &str = "leasehold/1";

/// The highest version that an acquisition counts on from. Epoch milliseconds never come near it: what is higher was
/// written by hand, and a lease that went on from there could soon not be renewed.
const HIGHEST_FREE: u64 = 1 << 62;

/// The highest version that a row may have while it is held: as high as endless renewals could get, and with as much room
/// again for who takes over.
const HIGHEST_HELD: u64 = HIGHEST_FREE + (1 << 61);

/// The row format `leasehold/1`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseholdV1;

impl RowFormat for LeaseholdV1 {
    fn format(&self) -> Format {
        Format::LeaseholdV1
    }

    fn attributes(&self) -> &'static [&'static str] {
        &["format", "version", "lease_ms", "owner", "expires_at", "holder", "ttl", "tickets", "served", "hold_ms"]
    }

    fn actions(&self) -> &'static str {
        "dynamodb:UpdateItem and dynamodb:GetItem"
    }

    fn encode(&self, lock: &Lock, request: &Request) -> Option<Write> {
        let mut update = Expressions::default();
        match request {
            Request::Acquire { owner, version: _, at, lease, expires_at, unknown, served } => {
                give(&mut update, lock, *owner, *at, lease.as_millis(), *expires_at);
                tell_served(&mut update, *served);
                let absent = update.name_as("key", &lock.table.key_attribute);
                let guard = ours(&mut update);
                // A version that only a hand could have written must not be counted on: the row is malformed.
                let (low, high) = (update.value("low", number(0)), update.value("high", number(HIGHEST_FREE)));
                let free = format!("attribute_not_exists({})", update.name("owner"));
                let takeable = match update.is_one_of(unknown) {
                    Some(mine) => format!("({free} OR {mine})"),
                    None => free,
                };
                update.condition = format!(
                    "attribute_not_exists({absent}) OR ({guard} AND #version BETWEEN {low} AND {high} AND {takeable})"
                );
            }
            Request::TakeOver { owner, version: _, at, lease, expires_at, seen_owner, seen_version, served } => {
                give(&mut update, lock, *owner, *at, lease.as_millis(), *expires_at);
                tell_served(&mut update, *served);
                update.condition = held_at(&mut update, *seen_owner, *seen_version);
            }
            Request::Renew { owner, version, new_version, expires_at } => {
                update.set("version", version_value(*new_version));
                extend(&mut update, *expires_at);
                update.condition = held_at(&mut update, *owner, *version);
            }
            Request::Park { owner, version, parked, new_version, at, lease, expires_at } => {
                update.set("owner", text(*parked));
                update.set("version", version_value(*new_version));
                update.set("lease_ms", AttributeValue::N(lease.as_millis().to_string()));
                update.set("holder", holder(&HolderInfo { parked: true, ..lock.holder.clone() }, *at));
                extend(&mut update, *expires_at);
                update.condition = held_at(&mut update, *owner, *version);
                update.answers = Answers::Nothing;
            }
            Request::Release { owners, ttl, hold } => {
                update = release(lock, owners, *ttl, *hold);
            }
            Request::Ticket => {
                update.add("tickets", number(1));
                let guard = ours(&mut update);
                update.condition = format!("{guard} AND attribute_exists({})", update.name("owner"));
                update.answers = Answers::Row;
            }
            Request::Read => return None,
        }
        Some(Write::Update(update))
    }

    fn written(&self, request: &Request, updated: Option<&Item>) -> Result<Version, String> {
        let expected = match request {
            Request::Release { .. } => return Ok(Version::Counter(0)),
            // Nobody counts on from it here, so its answer brings none.
            Request::Park { new_version, .. } => return Ok(*new_version),
            Request::Acquire { .. } | Request::Ticket | Request::Read => None,
            Request::TakeOver { seen_version, .. } => {
                seen_version.counter().map(|seen| Version::Counter(seen.saturating_add(1)))
            }
            Request::Renew { new_version, .. } => Some(*new_version),
        };
        let version = updated.and_then(|item| item.get("version")).ok_or("does not bring the row's new `version`")?;
        let version = natural(version).map_err(|found| format!("brings a `version` that {found}"))?;
        let version = Version::Counter(version);
        match expected {
            Some(expected) if expected != version => Err(format!("brings `version` {version}, not {expected}")),
            _ => Ok(version),
        }
    }

    fn hints(&self, updated: &Item) -> Hints {
        decode::hints(updated)
    }

    /// A fraction: no condition can tell one from an integer, and one more is a fraction again.
    fn broken(&self, request: &Request, updated: Option<&Item>) -> Option<Unusable> {
        let version = updated.filter(|_| matches!(request, Request::Acquire { .. }))?.get("version")?;
        let found = natural(version).err().filter(|_| version.is_n())?;
        Some(Unusable::Malformed { attribute: "version".to_owned(), found })
    }

    fn decode(&self, item: Option<&Item>) -> Row {
        decode::row(item)
    }
}

/// Frees the row.
pub(super) fn release(lock: &Lock, owners: &[OwnerId], ttl: Option<u64>, hold: Option<Duration>) -> Expressions {
    let mut update = Expressions::default();
    for attribute in ["owner", "holder", "expires_at"] {
        update.remove(attribute);
    }
    for (n, name) in lock.attributes.keys().enumerate() {
        update.remove_as(&format!("a{n}"), name);
    }
    if let Some(ttl) = ttl {
        update.set("ttl", number(ttl));
    }
    if let Some(hold) = hold {
        update.set("hold_ms", AttributeValue::N(hold.as_millis().to_string()));
    }
    update.condition = update.is_to_be_freed(owners);
    update.answers = Answers::Nothing;
    update
}

/// Gives the row to a new owner.
fn give(update: &mut Expressions, lock: &Lock, owner: OwnerId, at: Wall, lease_ms: u128, expires_at: Option<Wall>) {
    update.set("format", AttributeValue::S(FORMAT.to_owned()));
    update.set("owner", text(owner));
    update.set("lease_ms", AttributeValue::N(lease_ms.to_string()));
    update.set("holder", holder(&lock.holder, at));
    for (n, (name, value)) in lock.attributes.iter().enumerate() {
        update.set_as(&format!("a{n}"), name, AttributeValue::S(value.clone()));
    }
    let (version, one) = (update.name("version"), update.value("one", number(1)));
    let seed = update.value("seed", number(at.as_millis()));
    update.set_to("version", &format!("if_not_exists({version}, {seed}) + {one}"));
    extend(update, expires_at);
    // The hint `hold_ms` is for who takes the row, and is told to no one else.
    update.answers = Answers::Row;
}

/// SET, never counted on: a hint that is no number must not fail the write that carries it.
fn tell_served(update: &mut Expressions, served: Option<u64>) {
    if let Some(served) = served {
        update.set("served", number(served));
    }
}

/// What every write that gives or extends a lease does to the row's two moments.
fn extend(update: &mut Expressions, expires_at: Option<Wall>) {
    update.set_or_remove("expires_at", expires_at.map(|at| number(at.as_millis())));
    update.remove("ttl");
}

/// The row is of this format: another program's row and a broken one are never written.
fn ours(update: &mut Expressions) -> String {
    let format = update.name("format");
    let version = update.name("version");
    let ours = update.value("format", AttributeValue::S(FORMAT.to_owned()));
    let type_name = update.value("number", AttributeValue::S("N".to_owned()));
    format!("{format} = {ours} AND attribute_type({version}, {type_name})")
}

/// The row is of this format and still as it was seen.
fn held_at(update: &mut Expressions, owner: OwnerId, version: Version) -> String {
    let guard = ours(update);
    format!("{guard} AND {}", update.is_at(owner, version))
}

fn holder(info: &HolderInfo, at: Wall) -> AttributeValue {
    let texts = [
        ("function", &info.function),
        ("version", &info.version),
        ("request_id", &info.request_id),
        ("template", &info.template),
        ("note", &info.note),
    ];
    let texts = texts.into_iter().filter(|(name, value)| *name != "note" || !value.is_empty());
    let texts = texts.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.clone())));
    let parked = info.parked.then(|| ("parked".to_owned(), AttributeValue::Bool(true)));
    AttributeValue::M(texts.chain([("acquired_at".to_owned(), number(at.as_millis()))]).chain(parked).collect())
}
