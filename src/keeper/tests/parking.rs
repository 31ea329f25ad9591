//! Keys that stay held after the work is done, until their minimum is over.

use std::time::Duration;

use super::memory_store::Fate;
use super::support::{Client, SECOND, World, acquire};
use crate::protocol::{FailureKind, HolderInfo, Outcome, Request, Row};
use crate::session::{Acquire, FailKind, FromKeeper, OnCrash, ReleaseReason, ToKeeper};
use crate::store::Lock;

const MINIMUM: Duration = Duration::from_secs(600);

const fn is_parking(request: &Request) -> bool {
    matches!(request, Request::Park { .. })
}

/// The row's holder, where it is parked.
fn parked(world: &World) -> Option<HolderInfo> {
    match world.store.row("a") {
        Row::Held(held) => held.holder.map(|holder| *holder).filter(|holder| holder.parked),
        _ => None,
    }
}

/// Who asks elsewhere and does not wait: who holds it, and when that can end.
async fn asks(world: &World, wait: Duration) -> Client {
    let mut client = world.begin().await;
    client.acquire(Acquire { wait_ms: wait.as_millis() as u64, ..acquire(2, "a") }).await;
    client
}

#[tokio::test(start_paused = true)]
async fn a_key_stays_held_for_its_minimum_and_who_asks_is_told_who_and_how_long() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    client.park(1, ReleaseReason::Finished, MINIMUM).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    world.all_ended().await;
    assert_eq!(parked(&world).unwrap().request_id, "r-1");
    assert_ne!(world.store.owner("a"), Some(grant.owner));
    assert_eq!(world.home.unsettled(), [], "its note is gone");
    let counts = world.keeper.counts();
    assert_eq!((counts.parked, counts.released, counts.release_failures), (1, 0, 0));

    let elsewhere = world.elsewhere();
    let mut second = asks(&elsewhere, Duration::ZERO).await;
    let FromKeeper::Busy { holder, retry_after_ms, .. } = second.receive().await else { panic!() };
    assert!(holder.unwrap().parked);
    assert!((600_000..=667_000).contains(&retry_after_ms), "{retry_after_ms}");

    // Who waits gets it when the minimum is over, and not before.
    let began = tokio::time::Instant::now();
    let mut third = asks(&elsewhere, 3_600 * SECOND).await;
    let next = third.granted(2).await;
    assert!(began.elapsed() >= MINIMUM - SECOND, "{:?}", began.elapsed());
    assert!(next.token > grant.token + 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_broken_off_or_not_begun_keeps_nothing() {
    for reason in [ReleaseReason::Dropped, ReleaseReason::Cancelled] {
        let world = World::new();
        let mut client = world.begin().await;
        client.take(1, "a").await;
        client.park(1, reason, MINIMUM).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        assert!(world.store.is_free("a"), "{reason:?}");
    }
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(1, "a") }).await;
    let grant = client.granted(1).await;
    client.park(1, ReleaseReason::Dropped, MINIMUM).await;
    world.all_ended().await;
    assert_eq!(world.store.owner("a"), Some(grant.owner), "left to expire");
}

#[tokio::test(start_paused = true)]
async fn a_minimum_of_zero_or_one_that_is_over_frees_the_key_and_one_too_long_is_cut() {
    for (minimum, worked, free) in [(0, 0, true), (5, 6, true), (5, 3, false)] {
        let world = World::new();
        let mut client = world.begin().await;
        client.take(1, "a").await;
        tokio::time::sleep(worked * SECOND).await;
        client.park(1, ReleaseReason::Finished, minimum * SECOND).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        assert_eq!(world.store.is_free("a"), free, "{minimum} {worked}");
    }
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    let release =
        ToKeeper::Release { id: 1, reason: ReleaseReason::Finished, wait: true, hold_at_least_ms: Some(u64::MAX) };
    client.send(&release).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    let Row::Held(held) = world.store.row("a") else { panic!() };
    assert!(held.lease <= Duration::from_secs(86_400) && held.lease > Duration::from_secs(86_390), "{:?}", held.lease);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_behind_it_changes_nothing() {
    for vanishes in [false, true] {
        let world = World::new();
        world.store.decide(|_, request| if is_parking(request) { Fate::slow(SECOND) } else { Fate::USUAL });
        let mut client = world.begin().await;
        client.take(1, "a").await;
        client.park(1, ReleaseReason::Finished, MINIMUM).await;
        if vanishes {
            client.vanish().await;
        } else {
            client.send(&ToKeeper::End).await;
        }
        world.all_ended().await;
        assert!(parked(&world).is_some(), "{vanishes}");
        assert_eq!(world.keeper.counts().crash_releases, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_parking_whose_answer_is_lost_is_sent_again_and_found_done() {
    for landed in [true, false] {
        let world = World::new();
        let mut first = true;
        world.store.decide(move |_, request| match request {
            Request::Park { .. } if std::mem::take(&mut first) => {
                if landed {
                    Fate::UNANSWERED
                } else {
                    Fate::SWALLOWED
                }
            }
            _ => Fate::USUAL,
        });
        let mut client = world.begin().await;
        client.take(1, "a").await;
        client.park(1, ReleaseReason::Finished, MINIMUM).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        world.all_ended().await;
        assert_eq!(world.store.requests("a", is_parking).len(), 2);
        assert!(parked(&world).is_some());
        assert_eq!(world.keeper.counts().parked, 1);
        assert_eq!(world.home.unsettled(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_own_late_renewal_does_not_keep_a_key_from_staying_held() {
    let world = World::new();
    // It lands, and its answer comes when nobody waits for it any more.
    world.store.decide(|_, request| match request {
        Request::Renew { .. } => Fate::slow(5 * SECOND),
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert_eq!(world.store.renewals("a"), 1);
    client.park(1, ReleaseReason::Finished, MINIMUM).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.store.requests("a", is_parking).len(), 2, "the first met the renewal's version");
    assert!(parked(&world).is_some());
    world.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_parking_that_is_refused_for_good_is_told_as_a_failure() {
    let world = World::new();
    world.store.decide(
        |_, request| {
            if is_parking(request) { Fate::failed(FailureKind::AccessDenied) } else { Fate::USUAL }
        },
    );
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.park(1, ReleaseReason::Finished, MINIMUM).await;
    assert_eq!(client.failed(1).await.0, FailKind::AccessDenied);
    assert_eq!(world.keeper.counts().release_failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_release_from_a_journal_does_not_meet_a_key_that_is_kept() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    client.park(1, ReleaseReason::Finished, MINIMUM).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    let Acquire { table, key, holder, .. } = acquire(1, "a");
    let lock = Lock { table, key, holder, attributes: Default::default() };
    let outcome = world.elsewhere().keeper.release_owner(&lock, grant.owner, SECOND).await;
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
    assert!(parked(&world).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_what_is_being_parked_and_counts_it() {
    let world = World::new();
    world.store.decide(|_, request| if is_parking(request) { Fate::slow(SECOND) } else { Fate::USUAL });
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.park(1, ReleaseReason::Finished, MINIMUM).await;
    client.hears_nothing(Duration::from_millis(100)).await;
    assert_eq!(world.keeper.writes_in_flight(), 1, "no freeze before it is written");
    let drained = world.keeper.drain(2 * SECOND).await;
    assert_eq!((drained.parked, drained.released, drained.left), (1, 0, 0));
    assert!(parked(&world).is_some());
}
