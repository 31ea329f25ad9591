//! Leases that are lost while somebody holds them.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::support::{SECOND, World, acquire};
use crate::protocol::{FailureKind, HeldRow, Hints, OwnerId, Request, Row, Version};
use crate::session::{Acquire, CheckAnswer, FromKeeper, ReleaseReason};

#[tokio::test(start_paused = true)]
async fn a_row_taken_deleted_or_freed_by_others_is_a_loss_with_its_reason() {
    let thief = OwnerId::from_u128(7);
    let stolen = HeldRow {
        owner: thief,
        version: Version::Counter(1),
        lease: SECOND,
        expires_at: None,
        holder: None,
        hints: Hints::default(),
    };
    let cases = [
        (Row::Held(stolen), "7"),
        (Row::Absent, "deleted"),
        (Row::Free { version: 3, hints: Hints::default() }, "freed by somebody else"),
    ];
    for (row, words) in cases {
        let world = World::new();
        let mut client = world.begin().await;
        let grant = client.take(1, "a").await;
        world.store.put("a", row.clone());
        assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
        let FromKeeper::Lost { id: 1, reason } = client.receive().await else { panic!("not lost") };
        assert!(reason.contains(words), "{reason}");
        assert_eq!(world.keeper.check(grant.owner), CheckAnswer::Lost { reason });
        assert_eq!(world.home.unsettled(), []);
        // What is lost is not renewed, and giving it back touches nobody's row.
        sleep(60 * SECOND).await;
        client.release(1, ReleaseReason::Finished, true).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        assert_eq!(world.store.row("a"), row);
        let counts = world.keeper.counts();
        assert_eq!((counts.lost, counts.released), (1, 0));
        // The reason is still known afterwards.
        assert!(matches!(world.keeper.check(grant.owner), CheckAnswer::Lost { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_that_fail_put_the_lease_at_risk_and_one_that_succeeds_secures_it() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    world.store.decide(|_, request| match request {
        Request::Renew { .. } => Fate::failed(FailureKind::Throttled),
        _ => Fate::USUAL,
    });
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    world.store.decide(|_, _| Fate::USUAL);
    assert_eq!(client.receive().await, FromKeeper::Secured { id: 1 });
    sleep(100 * SECOND).await;
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    assert!(world.keeper.counts().renewals_failed >= 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_lost_before_anybody_may_take_it() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    let granted = Instant::now();
    world.store.decide(|_, _| Fate::SWALLOWED);
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    assert!(matches!(client.receive().await, FromKeeper::Lost { id: 1, .. }));
    assert!(granted.elapsed() <= 27 * SECOND);
    // The row may still be this owner's, so it is freed all the same once the handler is done.
    world.store.decide(|_, _| Fate::USUAL);
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert!(world.store.is_free("a"));
}

#[tokio::test(start_paused = true)]
async fn max_hold_ends_a_lease_that_no_deadline_ends() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { max_hold_ms: 60_000, ..acquire(1, "a") }).await;
    client.granted(1).await;
    let granted = Instant::now();
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    let FromKeeper::Lost { reason, .. } = client.receive().await else { panic!("not lost") };
    assert!(reason.contains("max_hold"), "{reason}");
    assert!(granted.elapsed() >= 60 * SECOND && granted.elapsed() <= 90 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_lost_key_may_be_asked_for_again_in_the_same_session() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    world.store.put("a", Row::Absent);
    assert_eq!(client.receive().await, FromKeeper::AtRisk { id: 1 });
    assert!(matches!(client.receive().await, FromKeeper::Lost { .. }));
    client.take(2, "a").await;
}

#[tokio::test(start_paused = true)]
async fn after_half_a_minute_without_an_answer_the_next_request_gets_new_connections() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.release(1, ReleaseReason::Finished, true).await;
    client.receive().await;
    sleep(29 * SECOND).await;
    client.take(1, "a").await;
    assert_eq!(world.store.connections_dropped(), 0);
    client.release(1, ReleaseReason::Finished, true).await;
    client.receive().await;
    // A freeze counts, though the monotonic clock stood still.
    world.clock.freeze(31 * SECOND);
    client.take(1, "a").await;
    assert_eq!(world.store.connections_dropped(), 1);
    sleep(Duration::from_secs(95)).await;
    assert_eq!(world.store.connections_dropped(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_has_not_answered() {
    let world = World::new();
    let mut client = world.begin().await;
    let mut left = 2;
    world.store.decide(move |_, request| match request {
        Request::Read => Fate::USUAL,
        _ if left > 0 => {
            left -= 1;
            Fate::PANIC
        }
        _ => Fate::USUAL,
    });
    let grant = client.take(1, "a").await;
    assert_eq!(grant.attempts, 3);
    assert_eq!(world.keeper.writes_in_flight(), 0);
    client.vanish().await;
    world.all_ended().await;
    assert!(world.store.is_free("a"));
}

#[tokio::test(start_paused = true)]
async fn after_refused_credentials_the_new_connection_gets_the_time_that_it_takes() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { lease_ms: 900, ..acquire(1, "a") }).await;
    let grant = client.granted(1).await;
    let (began, mut refused) = (Instant::now(), false);
    world.store.decide(move |_, _| {
        if !std::mem::replace(&mut refused, true) {
            return Fate::failed(FailureKind::Credentials);
        }
        // Longer than a third of the lease, which is what a request has where the connection is there already.
        let connecting = began.elapsed() < Duration::from_millis(800);
        Fate { on_the_way: Duration::from_millis(if connecting { 330 } else { 2 }), ..Fate::USUAL }
    });
    sleep(5 * SECOND).await;
    assert!(matches!(world.keeper.check(grant.owner), CheckAnswer::Held { .. }));
    client.vanish().await;
    world.all_ended().await;
}
