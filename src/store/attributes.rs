//! Reads a row's attributes one by one: what all row formats have in common.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::row_format::Item;
use super::text::printable;
use crate::protocol::{OwnerId, Unusable};

/// A lease this short or this long was not written by any client of this format.
pub(super) const LEASE_MS: std::ops::RangeInclusive<u64> = 100..=86_400_000;

/// What stands where something else was expected is told in this many bytes: error messages and the session's lines have a
/// limit.
pub(super) const MAX_FOUND: usize = 64;

/// No number that a row counts by is as high as this, so that every one is an exact integer wherever it is read.
pub(super) const NUMBERS_END: u64 = 1 << 63;

/// The attribute as `read` understands it.
///
/// # Errors
///
/// The row is malformed.
pub(super) fn required<T>(
    item: &Item,
    attribute: &str,
    read: fn(&AttributeValue) -> Result<T, String>,
) -> Result<T, Unusable> {
    let value = item.get(attribute).ok_or_else(|| "is missing".to_owned());
    value.and_then(read).map_err(|found| malformed(attribute, found))
}

/// The attribute is not what it has to be.
pub(super) fn malformed(attribute: &str, found: String) -> Unusable {
    Unusable::Malformed { attribute: attribute.to_owned(), found }
}

/// A non-negative integer below 2^63, in digits and nothing else.
///
/// # Errors
///
/// What was found instead, as the end of a sentence about it.
pub(super) fn natural(value: &AttributeValue) -> Result<u64, String> {
    let AttributeValue::N(text) = value else {
        return Err(format!("is {}, not a number", kind(value)));
    };
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if plain && number < NUMBERS_END => Ok(number),
        _ => Err(format!("is {}, not an integer from 0 to 2^63 - 1", printable(text, MAX_FOUND))),
    }
}

/// How long a lease lasts, in milliseconds.
pub(super) fn lease(value: &AttributeValue) -> Result<Duration, String> {
    match natural(value)? {
        ms if LEASE_MS.contains(&ms) => Ok(Duration::from_millis(ms)),
        ms => Err(format!("is {ms}, not from {} to {}", LEASE_MS.start(), LEASE_MS.end())),
    }
}

/// Only the spelling that this format writes is an owner: a condition compares the text, so that another spelling of the
/// same UUID would be seen but never matched. The text itself is not told: it may be another program's secret.
pub(super) fn owner_id(value: &AttributeValue) -> Result<OwnerId, String> {
    let AttributeValue::S(text) = value else {
        return Err(format!("is {}, not a string", kind(value)));
    };
    OwnerId::parse(text)
        .filter(|owner| owner.to_string() == *text)
        .ok_or_else(|| format!("is a string of {} bytes that is not a UUID in lower case with hyphens", text.len()))
}

/// What a value is, for people.
pub(super) fn kind(value: &AttributeValue) -> &'static str {
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
