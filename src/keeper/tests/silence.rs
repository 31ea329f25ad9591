//! Handlers that have to tell of their progress.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::support::{Client, SECOND, World, acquire};
use crate::protocol::Row;
use crate::session::{Acquire, CheckAnswer, FromKeeper, ReleaseReason, ToKeeper};

/// Takes a lease of 30 s that is renewed for a minute of silence.
async fn take(world: &World) -> Client {
    let mut client = world.begin().await;
    client.acquire(Acquire { max_silence_ms: Some(60_000), ..acquire(1, "a") }).await;
    client
}

async fn tell(client: &mut Client) {
    client.send(&ToKeeper::Progress { id: 1 }).await;
}

async fn lost(client: &mut Client) -> String {
    match client.receive().await {
        FromKeeper::Lost { id: 1, reason } => reason,
        line => panic!("not lost: {line:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_handler_is_renewed_no_more_and_loses_its_lease_but_not_its_row() {
    let world = World::new();
    let mut client = take(&world).await;
    let grant = client.granted(1).await;
    let granted = Instant::now();
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    let reason = lost(&mut client).await;
    assert!(reason.contains("`max_silence`"), "{reason}");
    // The last renewal came before the minute was over, and gave 27 s.
    assert!(granted.elapsed() >= 60 * SECOND && granted.elapsed() <= 87 * SECOND, "{:?}", granted.elapsed());
    assert_eq!(world.keeper.check(grant.owner), CheckAnswer::Lost { reason });
    // Who is silent may be at work: the row is left to end by itself for as long as the handler is there.
    sleep(600 * SECOND).await;
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert!(world.store.is_free("a"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_tells_of_its_progress_keeps_its_lease() {
    let world = World::new();
    let mut client = take(&world).await;
    client.granted(1).await;
    for _ in 0..10 {
        client.hears_nothing(50 * SECOND).await;
        tell(&mut client).await;
    }
    assert_eq!(world.keeper.counts().lost, 0);
}

#[tokio::test(start_paused = true)]
async fn progress_in_time_lets_renewals_go_on() {
    let world = World::new();
    let mut client = take(&world).await;
    client.granted(1).await;
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    let renewals = world.keeper.counts().renewals;
    tell(&mut client).await;
    assert_eq!(client.receive().await, FromKeeper::Secured { id: 1 });
    assert_eq!(world.keeper.counts().renewals, renewals + 1);
    client.hears_nothing(50 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn progress_after_the_end_brings_nothing_back() {
    let world = World::new();
    let mut client = take(&world).await;
    client.granted(1).await;
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    lost(&mut client).await;
    let renewals = world.keeper.counts().renewals;
    tell(&mut client).await;
    client.hears_nothing(600 * SECOND).await;
    assert_eq!(world.keeper.counts().renewals, renewals);
}

#[tokio::test(start_paused = true)]
async fn the_first_cause_is_told_where_progress_comes_together_with_the_end() {
    let world = World::new();
    let mut client = take(&world).await;
    client.granted(1).await;
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    // The environment is frozen for longer than the lease has left: the word comes after its end.
    world.clock.freeze(100 * SECOND);
    tell(&mut client).await;
    let reason = lost(&mut client).await;
    assert!(reason.contains("`max_silence`"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn progress_that_nobody_asked_for_changes_nothing() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    client.send(&ToKeeper::Progress { id: 1 }).await;
    client.send(&ToKeeper::Progress { id: 9 }).await;
    client.hears_nothing(Duration::from_secs(300)).await;
    world.store.put("a", Row::Absent);
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    assert!(matches!(lost(&mut client).await.as_str(), "the row was deleted"));
    assert_ne!(world.store.owner("a"), Some(grant.owner));
}
