//! Reads a row of the format `leasehold/1`, whatever stands in it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{FORMAT, HIGHEST_FREE, HIGHEST_HELD, VERSION_END};
use crate::clock::Wall;
use crate::protocol::{Format, HeldRow, HolderInfo, OwnerId, Row, Unusable, Version};
use crate::store::row_format::Item;
use crate::store::text::printable;

/// A lease this short or this long was not written by any client of this format.
pub(in crate::store) const LEASE_MS: std::ops::RangeInclusive<u64> = 100..=86_400_000;

/// A row is shown in error messages and in the session's lines, which have a limit: what people are told is cut to this
/// many bytes, and what stands where something else was expected is told much shorter.
const MAX_HOLDER_TEXT: usize = 1_024;
const MAX_FOUND: usize = 64;

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

/// A row's version.
///
/// # Errors
///
/// What was found instead, as the end of a sentence about it.
pub(super) fn version(value: &AttributeValue) -> Result<u64, String> {
    natural(value)
}

fn foreign(format: Option<String>) -> Row {
    Row::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format })
}

fn ours(item: &Item) -> Result<Row, Unusable> {
    let version = required(item, "version", version)?;
    let highest = if item.contains_key("owner") { HIGHEST_HELD } else { HIGHEST_FREE };
    if version > highest {
        // What no acquisition counts on from is not free, and not to be waited for: it would be asked for without end.
        return Err(malformed("version", format!("is {version}, too high for the next lease to count on from")));
    }
    let Some(owner) = item.get("owner") else {
        return Ok(Row::Free { version });
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
    }))
}

pub(in crate::store) fn required<T>(
    item: &Item,
    attribute: &str,
    read: fn(&AttributeValue) -> Result<T, String>,
) -> Result<T, Unusable> {
    let value = item.get(attribute).ok_or_else(|| "is missing".to_owned());
    value.and_then(read).map_err(|found| malformed(attribute, found))
}

fn malformed(attribute: &str, found: String) -> Unusable {
    Unusable::Malformed { attribute: attribute.to_owned(), found }
}

/// A non-negative integer below 2^63, in digits and nothing else.
fn natural(value: &AttributeValue) -> Result<u64, String> {
    let AttributeValue::N(text) = value else {
        return Err(format!("is {}, not a number", kind(value)));
    };
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if plain && number < VERSION_END => Ok(number),
        _ => Err(format!("is {}, not an integer from 0 to 2^63 - 1", printable(text, MAX_FOUND))),
    }
}

pub(in crate::store) fn lease(value: &AttributeValue) -> Result<Duration, String> {
    match natural(value)? {
        ms if LEASE_MS.contains(&ms) => Ok(Duration::from_millis(ms)),
        ms => Err(format!("is {ms}, not from {} to {}", LEASE_MS.start(), LEASE_MS.end())),
    }
}

/// Only the spelling that this format writes is an owner: a condition compares the text, so that another spelling of the
/// same UUID would be seen but never matched. The text itself is not told: it may be another program's secret.
pub(in crate::store) fn owner_id(value: &AttributeValue) -> Result<OwnerId, String> {
    let AttributeValue::S(text) = value else {
        return Err(format!("is {}, not a string", kind(value)));
    };
    OwnerId::parse(text)
        .filter(|owner| owner.to_string() == *text)
        .ok_or_else(|| format!("is a string of {} bytes that is not a UUID in lower case with hyphens", text.len()))
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
        acquired_at: map.get("acquired_at").and_then(|value| natural(value).ok()),
    })
}

pub(in crate::store) fn kind(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::S(_) => "a string",
        AttributeValue::N(_) => "a number",
        AttributeValue::B(_) => "binary",
        AttributeValue::Bool(_) => "a boolean",
        AttributeValue::Null(_) => "null",
        AttributeValue::L(_) => "a list",
        AttributeValue::M(_) => "a map",
        AttributeValue::Ss(_) | AttributeValue::Ns(_) | AttributeValue::Bs(_) => "a set",
        _ => "of an unknown type",
    }
}

#[cfg(test)]
mod tests;
