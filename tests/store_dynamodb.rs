//! Every request against a row in every state: what the store answers, and what the row holds afterwards.
//!
//! The expected row comes from a model of the protocol's rules that knows nothing of expressions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::Wall;
use leasehold::protocol::{
    Failure, FailureKind, Format, HeldRow, Hints, HolderInfo, Outcome, OwnerId, Request, Row, Unusable, Version,
};
use leasehold::store::{DynamoDb, Store};
use support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use support::{lock, owner, sdk_config};

const KEY: &str = "orders:1";
const AT: u64 = 1_700_000_000_000;
const EXPIRY: u64 = AT + 30_000;
const TTL: u64 = AT / 1_000 + 604_800;
const LEASE: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(10);

const ME: u128 = 1;
const OTHER: u128 = 2;
const UNKNOWN: u128 = 3;
const NEW: u128 = 4;

fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn with(mut item: Item, attributes: &[(&str, AttributeValue)]) -> Item {
    item.extend(attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    item
}

/// A row of the format with version 7 that somebody also left a note on.
fn free() -> Item {
    let attributes =
        [("key", s(KEY)), ("format", s("leasehold/1")), ("version", n(7)), ("lease_ms", n(30_000)), ("note", s("hi"))];
    with(Item::new(), &attributes)
}

fn held_by(owner_number: u128) -> Item {
    let holder = AttributeValue::M(HashMap::from([("function".to_owned(), s("earlier"))]));
    with(free(), &[("owner", s(owner(owner_number).to_string())), ("holder", holder)])
}

fn held_row(owner_number: u128, version: u64, expires_at: Option<u64>) -> Row {
    Row::Held(HeldRow {
        owner: owner(owner_number),
        version: Version::Counter(version),
        lease: Duration::from_secs(30),
        expires_at: expires_at.map(Wall::from_millis),
        holder: Some(Box::new(HolderInfo { function: "earlier".into(), ..HolderInfo::default() })),
        hints: Hints::default(),
    })
}

fn malformed(attribute: &str, found: &str) -> Row {
    Row::Unusable(Unusable::Malformed { attribute: attribute.into(), found: found.into() })
}

fn foreign(format: Option<&str>) -> Row {
    Row::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format: format.map(str::to_owned) })
}

/// The same row with hints for those who wait, and what they say.
fn hinted(row: Row) -> Row {
    let hints =
        Hints { tickets: Some(20), served: Some(11), hold: Some(Duration::from_millis(15)), ..Hints::default() };
    with_hints(row, hints)
}

/// The same row where tickets can't be counted.
fn oddly_hinted(row: Row) -> Row {
    with_hints(row, Hints { uncountable: true, ..Hints::default() })
}

fn with_hints(row: Row, hints: Hints) -> Row {
    match row {
        Row::Free { version, .. } => Row::Free { version, hints },
        Row::Held(held) => Row::Held(HeldRow { hints, ..held }),
        row => row,
    }
}

/// Every state that a row may be found in, and how it is to be read.
fn states() -> Vec<(&'static str, Option<Item>, Row)> {
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

fn requests() -> Vec<(&'static str, Request)> {
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

fn after(version: Version) -> Version {
    Version::Counter(version.counter().unwrap() + 1)
}

/// What a request does to a row: the row afterwards and the answer's version, or `None` when its condition does not hold.
fn model(request: &Request, row: &Row, item: Option<&Item>) -> Option<(Item, Version)> {
    let owner_on_row = item.and_then(|item| item.get("owner")).and_then(|owner| OwnerId::parse(owner.as_s().unwrap()));
    let set = |item: &mut Item, name: &str, value| drop(item.insert(name.to_owned(), value));
    let lease = |item: &mut Item, expires_at: &Option<Wall>, version: Version| {
        item.remove("ttl");
        item.remove("expires_at");
        item.extend(expires_at.map(|at| ("expires_at".to_owned(), n(at.as_millis()))));
        set(item, "version", n(version.counter().unwrap()));
    };
    let give_to = |owner: &OwnerId, expires_at: &Option<Wall>, version, parked: bool| {
        let mut item = item.cloned().unwrap_or_default();
        let holder = [
            ("function", s("orders")),
            ("version", s("$LATEST")),
            ("request_id", s("5f1c")),
            ("template", s("orders:{id}")),
            ("acquired_at", n(AT)),
        ];
        let parked = parked.then_some(("parked", AttributeValue::Bool(true)));
        let holder = holder.into_iter().chain(parked).map(|(name, value)| (name.to_owned(), value)).collect();
        let fields = [
            ("key", s(KEY)),
            ("format", s("leasehold/1")),
            ("owner", s(owner.to_string())),
            ("lease_ms", n(LEASE.as_millis())),
            ("holder", AttributeValue::M(holder)),
        ];
        fields.into_iter().for_each(|(name, value)| set(&mut item, name, value));
        lease(&mut item, expires_at, version);
        Some((item, version))
    };
    let give = |owner: &OwnerId, expires_at: &Option<Wall>, version| give_to(owner, expires_at, version, false);
    let served = |given: Option<(Item, Version)>, served: &Option<u64>| {
        given.map(|(mut item, version)| {
            item.extend(served.map(|served| ("served".to_owned(), n(served))));
            (item, version)
        })
    };
    match (request, row) {
        (Request::Acquire { owner, expires_at, served: to, .. }, Row::Absent) => {
            served(give(owner, expires_at, Version::Counter(AT + 1)), to)
        }
        (Request::Acquire { owner, expires_at, served: to, .. }, Row::Free { version, .. }) => {
            served(give(owner, expires_at, Version::Counter(version + 1)), to)
        }
        (Request::Acquire { owner, expires_at, unknown, served: to, .. }, Row::Held(held))
            if unknown.contains(&held.owner) =>
        {
            served(give(owner, expires_at, after(held.version)), to)
        }
        (Request::TakeOver { owner, expires_at, seen_owner, seen_version, served: to, .. }, Row::Held(held))
            if (held.owner, held.version) == (*seen_owner, *seen_version) =>
        {
            served(give(owner, expires_at, after(held.version)), to)
        }
        (Request::Renew { owner, version, new_version, expires_at }, Row::Held(held))
            if (held.owner, held.version) == (*owner, *version) =>
        {
            let mut item = item.cloned().unwrap();
            lease(&mut item, expires_at, *new_version);
            Some((item, *new_version))
        }
        (Request::Park { owner, version, parked, new_version, expires_at, .. }, Row::Held(held))
            if (held.owner, held.version) == (*owner, *version) =>
        {
            give_to(parked, expires_at, *new_version, true)
        }
        (Request::Release { owners, ttl, hold }, _) if owner_on_row.is_some_and(|owner| owners.contains(&owner)) => {
            let mut item = item.cloned().unwrap();
            for name in ["owner", "holder", "expires_at"] {
                item.remove(name);
            }
            item.extend(ttl.map(|ttl| ("ttl".to_owned(), n(ttl))));
            item.extend(hold.map(|hold| ("hold_ms".to_owned(), n(hold.as_millis()))));
            Some((item, Version::Counter(0)))
        }
        _ => None,
    }
}

fn hints(row: &Row) -> Hints {
    match row {
        Row::Free { hints, .. } => *hints,
        Row::Held(held) => held.hints,
        Row::Absent | Row::Unusable(_) => Hints::default(),
    }
}

/// What the row that this takes says of those who wait.
fn served(by: &Request, before: Hints) -> Hints {
    let (Request::Acquire { served, .. } | Request::TakeOver { served, .. }) = by else { return before };
    // Nobody can be served with a ticket that was not taken.
    let served = served.or(before.served).filter(|served| before.tickets.is_some_and(|tickets| *served <= tickets));
    Hints { served, ..before }
}

/// A ticket is taken of a held row alone, and changes nothing but their count. What can't be counted on fails it.
fn after_a_ticket(row: &Row, item: Option<Item>) -> (Outcome, Option<Item>) {
    let (Row::Held(held), Some(item)) = (row, &item) else { return (Outcome::Refused { row: row.clone() }, item) };
    if item.get("tickets").is_some_and(|tickets| !tickets.is_n()) {
        let failure = Failure::new(FailureKind::Rejected, "");
        return (Outcome::Failed(failure), Some(item.clone()));
    }
    let tickets = held.hints.tickets.unwrap_or(0) + 1;
    let hints = Hints { tickets: Some(tickets), ..held.hints };
    let row = Row::Held(HeldRow { hints, ..held.clone() });
    (Outcome::Numbered { row }, Some(with(item.clone(), &[("tickets", n(tickets))])))
}

#[tokio::test]
async fn every_request_does_to_a_row_in_every_state_what_the_protocol_says() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    let (mut refused, mut failed) = (0, 0);
    let mut failures = Vec::new();
    for (state, item, row) in states() {
        for (name, request) in requests() {
            dynamodb.delete("locks", KEY).await;
            if let Some(item) = item.clone() {
                dynamodb.put("locks", item).await;
            }
            let answer = store.send(&lock(KEY), request.clone(), TIMEOUT).await;
            let after = dynamodb.only_item("locks").await;
            let (expected, expected_after) = match model(&request, &row, item.as_ref()) {
                _ if request == Request::Read => (Outcome::Read { row: row.clone() }, item.clone()),
                _ if request == Request::Ticket => after_a_ticket(&row, item.clone()),
                Some((after, version)) => {
                    let takes = matches!(request, Request::Acquire { .. } | Request::TakeOver { .. });
                    let hints = if takes { served(&request, hints(&row)) } else { Hints::default() };
                    (Outcome::Written { version, hints }, Some(after))
                }
                None => (Outcome::Refused { row: row.clone() }, item.clone()),
            };
            refused += u64::from(matches!(expected, Outcome::Refused { .. }));
            // What DynamoDB says of a failure is its own affair.
            let same = match (&answer.outcome, &expected) {
                (Outcome::Failed(failure), Outcome::Failed(expected)) => failure.kind == expected.kind,
                (outcome, expected) => outcome == expected,
            };
            failed += u64::from(matches!(expected, Outcome::Failed(_)));
            if !same {
                failures.push(format!("{name} on {state}: {:?}, not {expected:?}", answer.outcome));
            }
            if after != expected_after {
                failures.push(format!("{name} on {state} left {after:?}, not {expected_after:?}"));
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            if !answer.date.is_some_and(|date| (now - 5..=now).contains(&date)) {
                failures.push(format!("{name} on {state}: the date was {:?}", answer.date));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));

    let (usage, each) = (store.usage(), states().len() as u64);
    assert_eq!(
        (usage.acquires, usage.takeovers, usage.renewals, usage.releases, usage.tickets, usage.reads),
        (2 * each, 2 * each, 3 * each, 3 * each, each, each)
    );
    assert_eq!((usage.refused, usage.failed), (refused, failed));
    assert!(usage.write_units >= (11 * each - refused - failed) as f64, "{usage:?}");
    assert!(usage.read_units >= each as f64 / 2.0, "{usage:?}");
}

#[tokio::test]
async fn of_many_acquires_at_once_exactly_one_is_written() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = std::sync::Arc::new(DynamoDb::with_config(sdk_config(dynamodb.url())));
    let attempts = (0..50).map(|number| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move {
            let (owner, at) = (owner(number), Wall::from_millis(AT));
            let request = Request::Acquire {
                owner,
                version: None,
                at,
                lease: LEASE,
                expires_at: None,
                unknown: vec![],
                served: None,
            };
            store.send(&lock(KEY), request, TIMEOUT).await.outcome
        })
    });
    let mut written = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        match attempt.await.unwrap() {
            Outcome::Written { .. } => written += 1,
            Outcome::Refused { row: Row::Held(_) } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(written, 1);
}

/// What a row has of our own, with the longest numbers that it may have for those who wait, stays small: a write of up to
/// 1 KB is one capacity unit.
#[tokio::test]
async fn a_row_with_hints_is_smaller_than_a_write_unit() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    let (high, at) = (n((1_u64 << 63) - 2), Wall::from_millis(AT));
    let row = with(free(), &[("tickets", high.clone()), ("served", high), ("hold_ms", n(86_400_000))]);
    dynamodb.put("locks", row).await;
    let expires_at = Some(Wall::from_millis(EXPIRY));
    let (unknown, served) = (vec![], Some((1 << 63) - 2));
    let acquire = Request::Acquire { owner: owner(ME), version: None, at, lease: LEASE, expires_at, unknown, served };
    assert!(matches!(
        store.send(&lock(KEY), acquire, TIMEOUT).await.outcome,
        Outcome::Written { hints: Hints { hold: Some(_), .. }, .. }
    ));
    let numbered = store.send(&lock(KEY), Request::Ticket, TIMEOUT).await.outcome;
    let tickets = if let Outcome::Numbered { row: Row::Held(held) } = &numbered { held.hints.tickets } else { None };
    assert_eq!(tickets, Some((1 << 63) - 1), "{numbered:?}");
    let too_high = store.send(&lock(KEY), Request::Ticket, TIMEOUT).await.outcome;
    let tickets = if let Outcome::Numbered { row: Row::Held(held) } = &too_high { held.hints.tickets } else { Some(0) };
    assert_eq!(tickets, None, "what is beyond all numbers of a row is no hint, and no error: {too_high:?}");
    let item = dynamodb.only_item("locks").await.unwrap();
    let size: usize = item.iter().map(|(name, value)| name.len() + bytes(value)).sum();
    assert!(size < 600, "{size}: {item:?}");
}

/// About as DynamoDB counts them, or more.
fn bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::M(map) => 3 + map.iter().map(|(name, value)| name.len() + 1 + bytes(value)).sum::<usize>(),
        _ => 21,
    }
}

/// DynamoDB limits a list's operands and an expression's length.
#[tokio::test]
async fn an_acquisition_may_have_any_number_of_unknown_attempts() {
    let dynamodb = EmbeddedDynamoDb::with_locks().await;
    let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
    for count in [99, 100, 101, 350, 1_000] {
        let unknown: Vec<_> = (0..count).map(|number| owner(1_000 + number)).collect();
        for mine in [*unknown.last().unwrap(), unknown[unknown.len() - 90]] {
            dynamodb.put("locks", with(held_by(ME), &[("owner", s(mine.to_string()))])).await;
            let (at, lease, unknown) = (Wall::from_millis(AT), LEASE, unknown.clone());
            let new = owner(NEW);
            let request =
                Request::Acquire { owner: new, version: None, at, lease, expires_at: None, unknown, served: None };
            let answer = store.send(&lock(KEY), request, TIMEOUT).await;
            assert_eq!(answer.outcome, Outcome::written(Version::Counter(8)), "{count}");

            dynamodb.put("locks", with(held_by(ME), &[("owner", s(mine.to_string()))])).await;
            let owners = (0..count).map(|number| owner(1_000 + number)).collect();
            let answer = store.send(&lock(KEY), Request::Release { owners, ttl: Some(TTL), hold: None }, TIMEOUT).await;
            assert_eq!(answer.outcome, Outcome::written(Version::Counter(0)), "{count}");
        }
    }
}
