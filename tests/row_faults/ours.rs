//! Rows of our format in which an attribute is missing, of another type, or out of range.
//!
//! What the protocol rests on (`format`, `version`, and of a held row `owner`, `lease_ms` and `expires_at`) makes the row
//! malformed. What it does not (`holder`, `ttl`, and on a free row everything but `format` and `version`) never stands in
//! a lock's way, and is put right by the next write.

use aws_sdk_dynamodb::types::AttributeValue::{self, L, N};

use crate::items::{
    FAR, Met, OTHER, assert_one_line, assert_refused, attempt, free, held, map, n, of_every_type, s, with, without,
};
use crate::support::embedded_dynamodb::Item;

const BY_HAND: &str = "; look at the row and delete it once nobody works on its key";

fn is_number(value: &AttributeValue) -> bool {
    matches!(value, N(_))
}

async fn assert_malformed(row: Item, attribute: &str, found: &str) {
    let says = format!("in table `locks` the row's attribute `{attribute}` {found}");
    let met = attempt(&row).await;
    assert_refused(&format!("{attribute} {found}"), &met, "MalformedRow", &says);
    assert!(met.seen.message.ends_with(BY_HAND), "{}", met.seen.message);
}

/// Somebody else's, as it should be: waited for, not written.
async fn assert_busy(row: Item) {
    let met = attempt(&row).await;
    assert_refused("held", &met, "LeaseBusy", "`orders:A-17` is held by ");
}

/// Taken, and given back as a row in good order.
async fn assert_taken(row: Item) {
    let Met { seen, after, .. } = attempt(&row).await;
    // A version far below today's was seeded by a wrong clock, or by hand: it is raised before the grant.
    let low = row["version"].as_n().unwrap().len() < 13;
    assert_eq!((seen.error.as_str(), seen.requests), ("none", 2 + usize::from(low)), "{row:?}: {seen:?}");
    let after = after.unwrap();
    for gone in ["owner", "holder", "expires_at"] {
        assert!(!after.contains_key(gone), "{row:?} left {after:?}");
    }
    for number in ["version", "lease_ms", "ttl"] {
        assert!(is_number(&after[number]), "{row:?} left {after:?}");
    }
}

#[tokio::test]
async fn a_held_row_with_an_attribute_of_another_type_is_malformed() {
    for (attribute, good) in [("version", "7"), ("lease_ms", "30000"), ("expires_at", FAR)] {
        for value in of_every_type(good) {
            let row = with(held(), attribute, value.clone());
            match is_number(&value) {
                true => assert_busy(row).await,
                false => assert_malformed(row, attribute, "is ").await,
            }
        }
    }
    for value in of_every_type("1") {
        assert_malformed(with(held(), "owner", value), "owner", "is ").await;
    }
}

#[tokio::test]
async fn a_held_row_without_an_attribute_that_it_needs_is_malformed() {
    assert_malformed(without(held(), "version"), "version", "is missing").await;
    assert_malformed(without(held(), "lease_ms"), "lease_ms", "is missing").await;
    for needless in ["expires_at", "holder"] {
        assert_busy(without(held(), needless)).await;
    }
}

#[tokio::test]
async fn what_is_for_people_or_for_the_sweep_never_stands_in_the_way() {
    for value in of_every_type("1") {
        assert_busy(with(held(), "holder", value.clone())).await;
        assert_busy(with(held(), "ttl", value)).await;
    }
    let deep = (0..20).fold(n(1), |inner, _| L(vec![inner]));
    let odd = [
        map(&[("function", n(1)), ("request_id", L(vec![])), ("acquired_at", s("yesterday"))]),
        map(&[("function", s("a\nb\u{1b}[31m")), ("template", s("\u{202e}"))]),
        map(&[("function", s("x".repeat(200_000))), ("request_id", s("é".repeat(50_000)))]),
        map(&[("function", deep)]),
        map(&[("acquired_at", n("1e38"))]),
    ];
    for holder in odd {
        let row = with(held(), "holder", holder);
        let met = attempt(&row).await;
        assert_eq!((met.seen.error.as_str(), met.seen.requests), ("LeaseBusy", 1), "{met:?}");
        assert!(!met.seen.message.chars().any(char::is_control), "{}", met.seen.message);
        assert_eq!(met.after, met.before);
    }
}

#[tokio::test]
async fn a_free_row_is_taken_whatever_else_stands_on_it() {
    assert_taken(free()).await;
    for attribute in ["lease_ms", "expires_at", "holder", "ttl"] {
        for value in of_every_type("-1.5") {
            assert_taken(with(free(), attribute, value)).await;
        }
    }
    for missing in ["lease_ms", "ttl"] {
        assert_taken(without(free(), missing)).await;
    }
    // Held by nobody is free, whatever a hand left behind.
    assert_taken(without(held(), "owner")).await;
}

#[tokio::test]
async fn a_free_row_without_a_version_to_count_on_from_is_malformed() {
    assert_malformed(without(free(), "version"), "version", "is missing").await;
    for value in of_every_type("7").into_iter().filter(|value| !is_number(value)) {
        assert_malformed(with(free(), "version", value), "version", "is ").await;
    }
    for odd in ["-1", "-1.5", "9223372036854775808", "99999999999999999999999999999999999999", "1e125"] {
        assert_malformed(with(free(), "version", n(odd)), "version", "is ").await;
    }
    let found = "is 4611686018427387905, too high for the next lease to count on from";
    assert_malformed(with(free(), "version", n((1_u64 << 62) + 1)), "version", found).await;
}

#[tokio::test]
async fn a_free_row_at_the_highest_version_is_taken_renewed_and_malformed_from_then_on() {
    let highest = 1_u64 << 62;
    let met = attempt(&with(free(), "version", n(highest))).await;
    assert_eq!((met.seen.error.as_str(), met.seen.requests), ("none", 2), "{met:?}");
    let after = met.after.unwrap();
    assert_eq!(after["version"], n(highest + 1));
    assert_malformed(after, "version", "is 4611686018427387905, too high").await;
    assert_taken(with(free(), "version", n(0))).await;
}

#[tokio::test]
async fn a_held_rows_version_has_a_range() {
    let highest = (1_u64 << 62) + (1 << 61);
    for good in [0, highest] {
        assert_busy(with(held(), "version", n(good))).await;
    }
    let odd = ["-1", "1.5", "0.1", "9223372036854775808", "99999999999999999999999999999999999999", "1e125", "1e-130"];
    for odd in odd {
        assert_malformed(with(held(), "version", n(odd)), "version", "is ").await;
    }
    assert_malformed(with(held(), "version", n(highest + 1)), "version", "is 6917529027641081857, too high").await;
}

#[tokio::test]
async fn a_held_rows_lease_has_a_range_for_reading() {
    for good in ["100", "86400000"] {
        assert_busy(with(held(), "lease_ms", n(good))).await;
    }
    for odd in ["0", "99", "86400001"] {
        let found = format!("is {odd}, not from 100 to 86400000");
        assert_malformed(with(held(), "lease_ms", n(odd)), "lease_ms", &found).await;
    }
    for odd in ["-30000", "100.5", "1e30", "99999999999999999999999999999999999999"] {
        assert_malformed(with(held(), "lease_ms", n(odd)), "lease_ms", "is ").await;
    }
}

#[tokio::test]
async fn a_held_rows_owner_is_a_uuid_in_one_spelling() {
    let odd = ["", "me", "nobody", "00000000000040008000000000000001", "{00000000-0000-4000-8000-000000000001}"];
    let upper = "ABCDEF00-0000-4000-8000-000000000001";
    for owner in odd.into_iter().chain([upper, &format!(" {OTHER}"), &"x".repeat(100_000)]) {
        let found = format!("is a string of {} bytes that is not a UUID in lower case with hyphens", owner.len());
        assert_malformed(with(held(), "owner", s(owner)), "owner", &found).await;
    }
}

#[tokio::test]
async fn a_held_rows_expiry_is_an_epoch_in_whole_milliseconds() {
    assert_busy(with(held(), "expires_at", n(i64::MAX))).await;
    for odd in ["-1", "1.5", "9223372036854775808", "1e125"] {
        assert_malformed(with(held(), "expires_at", n(odd)), "expires_at", "is ").await;
    }
}

#[tokio::test]
async fn the_message_names_key_table_attribute_and_what_was_found_and_says_once_what_to_do() {
    let met = attempt(&with(held(), "lease_ms", n(99))).await;
    assert_one_line(&met.seen.message);
    assert_eq!(
        met.seen.message,
        "no lease or state on `orders:A-17`: in table `locks` the row's attribute `lease_ms` is 99, not from 100 to 86400000; \
         look at the row and delete it once nobody works on its key"
    );
}
