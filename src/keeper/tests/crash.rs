//! Handlers that do not finish.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::support::{SECOND, Told, World, acquire};
use crate::protocol::{FailureKind, Request};
use crate::session::{Acquire, CheckAnswer, OnCrash};

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_frees_within_the_same_turn() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    let gone = Instant::now();
    client.vanish().await;
    // The write is in flight before the home hears that the session is over.
    assert_eq!(world.keeper.writes_in_flight(), 1);
    assert!(matches!(world.home.told().last(), Some(Told::Ended(_, request)) if request == "r-1"));
    world.all_ended().await;
    assert_eq!(gone.elapsed(), Duration::from_millis(5));
    assert!(world.store.is_free("a"));
    assert_eq!(world.keeper.check(grant.owner), CheckAnswer::Unknown);
    let counts = world.keeper.counts();
    assert_eq!((counts.crash_releases, counts.released), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_to_expire_is_left_alone_and_not_renewed() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(1, "a") }).await;
    let grant = client.granted(1).await;
    client.vanish().await;
    world.all_ended().await;
    sleep(60 * SECOND).await;
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    assert_eq!(world.store.renewals("a"), 0);
    assert_eq!(world.keeper.counts().abandoned, 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_granted_is_freed_whatever_on_crash_says() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(1, "a") }).await;
    sleep(Duration::from_millis(3)).await;
    assert!(world.store.owner("a").is_some());
    client.vanish().await;
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.home.unsettled(), []);
}

#[tokio::test(start_paused = true)]
async fn a_half_line_and_unread_answers_are_ends_as_well() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.send_bytes(b"{\"type\":\"rel").await;
    client.vanish().await;
    world.all_ended().await;
    assert!(world.store.is_free("a"));

    // Closing with an answer unread turns the end into a reset.
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.acquire(acquire(1, "b")).await;
    sleep(SECOND).await;
    client.vanish().await;
    world.all_ended().await;
    assert!(world.store.is_free("a"));
}

#[tokio::test(start_paused = true)]
async fn a_served_connection_that_is_dropped_goes_the_way_of_a_crash() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.served.abort();
    assert_eq!(client.next().await, None);
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert!(matches!(world.home.told()[2], Told::Ended(..)));
}

#[tokio::test(start_paused = true)]
async fn a_crash_release_is_tried_again_until_it_is_answered() {
    let world = World::new();
    let mut failures = 5;
    world.store.decide(move |_, request| match request {
        Request::Release { .. } if failures > 0 => {
            failures -= 1;
            Fate::failed([FailureKind::Throttled, FailureKind::Connection][failures % 2])
        }
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.vanish().await;
    // Between two tries it is in flight as well.
    sleep(Duration::from_millis(20)).await;
    assert!(world.keeper.writes_in_flight() >= 1);
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.keeper.counts().released, 1);
}

#[tokio::test(start_paused = true)]
async fn whenever_the_end_comes_only_a_grant_that_was_told_is_left_to_expire() {
    for after in 0..8 {
        let world = World::new();
        let mut client = world.begin().await;
        client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(1, "a") }).await;
        sleep(Duration::from_millis(after)).await;
        client.vanish().await;
        world.all_ended().await;
        let granted = world.keeper.counts().granted == 1;
        assert_eq!(world.store.owner("a").is_some(), granted, "gone after {after} ms");
        assert_eq!(world.home.unsettled(), []);
    }
}
