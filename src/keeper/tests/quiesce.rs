//! What happens before the environment may freeze.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::support::{SECOND, World, acquire};
use crate::protocol::{Outcome, OwnerId, Request};
use crate::session::{FromKeeper, ReleaseReason, Table};
use crate::store::Lock;

const LIMIT: Duration = Duration::from_millis(1200);

#[tokio::test(start_paused = true)]
async fn it_returns_when_the_last_write_is_answered() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Release { .. } => Fate::slow(Duration::from_millis(400)),
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.vanish().await;
    let began = Instant::now();
    assert_eq!(world.keeper.quiesce(LIMIT).await, 0);
    assert!(world.store.is_free("a"));
    assert_eq!(began.elapsed(), Duration::from_millis(402));
    assert_eq!(world.store.connections_dropped(), 0);
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_writes_are_given_up_with_their_connections_and_sent_again_after_the_freeze() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Release { .. } => Fate::SWALLOWED,
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.vanish().await;
    let began = Instant::now();
    assert_eq!(world.keeper.quiesce(LIMIT).await, 1);
    assert_eq!(began.elapsed(), LIMIT);
    assert_eq!((world.store.connections_dropped(), world.store.cancelled()), (1, 1));

    // Nothing goes out between here and the freeze, though the release is still owed.
    world.store.decide(|_, _| Fate::USUAL);
    sleep(Duration::from_millis(200)).await;
    let releases =
        |world: &World| world.store.requests("a", |request| matches!(request, Request::Release { .. })).len();
    assert_eq!(releases(&world), 1);
    assert_eq!(world.keeper.writes_in_flight(), 1);
    // The next invocation's session finds the key free a moment later.
    let mut next = world.begin().await;
    next.take(1, "a").await;
    assert_eq!(releases(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn a_keeper_that_was_not_frozen_after_all_speaks_again() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    assert_eq!(world.keeper.quiesce(LIMIT).await, 0);
    let asked = Instant::now();
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(asked.elapsed(), Duration::from_millis(255));
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_given_up_at_its_latest_moment_is_awaited_with_its_cleanup() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::slow(Duration::from_millis(500)),
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.acquire(crate::session::Acquire { answer_within_ms: Some(100), ..acquire(1, "a") }).await;
    client.failed(1).await;
    assert_eq!(world.keeper.quiesce(LIMIT).await, 0);
    assert!(world.store.is_free("a"));
}

#[tokio::test(start_paused = true)]
async fn a_journals_release_is_conditional_on_the_owner() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    let later = world.elsewhere();
    let lock = Lock {
        table: Table::new("locks"),
        key: "a".to_owned(),
        holder: Default::default(),
        attributes: Default::default(),
    };
    let refused = later.keeper.release_owner(&lock, OwnerId::from_u128(1), SECOND).await;
    assert!(matches!(refused, Outcome::Refused { .. }));
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    assert!(matches!(later.keeper.release_owner(&lock, grant.owner, SECOND).await, Outcome::Written { .. }));
    assert!(world.store.is_free("a"));
    assert_eq!(later.keeper.writes_in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_of_a_crashed_handler_that_was_given_up_is_cleaned_up_after_the_freeze() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::UNANSWERED,
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    // One attempt may take longer than the keeper may before a freeze.
    client.acquire(crate::session::Acquire { wait_ms: 60_000, ..acquire(1, "a") }).await;
    sleep(Duration::from_millis(10)).await;
    client.vanish().await;
    // The attempt, and the release that is owed for it.
    assert_eq!(world.keeper.writes_in_flight(), 2);
    assert_eq!(world.keeper.quiesce(LIMIT).await, 1);
    assert!(world.store.owner("a").is_some());
    world.clock.freeze(600 * SECOND);
    world.store.decide(|_, _| Fate::USUAL);
    let mut next = world.begin().await;
    let grant = next.take(1, "a").await;
    assert!(grant.waited_ms < 100, "{grant:?}");
    assert_eq!(world.store.connections_dropped(), 2);
}
