//! Leases given back by who holds or wanted them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::support::{SECOND, World, acquire};
use crate::protocol::{FailureKind, Request};
use crate::session::Acquire;
use crate::session::{FailKind, FromKeeper, OnCrash, ReleaseReason, ToKeeper};

const SLOW: Duration = Duration::from_millis(700);

fn slow_release(_: &str, request: &Request) -> Fate {
    if matches!(request, Request::Release { .. }) { Fate::slow(SLOW) } else { Fate::USUAL }
}

#[tokio::test(start_paused = true)]
async fn released_is_told_before_the_write_where_nothing_can_freeze() {
    let world = World::new();
    world.home.answers_before_write.store(true, Ordering::Relaxed);
    world.store.decide(slow_release);
    let mut client = world.begin().await;
    client.take(1, "a").await;
    let asked = Instant::now();
    client.release(1, ReleaseReason::Finished, false).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_eq!(world.keeper.writes_in_flight(), 1);
    client.hears_nothing(5 * SECOND).await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.keeper.writes_in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn released_is_told_after_the_write_where_the_environment_may_freeze_or_the_layer_waits() {
    for (before_write, wait) in [(false, false), (false, true), (true, true)] {
        let world = World::new();
        world.home.answers_before_write.store(before_write, Ordering::Relaxed);
        world.store.decide(slow_release);
        let mut client = world.begin().await;
        client.take(1, "a").await;
        let asked = Instant::now();
        client.release(1, ReleaseReason::Finished, wait).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        assert!(asked.elapsed() >= SLOW);
        assert!(world.store.is_free("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_refused_for_good_is_told_as_a_failure() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Release { .. } => Fate::failed(FailureKind::AccessDenied),
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.failed(1).await.0, FailKind::AccessDenied);
    world.all_ended().await;
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    assert_eq!(world.keeper.counts().release_failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_is_lost_is_sent_again() {
    let world = World::new();
    let mut first = true;
    world.store.decide(move |_, request| match request {
        Request::Release { .. } if std::mem::take(&mut first) => Fate::UNANSWERED,
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.keeper.counts().released, 1);
}

#[tokio::test(start_paused = true)]
async fn a_release_of_an_unanswered_acquisition_cancels_it() {
    let world = World::new();
    let (mut one, mut two) = (world.begin().await, world.begin().await);
    one.take(1, "a").await;
    two.acquire(acquire(1, "a")).await;
    sleep(SECOND).await;
    two.release(1, ReleaseReason::Cancelled, false).await;
    assert_eq!(two.receive().await, FromKeeper::Released { id: 1 });
    two.hears_nothing(10 * SECOND).await;
    assert_eq!(world.keeper.counts().busy, 0);
    // Only the one that holds it is left.
    assert_eq!(world.keeper.inner.tasks.live(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_crosses_its_cancellation_is_released() {
    for before_write in [false, true] {
        let world = World::new();
        world.home.answers_before_write.store(before_write, Ordering::Relaxed);
        let mut client = world.begin().await;
        client.acquire(acquire(1, "a")).await;
        // The attempt is applied, and its answer on the way.
        sleep(Duration::from_millis(3)).await;
        assert!(world.store.owner("a").is_some());
        client.release(1, ReleaseReason::Cancelled, false).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        client.hears_nothing(SECOND).await;
        assert!(world.store.is_free("a"));
        world.all_ended().await;
        assert_eq!(world.keeper.counts().granted, 0);
        assert_eq!(world.home.unsettled(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn every_release_line_is_answered_once_even_for_what_is_not_held() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    for id in [1, 1, 1, 99] {
        client.release(id, ReleaseReason::Finished, true).await;
    }
    let mut answered = Vec::new();
    for _ in 0..4 {
        let FromKeeper::Released { id } = client.receive().await else { panic!("not released") };
        answered.push(id);
    }
    assert_eq!(answered, [99, 1, 1, 1]);
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.keeper.counts().released, 1);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_the_release_overtook_is_awaited_and_ignored() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Renew { .. } => Fate { on_the_way: SECOND, ..Fate::USUAL },
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    sleep(10 * SECOND + Duration::from_millis(500)).await;
    assert_eq!(world.store.renewals("a"), 1);
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert!(world.store.is_free("a"));
    assert_eq!(world.keeper.writes_in_flight(), 1);
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.store.cancelled(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_goes_the_way_of_a_crash() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(2, "b") }).await;
    let kept = client.granted(2).await;
    for id in [1, 2] {
        client.release(id, ReleaseReason::Dropped, true).await;
    }
    assert_eq!(client.receive().await, FromKeeper::Released { id: 2 });
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert!(world.store.is_free("a"));
    assert_eq!(world.store.owner("b"), Some(kept.owner));
    let counts = world.keeper.counts();
    assert_eq!((counts.crash_releases, counts.abandoned, counts.released), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn end_gives_back_whatever_is_still_held_and_the_answers_due_still_come() {
    let world = World::new();
    world.store.decide(slow_release);
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(2, "b") }).await;
    client.granted(2).await;
    client.release(1, ReleaseReason::Finished, true).await;
    client.send(&ToKeeper::End).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(client.next().await, None);
    world.all_ended().await;
    assert!(world.store.is_free("a") && world.store.is_free("b"));
    assert_eq!(world.keeper.counts().crash_releases, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_the_connection_was_closed_counts_though_answers_find_nobody() {
    let world = World::new();
    let mut client = world.begin().await;
    for id in 1..=3 {
        client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(id, &format!("k-{id}")) }).await;
        client.granted(id).await;
    }
    world.home.answers_before_write.store(true, Ordering::Relaxed);
    for id in 1..=2 {
        client.release(id, ReleaseReason::Finished, false).await;
    }
    // The third goes back by this.
    client.send(&ToKeeper::End).await;
    client.vanish().await;
    world.all_ended().await;
    for id in 1..=3 {
        assert!(world.store.is_free(&format!("k-{id}")), "{id} was left as after a crash");
    }
    assert_eq!(world.keeper.counts().abandoned, 0);
}
