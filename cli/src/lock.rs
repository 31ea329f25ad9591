//! One row, for people and as JSON.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::protocol::{HeldRow, HolderInfo, Row, Unusable, Version};
use leasehold::store::FoundRow;
use serde_json::{Value, json};

use crate::text::cut;

/// What a row is, in one word.
pub(crate) fn state(row: &Row) -> &'static str {
    match row {
        Row::Absent => "absent",
        Row::Free { .. } => "free",
        Row::Held(_) => "held",
        Row::Unusable(Unusable::Foreign { .. }) => "foreign",
        Row::Unusable(Unusable::Malformed { .. }) => "malformed",
    }
}

/// The row's version, where it has one that can be read.
pub(crate) fn version(row: &Row) -> Option<Version> {
    match row {
        Row::Free { version, .. } => Some(Version::Counter(*version)),
        Row::Held(held) => Some(held.version),
        Row::Absent | Row::Unusable(_) => None,
    }
}

/// What people are told about the holder, where the row says something.
pub(crate) fn holder(row: &Row) -> Option<&HolderInfo> {
    match row {
        Row::Held(held) => held.holder.as_deref(),
        _ => None,
    }
}

/// Whether the row is nobody's any more, and only kept until the minimum is over that `hold_at_least` asked for.
pub(crate) fn is_parked(held: &HeldRow) -> bool {
    held.holder.as_ref().is_some_and(|holder| holder.parked)
}

/// How long ago the lease was acquired: the holder's clock against DynamoDB's `Date`, so an estimate. No decision rests on
/// it.
pub(crate) fn age(row: &Row, date: Option<u64>) -> Option<Duration> {
    let acquired_at = holder(row)?.acquired_at?;
    Some(Duration::from_millis(date?.saturating_mul(1_000).saturating_sub(acquired_at)))
}

/// The row as every command's JSON has it. Versions are strings: they do not fit into what many readers take numbers for.
pub(crate) fn json(found: &FoundRow, date: Option<u64>) -> Value {
    let row = &found.row;
    let (holder, held) = (holder(row), if let Row::Held(held) = row { Some(held) } else { None });
    let problem = if let Row::Unusable(unusable) = row { Some(unusable.to_string()) } else { None };
    json!({
        "key": found.key,
        "state": state(row),
        "version": version(row).map(|version| version.to_string()),
        "owner": held.map(|held| held.owner.to_string()),
        "lease_ms": held.map(|held| millis(held.lease)),
        "expires_at_ms": held.and_then(|held| held.expires_at).map(|at| at.as_millis()),
        "function": holder.map(|holder| &holder.function),
        "function_version": holder.map(|holder| &holder.version),
        "request_id": holder.map(|holder| &holder.request_id),
        "template": holder.map(|holder| &holder.template),
        "note": holder.map(|holder| &holder.note).filter(|note| !note.is_empty()),
        "parked": holder.map(|holder| holder.parked),
        "acquired_at_ms": holder.and_then(|holder| holder.acquired_at),
        "age_ms": age(row, date).map(millis),
        "problem": problem,
    })
}

/// The row's attributes as DynamoDB writes them, each short and on one line: for rows that mean nothing.
pub(crate) fn attributes(item: &HashMap<String, AttributeValue>) -> Vec<(String, String)> {
    let mut told: Vec<_> = item.iter().map(|(name, value)| (cut(name, 64), described(value))).collect();
    told.sort();
    told
}

fn described(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => format!("S  {}", cut(text, 120)),
        AttributeValue::N(number) => format!("N  {}", cut(number, 120)),
        AttributeValue::Bool(yes) => format!("BOOL  {yes}"),
        AttributeValue::Null(_) => "NULL".to_owned(),
        AttributeValue::B(bytes) => format!("B  {} bytes", bytes.as_ref().len()),
        AttributeValue::M(map) => format!("M  {} attributes", map.len()),
        AttributeValue::L(list) => format!("L  {} elements", list.len()),
        _ => "a set".to_owned(),
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
