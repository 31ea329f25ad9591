//! Every state that a row may be found in, and every request that may meet it.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::Wall;
use leasehold::protocol::{Format, HeldRow, Hints, HolderInfo, Request, Row, Unusable, Version};

use crate::support::embedded_dynamodb::Item;
use crate::support::owner;

pub(crate) const KEY: &str = "orders:1";

pub(crate) const AT: u64 = 1_700_000_000_000;

pub(crate) const EXPIRY: u64 = AT + 30_000;

pub(crate) const TTL: u64 = AT / 1_000 + 604_800;

pub(crate) const LEASE: Duration = Duration::from_secs(20);

pub(crate) const ME: u128 = 1;

pub(crate) const OTHER: u128 = 2;

pub(crate) const UNKNOWN: u128 = 3;

pub(crate) const NEW: u128 = 4;

pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(crate) fn with(mut item: Item, attributes: &[(&str, AttributeValue)]) -> Item {
    item.extend(attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    item
}

/// A row of the format with version 7 that somebody also left a note on.
pub(crate) fn free() -> Item {
    let attributes =
        [("key", s(KEY)), ("format", s("leasehold/1")), ("version", n(7)), ("lease_ms", n(30_000)), ("note", s("hi"))];
    with(Item::new(), &attributes)
}

pub(crate) fn held_by(owner_number: u128) -> Item {
    let holder = AttributeValue::M(HashMap::from([("function".to_owned(), s("earlier"))]));
    with(free(), &[("owner", s(owner(owner_number).to_string())), ("holder", holder)])
}

pub(crate) fn held_row(owner_number: u128, version: u64, expires_at: Option<u64>) -> Row {
    Row::Held(HeldRow {
        owner: owner(owner_number),
        version: Version::Counter(version),
        lease: Duration::from_secs(30),
        expires_at: expires_at.map(Wall::from_millis),
        holder: Some(Box::new(HolderInfo { function: "earlier".into(), ..HolderInfo::default() })),
        hints: Hints::default(),
    })
}

pub(crate) fn malformed(attribute: &str, found: &str) -> Row {
    Row::Unusable(Unusable::Malformed { attribute: attribute.into(), found: found.into() })
}

pub(crate) fn foreign(format: Option<&str>) -> Row {
    Row::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format: format.map(str::to_owned) })
}

/// The same row with hints for those who wait, and what they say.
pub(crate) fn hinted(row: Row) -> Row {
    let hints =
        Hints { tickets: Some(20), served: Some(11), hold: Some(Duration::from_millis(15)), ..Hints::default() };
    with_hints(row, hints)
}

/// The same row where tickets can't be counted.
pub(crate) fn oddly_hinted(row: Row) -> Row {
    with_hints(row, Hints { uncountable: true, ..Hints::default() })
}

pub(crate) fn with_hints(row: Row, hints: Hints) -> Row {
    match row {
        Row::Free { version, .. } => Row::Free { version, hints },
        Row::Held(held) => Row::Held(HeldRow { hints, ..held }),
        row => row,
    }
}

/// Every state that a row may be found in, and how it is to be read.
pub(crate) fn states() -> Vec<(&'static str, Option<Item>, Row)> {
    let without = |mut item: Item, attribute: &str| {
        item.remove(attribute);
        item
    };
    let found_string = "is a string, not a number";
    let found_negative = "is -3, not an integer from 0 to 2^63 - 1";
    let expiry = ("expires_at", n(EXPIRY - 1));
    let good = [("tickets", n(20)), ("served", n(11)), ("hold_ms", n(15))];
    let odd = [("tickets", s("many")), ("served", n("-1.5")), ("hold_ms", n("9000000000000000000000000000000"))];
    let held_with_expiry = |by| with(held_by(by), std::slice::from_ref(&expiry));
    vec![
        ("absent", None, Row::Absent),
        ("free", Some(with(free(), &[("ttl", n(5))])), Row::Free { version: 7, hints: Hints::default() }),
        ("free without ttl", Some(free()), Row::Free { version: 7, hints: Hints::default() }),
        (
            "free with a left expiry",
            Some(with(free(), std::slice::from_ref(&expiry))),
            Row::Free { version: 7, hints: Hints::default() },
        ),
        ("mine", Some(held_by(ME)), held_row(ME, 7, None)),
        ("mine with expiry", Some(held_with_expiry(ME)), held_row(ME, 7, Some(EXPIRY - 1))),
        ("mine, later version", Some(with(held_by(ME), &[("version", n(8))])), held_row(ME, 8, None)),
        ("mine with a stray ttl", Some(with(held_by(ME), &[("ttl", n(5))])), held_row(ME, 7, None)),
        ("another's", Some(held_by(OTHER)), held_row(OTHER, 7, None)),
        ("another's with expiry", Some(held_with_expiry(OTHER)), held_row(OTHER, 7, Some(EXPIRY - 1))),
        ("another's, renewed", Some(with(held_by(OTHER), &[("version", n(8))])), held_row(OTHER, 8, None)),
        ("an unknown attempt's", Some(held_by(UNKNOWN)), held_row(UNKNOWN, 7, None)),
        ("free, with hints", Some(with(free(), &good)), hinted(Row::Free { version: 7, hints: Hints::default() })),
        ("mine, with hints", Some(with(held_by(ME), &good)), hinted(held_row(ME, 7, None))),
        ("another's, with hints", Some(with(held_by(OTHER), &good)), hinted(held_row(OTHER, 7, None))),
        ("an unknown attempt's, with hints", Some(with(held_by(UNKNOWN), &good)), hinted(held_row(UNKNOWN, 7, None))),
        (
            "free, with odd hints",
            Some(with(free(), &odd)),
            oddly_hinted(Row::Free { version: 7, hints: Hints::default() }),
        ),
        ("mine, with odd hints", Some(with(held_by(ME), &odd)), oddly_hinted(held_row(ME, 7, None))),
        ("another's, with odd hints", Some(with(held_by(OTHER), &odd)), oddly_hinted(held_row(OTHER, 7, None))),
        ("without format", Some(without(free(), "format")), foreign(None)),
        ("without format, mine", Some(without(held_by(ME), "format")), foreign(None)),
        ("without format, another's", Some(without(held_by(OTHER), "format")), foreign(None)),
        ("format 2", Some(with(free(), &[("format", s("leasehold/2"))])), foreign(Some("leasehold/2"))),
        ("format 2, mine", Some(with(held_by(ME), &[("format", s("leasehold/2"))])), foreign(Some("leasehold/2"))),
        ("a text for version", Some(with(free(), &[("version", s("7"))])), malformed("version", found_string)),
        (
            "a text for version, mine",
            Some(with(held_by(ME), &[("version", s("7"))])),
            malformed("version", found_string),
        ),
        ("no version", Some(without(free(), "version")), malformed("version", "is missing")),
        ("a negative version", Some(with(free(), &[("version", n(-3))])), malformed("version", found_negative)),
    ]
}

pub(crate) fn requests() -> Vec<(&'static str, Request)> {
    let (at, lease) = (Wall::from_millis(AT), LEASE);
    let expires_at = Some(Wall::from_millis(EXPIRY));
    let (me, other, unknown, new) = (owner(ME), owner(OTHER), owner(UNKNOWN), owner(NEW));
    let takeover = |expires_at| Request::TakeOver {
        owner: new,
        version: None,
        at,
        lease,
        expires_at,
        seen_owner: other,
        seen_version: Version::Counter(7),
        served: Some(12),
    };
    let renew = |expires_at| Request::Renew {
        owner: me,
        version: Version::Counter(7),
        new_version: Version::Counter(8),
        expires_at,
    };
    let park = |expires_at| Request::Park {
        owner: me,
        version: Version::Counter(7),
        parked: new,
        new_version: Version::Counter(8),
        at,
        lease,
        expires_at,
    };
    vec![
        (
            "acquire",
            Request::Acquire { owner: new, version: None, at, lease, expires_at, unknown: vec![], served: None },
        ),
        (
            "acquire again",
            Request::Acquire {
                owner: new,
                version: None,
                at,
                lease,
                expires_at: None,
                unknown: vec![owner(9), unknown],
                served: Some(12),
            },
        ),
        ("take over", takeover(expires_at)),
        ("take over without server time", takeover(None)),
        ("renew", renew(expires_at)),
        ("renew without server time", renew(None)),
        (
            "raise",
            Request::Renew { owner: me, version: Version::Counter(7), new_version: Version::Counter(AT), expires_at },
        ),
        ("park", park(expires_at)),
        ("park without server time", park(None)),
        ("release", Request::Release { owners: vec![me], ttl: Some(TTL), hold: Some(Duration::from_millis(35)) }),
        ("release unknown attempts", Request::Release { owners: vec![me, unknown], ttl: None, hold: None }),
        ("release nothing", Request::Release { owners: vec![], ttl: Some(TTL), hold: None }),
        ("ticket", Request::Ticket),
        ("read", Request::Read),
    ]
}
