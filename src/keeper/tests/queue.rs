//! Several of one keeper that want the same key: first come, first served, and only the first asks the store.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::queue_in_vain::busy_unsent;
use super::support::{Client, SECOND, World, acquire};
use crate::keeper::Drained;
use crate::keeper::lease_task::HANDOVER_WITHIN;
use crate::protocol::{Request, Row};
use crate::session::{Acquire, FailKind, FromKeeper, OnCrash, ReleaseReason, ToKeeper};

pub(super) const MS: Duration = Duration::from_millis(1);
/// A request and its answer, by the store's usual fate.
const ROUND_TRIP: Duration = Duration::from_millis(5);

const fn is_attempt(request: &Request) -> bool {
    matches!(request, Request::Acquire { .. } | Request::TakeOver { .. })
}

impl World {
    pub(super) fn attempts(&self) -> usize {
        self.store.requests("a", is_attempt).len()
    }

    /// How many places are taken.
    pub(super) fn places(&self) -> usize {
        self.keeper.inner.shared.queues.len()
    }

    /// A session of its own that asks for `a` as `id`, and has its place.
    pub(super) async fn asks(&self, id: u64, wait: Duration) -> Client {
        self.asks_with(Acquire { wait_ms: wait.as_millis() as u64, ..acquire(id, "a") }).await
    }

    pub(super) async fn asks_with(&self, acquire: Acquire) -> Client {
        let (mut client, before) = (self.begin().await, self.places());
        client.acquire(acquire).await;
        while self.places() == before {
            sleep(Duration::from_micros(10)).await;
        }
        client
    }
}

pub(super) async fn finish(client: &mut Client, id: u64) {
    client.release(id, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id });
}

#[tokio::test(start_paused = true)]
async fn fifty_are_served_in_the_order_they_came_by_two_writes_each_and_no_read() {
    const HOLD: Duration = Duration::from_millis(20);
    let world = World::new();
    let mut first = world.begin().await;
    first.take(0, "a").await;
    let mut waiting = JoinSet::new();
    for id in 1..50 {
        let mut client = world.asks(id, 60 * SECOND).await;
        waiting.spawn(async move {
            let grant = client.granted(id).await;
            let from = Instant::now();
            sleep(HOLD).await;
            let until = Instant::now();
            finish(&mut client, id).await;
            (id, grant, from, until)
        });
    }
    let began = Instant::now();
    finish(&mut first, 0).await;
    let mut held = waiting.join_all().await;
    // Awakened by the release's answer, not by a timer: nothing is lost between one and the next but the requests.
    assert!(began.elapsed() < 49 * (HOLD + 2 * ROUND_TRIP) + 49 * 2 * MS, "{:?}", began.elapsed());
    held.sort_by_key(|(_, _, from, _)| *from);
    let order: Vec<_> = held.iter().map(|(id, ..)| *id).collect();
    assert_eq!(order, (1..50).collect::<Vec<_>>());
    for pair in held.windows(2) {
        assert!(pair[0].3 <= pair[1].2 && pair[0].1.token < pair[1].1.token, "{pair:?}");
    }
    let (_, last, ..) = &held[48];
    assert!(last.queued_ms > 48 * 20 && last.waited_ms >= last.queued_ms && last.attempts == 1, "{last:?}");
    let counts = world.keeper.counts();
    assert_eq!((counts.requests, counts.attempts, counts.granted, counts.attempts_refused), (100, 50, 50, 0));
    assert_eq!(counts.contended, 49);
    assert_eq!(world.store.requests("a", |request| *request == Request::Read), []);
    world.all_ended().await;
    assert_eq!(world.places(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_behind_one_that_dies_contending_goes_on_in_its_place() {
    let world = World::new();
    let elsewhere = world.elsewhere();
    let mut holder = elsewhere.begin().await;
    holder.take(9, "a").await;
    let head = world.asks(1, 60 * SECOND).await;
    let mut second = world.asks(2, 60 * SECOND).await;
    let mut third = world.asks(3, 60 * SECOND).await;
    sleep(3 * SECOND).await;
    assert_eq!(world.keeper.counts().attempts, 1, "the first, and nobody else");
    head.vanish().await;
    sleep(50 * MS).await;
    assert_eq!(world.keeper.counts().attempts, 2);
    finish(&mut holder, 9).await;
    second.granted(2).await;
    finish(&mut second, 2).await;
    assert_eq!(third.granted(3).await.attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_or_is_cancelled_in_the_middle_holds_up_nobody_and_sends_nothing() {
    for dies in [true, false] {
        let world = World::new();
        let mut first = world.begin().await;
        first.take(1, "a").await;
        let mut second = world.asks(2, 60 * SECOND).await;
        let mut third = world.asks(3, 60 * SECOND).await;
        if dies {
            second.vanish().await;
        } else {
            second.cancel(2).await;
        }
        sleep(MS).await;
        assert_eq!(world.places(), 2);
        finish(&mut first, 1).await;
        let grant = third.granted(3).await;
        assert_eq!((grant.attempts, world.attempts()), (1, 2));
        finish(&mut third, 3).await;
        world.all_ended().await;
        assert_eq!((world.places(), world.keeper.writes_in_flight()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_pause_of_the_process_a_lease_that_is_over_is_in_nobodys_way() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    sleep(MS).await;
    world.clock.freeze(60 * SECOND);
    let mut once = world.begin().await;
    once.acquire(Acquire { wait_ms: 0, ..acquire(2, "a") }).await;
    once.granted(2).await;
    assert_eq!(world.keeper.counts().takeovers, 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_twice_in_a_session_never_stands_behind_itself() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let mut waits = world.asks(1, 60 * SECOND).await;
    waits.acquire(acquire(2, "a")).await;
    assert_eq!(waits.failed(2).await.0, FailKind::AlreadyHeld);
    // One that is on its way back does not count: the next of the same session waits for its row.
    first.release(1, ReleaseReason::Finished, false).await;
    first.acquire(Acquire { wait_ms: 60_000, ..acquire(2, "a") }).await;
    assert_eq!(first.receive().await, FromKeeper::Released { id: 1 });
    waits.granted(1).await;
    finish(&mut waits, 1).await;
    first.granted(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_makes_way_at_once() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let mut second = world.asks(2, 60 * SECOND).await;
    world.store.put("a", Row::Absent);
    // The holder stays as it is, and says nothing.
    assert_eq!(first.receive().await, FromKeeper::AtRisk { id: 1 });
    assert!(matches!(first.receive().await, FromKeeper::Lost { id: 1, .. }));
    let lost = Instant::now();
    second.granted(2).await;
    assert!(lost.elapsed() <= ROUND_TRIP + MS, "{:?}", lost.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_left_to_expire_makes_way_to_who_then_waits_for_its_end() {
    let world = World::new();
    let mut first = world.begin().await;
    let expiring = Acquire { on_crash: OnCrash::Expire, lease_ms: 5_000, ..acquire(1, "a") };
    first.acquire(expiring).await;
    let left = first.granted(1).await;
    let mut second = world.asks(2, 60 * SECOND).await;
    first.vanish().await;
    sleep(10 * MS).await;
    assert_eq!(world.attempts(), 2, "it has asked");
    assert_eq!(world.store.owner("a"), Some(left.owner));
    let grant = second.granted(2).await;
    assert!((4_000..12_000).contains(&grant.waited_ms), "{grant:?}");
    assert_eq!(world.keeper.counts().takeovers, 1);
}

#[tokio::test(start_paused = true)]
async fn a_parked_key_makes_way_to_who_then_waits_for_the_minimum() {
    let world = World::new();
    let mut first = world.begin().await;
    let asked = Instant::now();
    first.take(1, "a").await;
    let mut second = world.asks(2, 3_600 * SECOND).await;
    let mut hasty = world.asks(3, 60 * SECOND).await;
    first.park(1, ReleaseReason::Finished, 600 * SECOND).await;
    assert_eq!(first.receive().await, FromKeeper::Released { id: 1 });
    let (holder, ..) = busy_unsent(&mut hasty).await;
    assert!(holder.unwrap().parked);
    second.granted(2).await;
    assert!(asked.elapsed() >= 600 * SECOND, "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_is_waited_for_a_moment_only() {
    let world = World::new();
    let mut unanswered = true;
    world.store.decide(move |_, request| match request {
        Request::Release { .. } if std::mem::take(&mut unanswered) => Fate::UNANSWERED,
        _ => Fate::USUAL,
    });
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let mut second = world.asks(2, 60 * SECOND).await;
    let released = Instant::now();
    first.release(1, ReleaseReason::Finished, false).await;
    second.granted(2).await;
    let took = released.elapsed();
    assert!(took >= HANDOVER_WITHIN && took <= HANDOVER_WITHIN + 10 * MS, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_taken_back_with_an_attempt_under_way_is_waited_for_a_moment_only() {
    let world = World::new();
    let mut swallowed = true;
    world.store.decide(move |_, request| match request {
        Request::Acquire { .. } if std::mem::take(&mut swallowed) => Fate::SWALLOWED,
        _ => Fate::USUAL,
    });
    let head = world.asks(1, 60 * SECOND).await;
    let mut second = world.asks(2, 60 * SECOND).await;
    sleep(20 * MS).await;
    let gone = Instant::now();
    head.vanish().await;
    second.granted(2).await;
    assert!(gone.elapsed() <= HANDOVER_WITHIN + 10 * MS, "{:?}", gone.elapsed());
    finish(&mut second, 2).await;
    world.all_ended().await;
    assert_eq!(world.places(), 0);
}

#[tokio::test(start_paused = true)]
async fn at_the_keepers_end_who_waits_is_told_and_writes_nothing() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let mut waiting = Vec::new();
    for id in 2..5 {
        waiting.push((id, world.asks(id, 60 * SECOND).await));
    }
    assert_eq!(world.keeper.drain(SECOND).await, Drained { released: 1, ..Drained::default() });
    for (id, mut client) in waiting {
        assert_eq!(client.failed(id).await.0, FailKind::ShuttingDown);
    }
    assert_eq!((world.attempts(), world.places()), (1, 0));
    assert!(world.store.is_free("a"));
}

/// The environment may freeze once its sessions are over: then nobody is left in line who would write after it.
#[tokio::test(start_paused = true)]
async fn a_session_that_ended_in_line_writes_nothing_when_its_turn_would_have_come() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    world.store.decide(|_, request| match request {
        Request::Release { .. } => Fate::slow(100 * MS),
        _ => Fate::USUAL,
    });
    let mut second = world.asks(2, 60 * SECOND).await;
    first.release(1, ReleaseReason::Finished, false).await;
    second.send(&ToKeeper::End).await;
    assert_eq!(first.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.keeper.quiesce(SECOND).await, 0);
    world.clock.freeze(600 * SECOND);
    sleep(10 * SECOND).await;
    assert_eq!((world.attempts(), world.places()), (1, 0));
}

/// As sessions may do that do not keep to an order: the first to give up lets the other one through.
#[tokio::test(start_paused = true)]
async fn two_that_want_two_keys_in_opposite_orders_wait_no_longer_than_their_time() {
    let world = World::new();
    let (mut one, mut two) = (world.begin().await, world.begin().await);
    one.take(1, "a").await;
    two.take(1, "b").await;
    one.acquire(Acquire { wait_ms: 5_000, ..acquire(2, "b") }).await;
    two.acquire(Acquire { wait_ms: 1_000, ..acquire(2, "a") }).await;
    assert!(matches!(two.receive().await, FromKeeper::Busy { id: 2, attempts: 0, .. }));
    two.vanish().await;
    one.granted(2).await;
    one.vanish().await;
    world.all_ended().await;
    assert_eq!(world.places(), 0);
}
