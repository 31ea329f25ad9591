//! Every request against a row in every state: what the store answers, and what the row holds afterwards.
//!
//! The expected row comes from a model of the protocol's rules that knows nothing of expressions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod model;
mod rows;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::Wall;
use leasehold::protocol::{Hints, Outcome, Request, Row, Version};
use leasehold::store::{DynamoDb, Store};
use model::{after_a_ticket, hints, model, served};
use rows::*;
use support::embedded_dynamodb::EmbeddedDynamoDb;
use support::{lock, owner, sdk_config};

const TIMEOUT: Duration = Duration::from_secs(10);

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
