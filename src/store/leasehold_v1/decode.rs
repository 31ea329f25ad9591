//! Reads a row of the format `leasehold/1`, whatever stands in it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{FORMAT, HIGHEST_FREE, HIGHEST_HELD};
use crate::clock::Wall;
use crate::protocol::{Format, HeldRow, Hints, HolderInfo, Row, Unusable, Version};
use crate::store::attributes::{MAX_FOUND, kind, lease, malformed, natural, owner_id, required};
use crate::store::row_format::Item;
use crate::store::text::printable;

/// A row is shown in error messages and in the session's lines, which have a limit: what people are told is cut to this
/// many bytes.
const MAX_HOLDER_TEXT: usize = 1_024;

/// What a row means.
pub(super) fn row(item: Option<&Item>) -> Row {
    let Some(item) = item.filter(|item| !item.is_empty()) else {
        return Row::Absent;
    };
    match item.get("format") {
        Some(AttributeValue::S(format)) if format == FORMAT => ours(item).unwrap_or_else(Row::Unusable),
        Some(AttributeValue::S(format)) => foreign(Some(printable(format, MAX_FOUND))),
        Some(other) => foreign(Some(format!("({})", kind(other)))),
        None => foreign(None),
    }
}

fn foreign(format: Option<String>) -> Row {
    Row::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format })
}

fn ours(item: &Item) -> Result<Row, Unusable> {
    let version = required(item, "version", natural)?;
    let highest = if item.contains_key("owner") { HIGHEST_HELD } else { HIGHEST_FREE };
    if version > highest {
        // What no acquisition counts on from is not free, and not to be waited for: it would be asked for without end.
        return Err(malformed("version", format!("is {version}, too high for the next lease to count on from")));
    }
    let Some(owner) = item.get("owner") else {
        return Ok(Row::Free { version, hints: hints(item) });
    };
    Ok(Row::Held(HeldRow {
        owner: owner_id(owner).map_err(|found| malformed("owner", found))?,
        version: Version::Counter(version),
        lease: required(item, "lease_ms", lease)?,
        expires_at: item
            .contains_key("expires_at")
            .then(|| required(item, "expires_at", natural))
            .transpose()?
            .map(Wall::from_millis),
        holder: item.get("holder").and_then(holder).map(Box::new),
        hints: hints(item),
    }))
}

/// Lenient: what is no hint is none, and a row must not become unusable by it.
pub(super) fn hints(item: &Item) -> Hints {
    let read = |name: &str| item.get(name).and_then(|value| natural(value).ok());
    let hold = read("hold_ms").map(Duration::from_millis).filter(|hold| *hold <= Hints::LONGEST_HOLD);
    let tickets = read("tickets");
    // Nobody was served with a ticket that was not taken yet. Believed, it would tell everybody that they were overtaken, and
    // no ticket would ever come up to it.
    let served = read("served").filter(|served| tickets.is_some_and(|tickets| *served <= tickets));
    let uncountable = tickets.is_none() && item.contains_key("tickets");
    Hints { tickets, uncountable, served, hold }
}

/// Lenient: it is for people only, and a row must not become unusable by it.
fn holder(value: &AttributeValue) -> Option<HolderInfo> {
    let map = value.as_m().ok()?;
    let text = |name: &str| {
        let text = map.get(name).and_then(|value| value.as_s().ok());
        text.map_or_else(String::new, |text| printable(text, MAX_HOLDER_TEXT))
    };
    Some(HolderInfo {
        function: text("function"),
        version: text("version"),
        request_id: text("request_id"),
        template: text("template"),
        note: text("note"),
        acquired_at: map.get("acquired_at").and_then(|value| natural(value).ok()),
        parked: matches!(map.get("parked"), Some(AttributeValue::Bool(true))),
    })
}

#[cfg(test)]
mod tests;
