//! The store's states against an embedded DynamoDB, through the real SDK.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::Wall;
use leasehold::protocol::{Format, Outcome, OwnerId, Request, Row, Unusable};
use leasehold::session::{RawState, Table};
use leasehold::store::{
    DynamoDb, Lock, SeenState, StateItem, StateOutcome, StateRequest, StateWrite, Store, WithRelease,
};
use support::embedded_dynamodb::{EmbeddedDynamoDb, Item};
use support::{lock, lock_in, owner, sdk_config};

const LIMIT: Duration = Duration::from_secs(30);
const AT: u64 = 1_800_000_000_000;

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

struct Place {
    dynamodb: EmbeddedDynamoDb,
    store: DynamoDb,
}

impl Place {
    async fn new() -> Self {
        let dynamodb = EmbeddedDynamoDb::with_locks().await;
        Self { store: DynamoDb::with_config(sdk_config(dynamodb.url())), dynamodb }
    }

    async fn take(&self, lock: &Lock, by: OwnerId) {
        let (at, lease) = (Wall::from_millis(AT), Duration::from_secs(30));
        let acquire =
            Request::Acquire { owner: by, version: None, at, lease, expires_at: None, unknown: vec![], served: None };
        let outcome = self.store.send(lock, acquire, LIMIT).await.outcome;
        assert!(matches!(outcome, Outcome::Written { .. }), "{outcome:?}");
    }

    async fn write(&self, lock: &Lock, write: &StateWrite) -> StateOutcome {
        self.store.send_state(lock, StateRequest::Write(write.clone()), LIMIT).await.outcome
    }

    async fn read(&self, lock: &Lock) -> StateItem {
        match self.store.send_state(lock, StateRequest::Read, LIMIT).await.outcome {
            StateOutcome::Read(item) => item,
            outcome => panic!("{outcome:?}"),
        }
    }

    async fn item(&self, key: &str) -> Option<Item> {
        self.dynamodb.items("locks").await.into_iter().find(|item| item.values().any(|value| *value == s(key)))
    }
}

fn write(id: u128, seen: SeenState, value: Option<&str>) -> StateWrite {
    let value = value.map(|value| RawState::parse(value).unwrap());
    StateWrite { id: owner(id), owner: owner(1), seen, at: Wall::from_millis(AT), value, ttl: None, release: None }
}

fn kept(counter: u64, value: Option<&str>, ttl: Option<u64>) -> StateItem {
    StateItem::Kept { counter, value: value.map(|value| RawState::parse(value).unwrap()), ttl }
}

#[tokio::test]
async fn a_state_is_written_by_the_rows_owner_and_counted_on() {
    let (place, lock) = (Place::new().await, lock("a"));
    place.take(&lock, owner(1)).await;
    assert_eq!(place.read(&lock).await, StateItem::Absent);
    let first = write(10, SeenState::Absent, Some("{\"n\":12345678901234567890123}"));
    assert_eq!(place.write(&lock, &first).await, StateOutcome::Written);
    assert_eq!(place.read(&lock).await, kept(AT + 1, Some("{\"n\":12345678901234567890123}"), None));
    let item = place.item("a#state").await.unwrap();
    let mut names: Vec<_> = item.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["counter", "format", "key", "owner", "value", "write", "written_at"]);
    assert_eq!(item["format"], s("leasehold-state/1"));

    let second = write(11, SeenState::Counter(AT + 1), Some("2"));
    assert_eq!(place.write(&lock, &second).await, StateOutcome::Written);
    // The same one again is applied once, whatever the endpoint remembers of its token.
    assert_eq!(place.write(&lock, &second).await, StateOutcome::Written);
    assert_eq!(place.read(&lock).await, kept(AT + 2, Some("2"), None));
    // An older one that comes late changes nothing.
    let late = write(12, SeenState::Counter(AT + 1), Some("1"));
    assert_eq!(place.write(&lock, &late).await, StateOutcome::Changed(kept(AT + 2, Some("2"), None)));

    let cleared = StateWrite { ttl: Some(AT / 1000 + 9), ..write(13, SeenState::Counter(AT + 2), None) };
    assert_eq!(place.write(&lock, &cleared).await, StateOutcome::Written);
    assert_eq!(place.read(&lock).await, kept(AT + 3, None, Some(AT / 1000 + 9)));
    let again = write(14, SeenState::Counter(AT + 3), Some("4"));
    assert_eq!(place.write(&lock, &again).await, StateOutcome::Written);
    assert_eq!(place.read(&lock).await, kept(AT + 4, Some("4"), None), "and is kept without end");
    let usage = place.store.usage();
    assert_eq!((usage.state_writes, usage.refused, usage.failed), (6, 1, 0));
}

#[tokio::test]
async fn nobody_else_writes_a_state() {
    let (place, lock) = (Place::new().await, lock("a"));
    let mine = write(10, SeenState::Absent, Some("1"));
    assert_eq!(place.write(&lock, &mine).await, StateOutcome::NotHeld(Row::Absent));
    place.take(&lock, owner(2)).await;
    let outcome = place.write(&lock, &mine).await;
    assert!(matches!(&outcome, StateOutcome::NotHeld(Row::Held(held)) if held.owner == owner(2)), "{outcome:?}");
    let release = StateWrite { release: Some(WithRelease { ttl: None, hold: None }), ..mine };
    assert!(matches!(place.write(&lock, &release).await, StateOutcome::NotHeld(Row::Held(_))));
    assert_eq!(place.read(&lock).await, StateItem::Absent);
}

#[tokio::test]
async fn a_state_that_was_swept_or_never_read_is_written_all_the_same() {
    let (place, lock) = (Place::new().await, lock("a"));
    place.take(&lock, owner(1)).await;
    assert_eq!(place.write(&lock, &write(10, SeenState::Counter(5), Some("1"))).await, StateOutcome::Written);
    assert_eq!(place.read(&lock).await, kept(6, Some("1"), None));
    assert_eq!(place.write(&lock, &write(11, SeenState::Unread, Some("2"))).await, StateOutcome::Written);
    assert_eq!(place.read(&lock).await, kept(7, Some("2"), None));
    place.take(&lock_in(Table::new("locks"), "b"), owner(1)).await;
    let other = lock_in(Table::new("locks"), "b");
    assert_eq!(place.write(&other, &write(12, SeenState::Unread, Some("3"))).await, StateOutcome::Written);
    assert_eq!(place.read(&other).await, kept(AT + 1, Some("3"), None));
}

#[tokio::test]
async fn a_release_leaves_the_state_in_one_step() {
    let (place, lock) = (Place::new().await, Lock { attributes: team(), ..lock("a") });
    place.take(&lock, owner(1)).await;
    assert_eq!(place.item("a").await.unwrap()["team"], s("billing"));
    let release = StateWrite {
        release: Some(WithRelease { ttl: Some(7), hold: Some(Duration::from_millis(30)) }),
        ..write(10, SeenState::Unread, Some("\"for the next\""))
    };
    assert_eq!(place.write(&lock, &release).await, StateOutcome::Written);
    let row = place.item("a").await.unwrap();
    let mut names: Vec<_> = row.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["format", "hold_ms", "key", "lease_ms", "ttl", "version"]);
    assert_eq!(row["hold_ms"], AttributeValue::N("30".to_owned()));
    assert_eq!(place.read(&lock).await, kept(AT + 1, Some("\"for the next\""), None));
    // Its answer was lost, so it is sent again.
    assert_eq!(place.write(&lock, &release).await, StateOutcome::Written);
}

fn team() -> BTreeMap<String, String> {
    [("team".to_owned(), "billing".to_owned())].into()
}

#[tokio::test]
async fn attributes_for_people_are_there_while_the_row_is_held_and_hinder_nobody() {
    let (place, noted) = (Place::new().await, Lock { attributes: team(), ..lock("a") });
    let noted = Lock { holder: leasehold::HolderInfo { note: "ask #billing".to_owned(), ..noted.holder }, ..noted };
    place.take(&noted, owner(1)).await;
    let row = place.item("a").await.unwrap();
    assert_eq!((&row["team"], &row["holder"].as_m().unwrap()["note"]), (&s("billing"), &s("ask #billing")));
    // A layer without any waits for it, names its note, takes it over and frees it as usual.
    let Outcome::Read { row: Row::Held(held) } = place.store.send(&lock("a"), Request::Read, LIMIT).await.outcome
    else {
        panic!("not held")
    };
    assert_eq!(held.holder.unwrap().note, "ask #billing");
    let (at, lease) = (Wall::from_millis(AT), Duration::from_secs(30));
    let (seen_owner, seen_version) = (owner(1), held.version);
    let take = Request::TakeOver {
        owner: owner(2),
        version: None,
        at,
        lease,
        expires_at: None,
        seen_owner,
        seen_version,
        served: None,
    };
    assert!(matches!(place.store.send(&lock("a"), take, LIMIT).await.outcome, Outcome::Written { .. }));
    // The next of the same layer leaves none behind.
    let release = Request::Release { owners: vec![owner(2)], ttl: None, hold: None };
    assert!(matches!(place.store.send(&noted, release, LIMIT).await.outcome, Outcome::Written { .. }));
    assert!(!place.item("a").await.unwrap().contains_key("team"));
}

#[tokio::test]
async fn a_lock_and_a_state_of_one_key_never_overwrite_each_other() {
    let place = Place::new().await;
    let (outer, inner) = (lock("a"), lock("a#state"));
    place.take(&outer, owner(1)).await;
    place.take(&inner, owner(3)).await;
    let before = place.item("a#state").await;
    let found = place.read(&outer).await;
    assert!(
        matches!(&found, StateItem::Unusable(Unusable::Foreign { format: Some(f), .. }) if f == "leasehold/1"),
        "{found:?}"
    );
    for seen in [SeenState::Absent, SeenState::Unread, SeenState::Counter(7)] {
        let outcome = place.write(&outer, &write(10, seen, Some("1"))).await;
        assert!(matches!(outcome, StateOutcome::Changed(StateItem::Unusable(_))), "{outcome:?}");
    }
    assert_eq!(place.item("a#state").await, before);

    // The other way round.
    let (outer, inner) = (lock("b"), lock("b#state"));
    place.take(&outer, owner(1)).await;
    assert_eq!(place.write(&outer, &write(11, SeenState::Absent, Some("1"))).await, StateOutcome::Written);
    let before = place.item("b#state").await;
    let (at, lease) = (Wall::from_millis(AT), Duration::from_secs(30));
    let acquire =
        Request::Acquire { owner: owner(3), version: None, at, lease, expires_at: None, unknown: vec![], served: None };
    let outcome = place.store.send(&inner, acquire, LIMIT).await.outcome;
    assert!(matches!(outcome, Outcome::Refused { row: Row::Unusable(Unusable::Foreign { .. }) }), "{outcome:?}");
    assert_eq!(place.item("b#state").await, before);
}

#[tokio::test]
async fn what_stands_in_a_states_place_is_never_written_unless_it_is_one() {
    let (place, lock) = (Place::new().await, lock("a"));
    place.take(&lock, owner(1)).await;
    let state = |changes: &[(&str, Option<AttributeValue>)]| {
        let mut item = Item::from(
            [("key", s("a#state")), ("format", s("leasehold-state/1")), ("counter", n(5)), ("value", s("1"))]
                .map(|(name, value)| (name.to_owned(), value)),
        );
        for (name, value) in changes {
            match value {
                Some(value) => item.insert((*name).to_owned(), value.clone()),
                None => item.remove(*name),
            };
        }
        item
    };
    let broken: [&[(&str, Option<AttributeValue>)]; 7] = [
        &[("format", None)],
        &[("format", Some(s("leasehold-state/2")))],
        &[("counter", None)],
        &[("counter", Some(s("5")))],
        &[("value", Some(n(1)))],
        &[("value", Some(s("{")))],
        &[("value", Some(s(&format!("\"{}\"", "x".repeat(40_000)))))],
    ];
    for changes in broken {
        place.dynamodb.put("locks", state(changes)).await;
        assert!(matches!(place.read(&lock).await, StateItem::Unusable(_)), "{changes:?}");
    }
    place.dynamodb.put("locks", state(&[("format", Some(s("leasehold-state/2")))])).await;
    let outcome = place.write(&lock, &write(10, SeenState::Counter(5), Some("2"))).await;
    assert!(matches!(outcome, StateOutcome::Changed(StateItem::Unusable(_))), "{outcome:?}");
    // What others add to it, and a text on several lines, are no trouble.
    place.dynamodb.put("locks", state(&[("note", Some(s("x"))), ("value", Some(s("[\n1\n]")))])).await;
    assert_eq!(place.read(&lock).await, kept(5, Some("[ 1 ]"), None));
}

#[tokio::test]
async fn other_key_attributes_and_a_sort_key_hold_for_both_items() {
    let place = Place::new().await;
    place.dynamodb.create_table("sorted", "counter-of", Some("kind")).await;
    let table = Table {
        key_attribute: "counter-of".to_owned(),
        sort_key: Some(("kind".to_owned(), "lock".to_owned())),
        ..Table::new("sorted")
    };
    let lock = lock_in(table, "a");
    place.take(&lock, owner(1)).await;
    assert_eq!(place.write(&lock, &write(10, SeenState::Absent, Some("1"))).await, StateOutcome::Written);
    assert_eq!(place.read(&lock).await, kept(AT + 1, Some("1"), None));
}

#[tokio::test]
async fn a_format_without_states_is_told_without_a_request() {
    let place = Place::new().await;
    let lock = lock_in(Table::new("locks").speaking(Format::PydynoxV1), "a");
    let outcome = place.store.send_state(&lock, StateRequest::Read, LIMIT).await.outcome;
    assert!(matches!(&outcome, StateOutcome::Failed(f) if f.message.contains("`pydynox/1`")), "{outcome:?}");
}
