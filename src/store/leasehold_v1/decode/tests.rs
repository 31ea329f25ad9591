//! Whatever stands in a row, reading it gives one of the rows there are, and what is wrong is named.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use proptest::prelude::*;

use super::*;
use crate::protocol::Hints;
use crate::protocol::OwnerId;
use crate::store::attributes::{LEASE_MS, NUMBERS_END};

const OWNER: &str = "00000000-0000-0000-0000-000000000001";

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

fn held() -> Item {
    Item::from([
        ("key".to_owned(), s("orders:1")),
        ("format".to_owned(), s(FORMAT)),
        ("version".to_owned(), n("7")),
        ("lease_ms".to_owned(), n("30000")),
        ("owner".to_owned(), s(OWNER)),
    ])
}

fn held_with(attribute: &str, value: AttributeValue) -> Row {
    let mut item = held();
    item.insert(attribute.to_owned(), value);
    row(Some(&item))
}

#[track_caller]
fn assert_malformed(row: Row, attribute: &str, found: &str) {
    let Row::Unusable(Unusable::Malformed { attribute: named, found: told }) = row else {
        panic!("{row:?}");
    };
    assert_eq!((named.as_str(), told.as_str()), (attribute, found));
}

#[test]
fn an_absent_item_is_an_absent_row() {
    assert_eq!(row(None), Row::Absent);
    assert_eq!(row(Some(&Item::new())), Row::Absent);
}

#[test]
fn a_row_without_an_owner_is_free_whatever_else_is_left_on_it() {
    let mut item = held();
    item.remove("owner");
    item.insert("expires_at".to_owned(), s("junk"));
    item.insert("lease_ms".to_owned(), s("junk"));
    assert_eq!(row(Some(&item)), Row::Free { version: 7, hints: Hints::default() });
}

#[test]
fn a_held_row_is_read_in_full() {
    let mut item = held();
    item.insert("expires_at".to_owned(), n("1700000000000"));
    let holder = [("function", s("f")), ("version", s("$LATEST")), ("request_id", s("r")), ("template", s("t"))];
    let holder = holder.into_iter().map(|(name, value)| (name.to_owned(), value));
    let holder = holder.chain([("acquired_at".to_owned(), n("5"))]).collect();
    item.insert("holder".to_owned(), AttributeValue::M(holder));
    let expected = HeldRow {
        owner: OwnerId::from_u128(1),
        version: Version::Counter(7),
        lease: Duration::from_secs(30),
        expires_at: Some(Wall::from_millis(1_700_000_000_000)),
        holder: Some(Box::new(HolderInfo {
            note: String::new(),
            function: "f".into(),
            version: "$LATEST".into(),
            request_id: "r".into(),
            template: "t".into(),
            acquired_at: Some(5),
            parked: false,
        })),
        hints: Hints::default(),
    };
    assert_eq!(row(Some(&item)), Row::Held(expected));
}

#[test]
fn hints_are_read_where_they_make_sense_and_spoil_nothing_where_they_do_not() {
    let hints_in = |pairs: &[(&str, AttributeValue)]| {
        let mut item = held();
        item.extend(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        match row(Some(&item)) {
            Row::Held(held) => held.hints,
            row => panic!("{row:?}"),
        }
    };
    let good =
        Hints { tickets: Some(9), served: Some(0), hold: Some(Duration::from_millis(86_400_000)), ..Hints::default() };
    assert_eq!(hints_in(&[("tickets", n("9")), ("served", n("0")), ("hold_ms", n("86400000"))]), good);
    for odd in [s("9"), n("-1"), n("1.5"), n("1E30"), n("9223372036854775808"), AttributeValue::Null(true)] {
        let all = ["tickets", "served", "hold_ms"].map(|name| (name, odd.clone()));
        assert_eq!(hints_in(&all), Hints { uncountable: true, ..Hints::default() }, "{odd:?}");
    }
    assert_eq!(hints_in(&[("hold_ms", n("86400001"))]), Hints::default(), "no hold takes longer than a day");
    assert_eq!(hints_in(&[("served", n("9"))]), Hints::default(), "no ticket was taken");
    let ahead = hints_in(&[("tickets", n("9")), ("served", n("10"))]);
    assert_eq!(ahead, Hints { tickets: Some(9), ..Hints::default() }, "the tenth was not taken");
    let last = hints_in(&[("tickets", n("9")), ("served", n("9"))]);
    assert_eq!((last.tickets, last.served), (Some(9), Some(9)));
}

#[test]
fn a_row_of_another_format_is_foreign_and_its_format_is_told_in_short() {
    let with_format = |format: Option<AttributeValue>| {
        let mut item = held();
        item.remove("format");
        item.extend(format.map(|format| ("format".to_owned(), format)));
        row(Some(&item))
    };
    assert_eq!(with_format(None), foreign(None));
    assert_eq!(with_format(Some(s("leasehold/2"))), foreign(Some("leasehold/2".into())));
    assert_eq!(with_format(Some(n("1"))), foreign(Some("(a number)".into())));
    let Row::Unusable(Unusable::Foreign { format: Some(told), .. }) = with_format(Some(s(&"x".repeat(5_000)))) else {
        panic!("not foreign");
    };
    assert!(told.len() <= MAX_FOUND);
}

#[test]
fn a_version_is_a_plain_integer_from_0_to_below_2_to_the_63() {
    assert!(matches!(held_with("version", n("0")), Row::Held(HeldRow { version: Version::Counter(0), .. })));
    assert!(matches!(held_with("version", n(&HIGHEST_HELD.to_string())), Row::Held(_)));
    for high in [HIGHEST_HELD + 1, NUMBERS_END - 1] {
        let found = format!("is {high}, too high for the next lease to count on from");
        assert_malformed(held_with("version", n(&high.to_string())), "version", &found);
    }
    for odd in ["-1", "1.5", "1E3", "+1", " 1", "", "9223372036854775808", "99999999999999999999999999"] {
        let found = format!("is {odd}, not an integer from 0 to 2^63 - 1");
        assert_malformed(held_with("version", n(odd)), "version", &found);
    }
    assert_malformed(held_with("version", s("7")), "version", "is a string, not a number");
    let mut item = held();
    item.remove("version");
    assert_malformed(row(Some(&item)), "version", "is missing");
}

#[test]
fn an_owner_is_a_uuid_as_this_format_spells_it() {
    assert_malformed(held_with("owner", n("1")), "owner", "is a number, not a string");
    let secret = "hunter2";
    let found = "is a string of 7 bytes that is not a UUID in lower case with hyphens";
    assert_malformed(held_with("owner", s(secret)), "owner", found);
    for other_spelling in ["ABCDEF00-0000-0000-0000-000000000001", "00000000000000000000000000000001"] {
        assert!(matches!(held_with("owner", s(other_spelling)), Row::Unusable(_)), "{other_spelling}");
    }
}

#[test]
fn a_held_rows_lease_is_one_that_a_client_can_have_written() {
    for good in ["100", "500", "86400000"] {
        assert!(matches!(held_with("lease_ms", n(good)), Row::Held(_)), "{good}");
    }
    for odd in ["0", "99", "86400001"] {
        assert_malformed(held_with("lease_ms", n(odd)), "lease_ms", &format!("is {odd}, not from 100 to 86400000"));
    }
    assert_malformed(held_with("lease_ms", AttributeValue::Bool(true)), "lease_ms", "is a boolean, not a number");
}

#[test]
fn a_held_rows_expiry_is_an_integer() {
    let found = "is -5, not an integer from 0 to 2^63 - 1";
    assert_malformed(held_with("expires_at", n("-5")), "expires_at", found);
    assert_malformed(held_with("expires_at", AttributeValue::Null(true)), "expires_at", "is null, not a number");
}

#[test]
fn a_broken_holder_spoils_nothing() {
    for broken in [s("me"), n("1"), AttributeValue::Null(true), AttributeValue::L(vec![])] {
        assert!(matches!(held_with("holder", broken), Row::Held(HeldRow { holder: None, .. })));
    }
    let odd = [("function", n("1")), ("acquired_at", s("yesterday")), ("request_id", s("r"))];
    let odd = odd.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let Row::Held(row) = held_with("holder", AttributeValue::M(odd)) else { panic!("not held") };
    assert_eq!(*row.holder.unwrap(), HolderInfo { request_id: "r".into(), ..HolderInfo::default() });
}

#[test]
fn what_people_are_told_is_cut_to_what_a_session_line_can_carry() {
    let long = AttributeValue::M(HashMap::from([("template".to_owned(), s(&"ä".repeat(100_000)))]));
    let Row::Held(row) = held_with("holder", long) else { panic!("not held") };
    assert!(row.holder.unwrap().template.len() <= MAX_HOLDER_TEXT);
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(FORMAT.to_owned()),
        Just(OWNER.to_owned()),
        "[-+0-9.eE]{0,24}",
        any::<u64>().prop_map(|number| number.to_string()),
        ".{0,40}",
    ]
}

fn any_value() -> impl Strategy<Value = AttributeValue> {
    let leaf = prop_oneof![
        4 => any_text().prop_map(AttributeValue::S),
        4 => any_text().prop_map(AttributeValue::N),
        1 => any::<bool>().prop_map(AttributeValue::Bool),
        1 => Just(AttributeValue::Null(true)),
        1 => any::<Vec<u8>>().prop_map(|bytes| AttributeValue::B(Blob::new(bytes))),
        1 => prop::collection::vec(any_text(), 0..3).prop_map(AttributeValue::Ns),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(AttributeValue::L),
            prop::collection::hash_map(any_name(), inner, 0..5).prop_map(AttributeValue::M),
        ]
    })
}

fn any_name() -> impl Strategy<Value = String> {
    let known = ["format", "version", "lease_ms", "owner", "expires_at", "holder", "ttl", "key", "function"];
    prop_oneof![9 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,5}"]
}

proptest! {
    /// Most rows are nearly right, so that each attribute's check is reached.
    #[test]
    fn reading_any_row_gives_a_row_and_short_words(
        odd in prop::collection::hash_map(any_name(), any_value(), 0..8),
        nearly_right in prop::bool::weighted(0.8),
    ) {
        let mut item = if nearly_right { held() } else { Item::new() };
        item.extend(odd);
        let row = row(Some(&item));
        match &row {
            Row::Absent => prop_assert!(item.is_empty()),
            Row::Free { version, .. } => {
                prop_assert!(*version <= HIGHEST_FREE);
                prop_assert!(!item.contains_key("owner"));
            }
            Row::Held(held) => {
                prop_assert!(held.version <= Version::Counter(HIGHEST_HELD));
                prop_assert_eq!(item.get("owner"), Some(&s(&held.owner.to_string())));
                prop_assert!(LEASE_MS.contains(&u64::try_from(held.lease.as_millis()).unwrap()));
            }
            Row::Unusable(why) => prop_assert!(why.to_string().len() < 400, "{why}"),
        }
    }
}
