//! States from holder to holder: saved once each, by who holds the lock, and never at a renewal's cost.

use std::time::Duration;

use tokio::time::sleep;

use super::memory_store::Fate;
use super::support::{Client, SECOND, World, acquire};
use crate::protocol::{FailureKind, Format, Request, Row};
use crate::session::{Acquire, FailKind, FromKeeper, RawState, ReleaseReason, Table, ToKeeper};
use crate::store::StateRequest;

pub(super) fn raw(text: &str) -> RawState {
    RawState::parse(text).unwrap()
}

pub(super) fn save(call: u64, value: Option<&str>, on_release: bool) -> ToKeeper {
    ToKeeper::SaveState { id: 1, call, value: value.map(raw), on_release }
}

pub(super) fn saved(call: u64) -> FromKeeper {
    FromKeeper::StateSaved { id: 1, call }
}

pub(super) async fn load(client: &mut Client, call: u64) -> Option<String> {
    client.send(&ToKeeper::LoadState { id: 1, call }).await;
    match client.receive().await {
        FromKeeper::State { id: 1, call: told, value } if told == call => value.map(|value| value.get().to_owned()),
        line => panic!("{line:?}"),
    }
}

pub(super) async fn failed(client: &mut Client, call: u64) -> (FailKind, String) {
    match client.receive().await {
        FromKeeper::StateFailed { id: 1, call: told, kind, message } if told == call => (kind, message),
        line => panic!("{line:?}"),
    }
}

pub(super) async fn holder(world: &World) -> Client {
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client
}

pub(super) fn writes(request: &StateRequest) -> bool {
    matches!(request, StateRequest::Write(_))
}

#[tokio::test(start_paused = true)]
async fn a_saved_state_is_read_by_the_next_holder_and_its_counter_only_grows() {
    let world = World::new();
    let mut client = holder(&world).await;
    assert_eq!(load(&mut client, 1).await, None);
    client.send(&save(2, Some("{\"at\":1}"), false)).await;
    assert_eq!(client.receive().await, saved(2));
    let first = world.store.state_of("a").unwrap();
    client.send(&save(3, Some("{\"at\":2}"), false)).await;
    assert_eq!(client.receive().await, saved(3));
    assert_eq!(world.store.state_of("a").unwrap().counter, first.counter + 1);
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });

    let elsewhere = world.elsewhere();
    let mut next = holder(&elsewhere).await;
    assert_eq!(load(&mut next, 1).await.as_deref(), Some("{\"at\":2}"));
    next.send(&save(2, None, false)).await;
    assert_eq!(next.receive().await, saved(2));
    assert_eq!(load(&mut next, 3).await, None);
    let cleared = world.store.state_of("a").unwrap();
    assert_eq!(cleared.counter, first.counter + 2);
    // Nothing is kept for it without end: it is swept as a free row is.
    assert!(cleared.write.ttl.is_some() && first.write.ttl.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_crash_leaves_what_was_saved_before() {
    let world = World::new();
    let mut client = holder(&world).await;
    client.send(&save(1, Some("1"), false)).await;
    assert_eq!(client.receive().await, saved(1));
    client.send(&save(2, Some("2"), true)).await;
    assert_eq!(client.receive().await, saved(2));
    client.vanish().await;
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.store.value("a").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_with_the_same_token_and_content_before_the_next() {
    let world = World::new();
    let mut client = holder(&world).await;
    let mut first = true;
    world.store.decide_state(move |_, request| {
        if writes(request) && std::mem::take(&mut first) { Fate::UNANSWERED } else { Fate::USUAL }
    });
    client.send(&save(1, Some("1"), false)).await;
    client.send(&save(2, Some("2"), false)).await;
    assert_eq!(client.receive().await, saved(1));
    assert_eq!(client.receive().await, saved(2));
    let sent = world.store.writes("a");
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0], sent[1], "the same, to the last field");
    assert_ne!(sent[0].id, sent[2].id);
    assert_eq!(world.store.state_of("a").unwrap().counter, sent[0].counter().unwrap() + 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_transaction_is_given_up_when_its_token_no_longer_serves() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { max_hold_ms: 3_600_000, ..acquire(1, "a") }).await;
    client.granted(1).await;
    world.store.decide_state(|_, request| if writes(request) { Fate::UNANSWERED } else { Fate::USUAL });
    client.send(&save(1, Some("1"), false)).await;
    let (kind, message) = failed(&mut client, 1).await;
    assert_eq!(kind, FailKind::Unconfirmed, "{message}");
    let elapsed = world.clock_since_start();
    assert!(elapsed < Duration::from_secs(600), "{elapsed:?}");
    let sent = world.store.writes("a");
    assert!(sent.iter().all(|write| *write == sent[0]));
}

#[tokio::test(start_paused = true)]
async fn a_state_write_extends_no_lease_and_holds_up_no_renewal() {
    let world = World::new();
    let mut client = holder(&world).await;
    // No renewal is answered any more; every state would be.
    world.store.decide(|_, request| match request {
        Request::Renew { .. } => Fate::SWALLOWED,
        _ => Fate::USUAL,
    });
    let mut call = 0;
    let lost = loop {
        call += 1;
        client.send(&save(call, Some("1"), false)).await;
        match client.receive().await {
            FromKeeper::StateSaved { .. } => sleep(SECOND / 2).await,
            FromKeeper::AtRisk { .. } => {}
            FromKeeper::Lost { .. } => break world.clock_since_start(),
            FromKeeper::StateFailed { kind, .. } => assert_eq!(kind, FailKind::NotHeld),
            line => panic!("{line:?}"),
        }
    };
    assert!(call > 10 && lost <= Duration::from_millis(27_100), "{call} {lost:?}");
}

#[tokio::test(start_paused = true)]
async fn renewals_go_on_while_a_state_has_no_answer_and_a_state_waits_for_a_renewal_under_way() {
    let world = World::new();
    let mut client = holder(&world).await;
    world.store.decide_state(|_, _| Fate::SWALLOWED);
    client.send(&save(1, Some("1"), false)).await;
    client.loses_nothing(60 * SECOND).await;
    assert!(world.store.renewals("a") >= 5, "{}", world.store.renewals("a"));

    let world = World::new();
    let mut client = holder(&world).await;
    assert_eq!(load(&mut client, 1).await, None);
    world.store.decide(|_, _| Fate::slow(2 * SECOND));
    // The renewal is sent at ten seconds.
    sleep(10 * SECOND + SECOND / 2).await;
    assert_eq!(world.store.renewals("a"), 1);
    client.send(&save(2, Some("1"), false)).await;
    client.hears_nothing(SECOND).await;
    assert!(world.store.writes("a").is_empty(), "sent beside a renewal");
    assert_eq!(client.receive().await, saved(2));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_sent_again_and_a_refusal_is_told_at_once() {
    let world = World::new();
    let mut client = holder(&world).await;
    let mut conflicts = 3;
    world.store.decide_state(move |_, request| {
        if writes(request) && conflicts > 0 {
            conflicts -= 1;
            return Fate::failed(FailureKind::TransactionConflict);
        }
        Fate::USUAL
    });
    client.send(&save(1, Some("1"), false)).await;
    assert_eq!(client.receive().await, saved(1));
    assert_eq!(world.store.writes("a").len(), 4);

    world.store.decide_state(|_, _| Fate::failed(FailureKind::AccessDenied));
    client.send(&save(2, Some("2"), false)).await;
    assert_eq!(failed(&mut client, 2).await.0, FailKind::AccessDenied);
    // The lease is as it was.
    world.store.decide_state(|_, _| Fate::USUAL);
    client.send(&save(3, Some("3"), false)).await;
    assert_eq!(client.receive().await, saved(3));
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_lost_cannot_save_and_learns_of_its_loss() {
    let world = World::new();
    let mut client = holder(&world).await;
    assert_eq!(load(&mut client, 1).await, None);
    world.store.put("a", Row::Absent);
    client.send(&save(2, Some("2"), false)).await;
    assert_eq!(failed(&mut client, 2).await.0, FailKind::NotHeld);
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    let FromKeeper::Lost { id: 1, reason } = client.receive().await else { panic!("not lost") };
    assert_eq!(reason, "the row was deleted");
    assert_eq!(world.store.value("a"), None);
    client.send(&save(3, Some("3"), false)).await;
    assert_eq!(failed(&mut client, 3).await.0, FailKind::NotHeld);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_served_is_told_before_any_request_and_leaves_the_lease_as_it_was() {
    let world = World::new();
    let mut client = world.begin().await;
    client.send(&ToKeeper::LoadState { id: 1, call: 1 }).await;
    assert_eq!(failed(&mut client, 1).await.0, FailKind::NotHeld);
    client.take(1, "a").await;
    let long = RawState::of(&"x".repeat(RawState::MAX_BYTES)).unwrap();
    for on_release in [false, true] {
        client.send(&ToKeeper::SaveState { id: 1, call: 2, value: Some(long.clone()), on_release }).await;
        let (kind, message) = failed(&mut client, 2).await;
        assert!(kind == FailKind::BadRequest && message.contains("32770 bytes"), "{message}");
    }
    let mut other = world.begin().await;
    other.take(1, &"k".repeat(2_043)).await;
    other.send(&ToKeeper::LoadState { id: 1, call: 1 }).await;
    assert_eq!(failed(&mut other, 1).await.0, FailKind::BadRequest);
    let mut python = world.begin().await;
    python.acquire(Acquire { table: Table::new("locks").speaking(Format::PydynoxV1), ..acquire(1, "p") }).await;
    assert!(matches!(python.receive().await, FromKeeper::Granted { .. }));
    python.send(&ToKeeper::LoadState { id: 1, call: 1 }).await;
    assert_eq!(failed(&mut python, 1).await.0, FailKind::BadRequest);
    for key in ["a", "p"] {
        assert!(world.store.writes(key).is_empty());
    }
    assert_eq!(load(&mut client, 3).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_state_is_read_until_its_retention_is_over() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { state_retention_ms: Some(60_000), ..acquire(1, "a") }).await;
    client.granted(1).await;
    client.send(&save(1, Some("1"), false)).await;
    assert_eq!(client.receive().await, saved(1));
    sleep(50 * SECOND).await;
    assert_eq!(load(&mut client, 2).await.as_deref(), Some("1"));
    sleep(11 * SECOND).await;
    assert_eq!(load(&mut client, 3).await, None);
    // Its counter goes on.
    client.send(&save(4, Some("2"), false)).await;
    assert_eq!(client.receive().await, saved(4));
}
