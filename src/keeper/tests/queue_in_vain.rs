//! What those in line are told whose time ends before their turn, or comes with it: what the first one would have been told.

use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::queue::{MS, finish};
use super::support::{Client, SECOND, World, acquire};
use crate::protocol::{FailureKind, Format, HolderInfo, Request, Row, Unusable};
use crate::session::{Acquire, FailKind, FromKeeper, ReleaseReason};

/// The holder that `busy` names, and when to try again, of one that sent nothing.
pub(super) async fn busy_unsent(client: &mut Client) -> (Option<HolderInfo>, u64, u64) {
    match client.receive().await {
        FromKeeper::Busy { holder, waited_ms, attempts: 0, retry_after_ms, .. } => (holder, waited_ms, retry_after_ms),
        line => panic!("{line:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_is_told_of_the_keepers_own_holder_when_its_own_time_is_over() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let asked = Instant::now();
    let mut patient = world.asks(2, 3 * SECOND).await;
    let mut hasty = world.asks(3, SECOND / 2).await;
    let (holder, waited_ms, retry_after_ms) = busy_unsent(&mut hasty).await;
    let holder = holder.unwrap();
    assert_eq!((holder.request_id.as_str(), waited_ms), ("r-1", 500));
    assert!(holder.acquired_at.is_some() && (25_000..=30_000).contains(&retry_after_ms), "{retry_after_ms}");
    assert!(asked.elapsed() < 510 * MS);
    busy_unsent(&mut patient).await;
    assert!(asked.elapsed() < 3 * SECOND + 10 * MS);
    let counts = world.keeper.counts();
    assert_eq!((counts.requests, counts.busy, counts.contended), (1, 2, 2));
    assert_eq!(world.places(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_behind_one_that_contends_is_told_what_that_one_saw() {
    let world = World::new();
    let elsewhere = world.elsewhere();
    let mut holder = elsewhere.begin().await;
    holder.take(9, "a").await;
    let mut head = world.asks(1, 5 * SECOND).await;
    let mut second = world.asks(2, 2 * SECOND).await;
    // It has as long as the first, and came after it.
    let mut third = world.asks(3, 5 * SECOND).await;
    let (holder, _, retry_after_ms) = busy_unsent(&mut second).await;
    assert_eq!(holder.unwrap().request_id, "r-9");
    assert!((20_000..=30_000).contains(&retry_after_ms), "{retry_after_ms}");
    assert!(matches!(head.receive().await, FromKeeper::Busy { attempts: 1, .. }));
    assert_eq!(busy_unsent(&mut third).await.0.unwrap().request_id, "r-9");
    assert_eq!(world.keeper.counts().attempts, 1);
    assert_eq!(world.places(), 0);
}

/// Nobody knows who holds the row, but who comes first in this environment.
#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_behind_a_first_request_without_an_answer_is_told_behind_whom() {
    let world = World::new();
    world.store.decide(|_, _| Fate::SWALLOWED);
    let _head = world.asks_with(Acquire { wait_ms: 60_000, lease_ms: 9_000, ..acquire(1, "a") }).await;
    let mut second = world.asks(2, SECOND).await;
    let mut once = world.begin().await;
    once.acquire(Acquire { wait_ms: 0, ..acquire(3, "a") }).await;
    for (client, waited) in [(&mut once, 0), (&mut second, 1_000)] {
        let (holder, waited_ms, retry_after_ms) = busy_unsent(client).await;
        let holder = holder.unwrap();
        assert_eq!((holder.request_id.as_str(), holder.acquired_at, waited_ms), ("r-1", None, waited));
        assert_eq!(retry_after_ms, 9_000, "a lease of it may begin at any moment");
    }
    assert_eq!(world.attempts(), 1);
}

/// It goes on asking, and is ahead of those behind it all the same.
#[tokio::test(start_paused = true)]
async fn who_waits_behind_one_that_saw_the_row_free_and_was_too_late_is_told_behind_whom() {
    let world = World::new();
    let elsewhere = world.elsewhere();
    let mut holder = elsewhere.begin().await;
    holder.take(9, "a").await;
    let _head = world.asks(1, 60 * SECOND).await;
    let mut second = world.asks(2, 2 * SECOND).await;
    finish(&mut holder, 9).await;
    // Whoever is quicker has gone again when the refusal comes back.
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } | Request::TakeOver { .. } => Fate::SWALLOWED,
        _ => Fate::USUAL,
    });
    let (holder, ..) = busy_unsent(&mut second).await;
    assert_eq!(holder.unwrap().acquired_at, None);
}

#[tokio::test(start_paused = true)]
async fn who_tries_once_does_not_wait_and_asks_only_where_nobody_holds_it_any_more() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let mut once = world.begin().await;
    once.acquire(Acquire { wait_ms: 0, ..acquire(2, "a") }).await;
    let (holder, waited_ms, _) = busy_unsent(&mut once).await;
    assert_eq!((holder.unwrap().request_id.as_str(), waited_ms, world.attempts()), ("r-1", 0, 1));

    // The row is freed at once, and the answer to that comes late.
    world.store.decide(|_, request| match request {
        Request::Release { .. } => Fate::slow(200 * MS),
        _ => Fate::USUAL,
    });
    world.home.answers_before_write.store(true, std::sync::atomic::Ordering::Relaxed);
    first.release(1, ReleaseReason::Finished, false).await;
    assert_eq!(first.receive().await, FromKeeper::Released { id: 1 });
    sleep(3 * MS).await;
    once.acquire(Acquire { wait_ms: 0, ..acquire(3, "a") }).await;
    let grant = once.granted(3).await;
    assert_eq!((grant.waited_ms, grant.queued_ms), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_latest_moment_that_has_passed_is_told_as_such() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let mut late = world.begin().await;
    late.acquire(Acquire { answer_within_ms: Some(0), ..acquire(2, "a") }).await;
    assert_eq!(late.failed(2).await.0, FailKind::TooLate);
    assert_eq!(world.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_the_first_meets_is_told_to_all_as_what_it_is() {
    let world = World::new();
    world.store.decide(|_, _| Fate::failed(FailureKind::Throttled));
    let mut head = world.asks(1, 3 * SECOND).await;
    let behind = Acquire { wait_ms: 1_000, ..acquire(2, "a") };
    let behind = Acquire { holder: HolderInfo { template: "behind".to_owned(), ..behind.holder.clone() }, ..behind };
    let mut second = world.asks_with(behind).await;
    assert_eq!(second.failed(2).await.0, FailKind::Throttled);
    assert_eq!(world.keeper.inner.shared.tallies.of("behind").counts.snapshot().requests, 0);
    assert_eq!(head.failed(1).await.0, FailKind::Throttled);

    // What will not pass ends the first, and each of the others finds out by itself.
    world.store.decide(|_, _| Fate::failed(FailureKind::AccessDenied));
    let (mut head, mut second) = (world.asks(1, 60 * SECOND).await, world.asks(2, 60 * SECOND).await);
    assert_eq!(head.failed(1).await.0, FailKind::AccessDenied);
    assert_eq!(second.failed(2).await.0, FailKind::AccessDenied);
}

/// Whose turn comes as its time ends asks no more; what ended the first is no busy key.
#[tokio::test(start_paused = true)]
async fn what_ends_the_first_at_once_is_told_to_those_who_have_no_time_left_to_find_it_out() {
    let foreign = Row::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format: None });
    for (row, fate, expected) in [
        (Row::Absent, Fate::failed(FailureKind::AccessDenied), FailKind::AccessDenied),
        (foreign, Fate::USUAL, FailKind::ForeignRow),
    ] {
        let world = World::new();
        world.store.put("a", row);
        world.store.decide(move |_, _| fate);
        let (mut head, mut second) = (world.asks(1, 60 * SECOND).await, world.asks(2, 20 * MS).await);
        assert_eq!(head.failed(1).await.0, expected);
        assert_eq!(second.failed(2).await.0, expected);
        assert_eq!(world.attempts(), 1);
    }
}
