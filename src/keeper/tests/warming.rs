//! The connection that is made while a handler reads its event, after a silence that the old one may not have outlived.

use std::time::Duration;

use tokio::time::sleep;

use super::memory_store::Fate;
use super::support::{SECOND, World};
use crate::protocol::Request;
use crate::session::ReleaseReason;

/// The connections that were given up, and those that were made ahead.
fn connections(world: &World) -> (usize, usize) {
    (world.store.connections_dropped(), world.store.warmed())
}

#[tokio::test(start_paused = true)]
async fn after_thirty_seconds_of_silence_one_connection_is_made_ahead() {
    let world = World::new();
    world.clock.freeze(30 * SECOND);
    world.keeper.warm_up_after_silence().await;
    assert_eq!(connections(&world), (0, 0), "the old one may still be used");
    world.clock.freeze(SECOND);
    world.keeper.warm_up_after_silence().await;
    assert_eq!(connections(&world), (1, 1));
    world.keeper.warm_up_after_silence().await;
    assert_eq!(connections(&world), (1, 1));
    // The lock finds it.
    let mut client = world.begin().await;
    client.take(1, "a").await;
    assert_eq!(connections(&world), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_no_silence() {
    let world = World::new();
    world.clock.freeze(20 * SECOND);
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.release(1, ReleaseReason::Finished, true).await;
    client.receive().await;
    world.clock.freeze(20 * SECOND);
    world.keeper.warm_up_after_silence().await;
    assert_eq!(connections(&world), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_asked_for_already_makes_its_connection_itself() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::slow(Duration::from_millis(200)),
        _ => Fate::USUAL,
    });
    world.clock.freeze(60 * SECOND);
    let mut client = world.begin().await;
    client.acquire(super::support::acquire(1, "a")).await;
    sleep(Duration::from_millis(100)).await;
    world.keeper.warm_up_after_silence().await;
    client.granted(1).await;
    assert_eq!(connections(&world), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_begun_before_a_freeze_is_not_used_after_it() {
    for made_ahead in [true, false] {
        let world = World::new();
        world.store.warms_in(SECOND);
        world.clock.freeze(31 * SECOND);
        let keeper = world.keeper.clone();
        let warming = tokio::spawn(async move {
            if made_ahead { keeper.warm_up_after_silence().await } else { keeper.warm_up().await }
        });
        sleep(Duration::from_millis(500)).await;
        let (dropped, _) = connections(&world);
        world.clock.freeze(600 * SECOND);
        warming.await.unwrap();
        let mut client = world.begin().await;
        client.take(1, "a").await;
        assert_eq!(connections(&world), (dropped + 1, 1), "{made_ahead}");
    }
}
