//! The keeper's own end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::support::{SECOND, World, acquire};
use crate::keeper::Drained;
use crate::protocol::{FailureKind, Request};
use crate::session::{Acquire, CheckAnswer, FailKind, FromKeeper, OnCrash, ReleaseReason};

#[tokio::test(start_paused = true)]
async fn every_lease_goes_back_at_once_and_one_that_fails_holds_up_none() {
    let world = World::new();
    world.store.decide(|key, request| match (key, request) {
        ("k-3", Request::Release { .. }) => Fate::failed(FailureKind::AccessDenied),
        ("k-7", Request::Release { .. }) => Fate::SWALLOWED,
        (_, Request::Release { .. }) => Fate::slow(Duration::from_millis(200)),
        _ => Fate::USUAL,
    });
    let mut clients = Vec::new();
    for n in 0..25_u64 {
        let mut client = world.begin().await;
        let on_crash = if n == 5 { OnCrash::Expire } else { OnCrash::Release };
        client.acquire(Acquire { on_crash, ..acquire(n, &format!("k-{n}")) }).await;
        let grant = client.granted(n).await;
        clients.push((n, client, grant));
    }
    let mut waiting = world.begin().await;
    waiting.acquire(acquire(1, "k-0")).await;
    sleep(Duration::from_millis(20)).await;

    let began = Instant::now();
    let drained = world.keeper.drain(SECOND).await;
    assert_eq!(began.elapsed(), SECOND);
    assert_eq!(drained, Drained { released: 22, failed: 1, kept: 1, left: 1, ..Drained::default() });
    for (n, client, grant) in &mut clients {
        let free = world.store.is_free(&format!("k-{n}"));
        assert_eq!(free, ![3, 5, 7].contains(n), "{n}");
        assert!(matches!(client.receive().await, FromKeeper::Lost { id, .. } if id == *n));
        assert!(matches!(world.keeper.check(grant.owner), CheckAnswer::Unknown | CheckAnswer::Lost { .. }));
    }
    assert_eq!(waiting.failed(1).await.0, FailKind::ShuttingDown);
    waiting.acquire(acquire(2, "x")).await;
    assert_eq!(waiting.failed(2).await.0, FailKind::ShuttingDown);
    assert_eq!(world.store.requests("x", |_| true), []);
}

#[tokio::test(start_paused = true)]
async fn drain_returns_as_soon_as_all_is_done() {
    let world = World::new();
    let began = Instant::now();
    assert_eq!(world.keeper.drain(2 * SECOND).await, Drained::default());
    assert_eq!(began.elapsed(), Duration::ZERO);

    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    let began = Instant::now();
    assert_eq!(world.keeper.drain(2 * SECOND).await, Drained { released: 1, ..Drained::default() });
    assert_eq!(began.elapsed(), Duration::from_millis(5));
    world.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_on_its_way_back_is_counted_with_the_rest() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Release { .. } => Fate::slow(Duration::from_millis(300)),
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.release(1, ReleaseReason::Finished, true).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(world.keeper.drain(2 * SECOND).await, Drained { released: 1, ..Drained::default() });
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
}

#[tokio::test(start_paused = true)]
async fn stop_ends_connections_and_tasks_and_nobody_goes_on_believing() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    world.keeper.stop();
    sleep(SECOND).await;
    assert_eq!(world.keeper.inner.tasks.live(), 0);
    assert!(matches!(world.keeper.check(grant.owner), CheckAnswer::Lost { .. }));
    while client.next().await.is_some() {}
    client.vanish().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_every_task() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    let shared = std::sync::Arc::downgrade(&world.keeper.inner.shared);
    client.served.abort();
    let World { keeper, store, .. } = world;
    drop(keeper);
    sleep(SECOND).await;
    assert!(shared.upgrade().is_none());
    sleep(60 * SECOND).await;
    assert_eq!(store.renewals("a"), 0);
}
