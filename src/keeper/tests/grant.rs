//! Acquire, renew, check.

use std::time::Duration;

use tokio::time::sleep;

use super::memory_store::Fate;
use super::support::{SECOND, Told, World, acquire};
use crate::keeper::KeeperOptions;
use crate::protocol::{FailureKind, Format, OwnerId, Request, Row, Unusable, Version};
use crate::session::{Acquire, CheckAnswer, FailKind, FromKeeper, OnCrash, ReleaseReason, Table, ToKeeper};

fn leases_written(world: &World, key: &str) -> Vec<Duration> {
    let requests = world.store.requests(key, |request| matches!(request, Request::Acquire { .. }));
    requests
        .into_iter()
        .filter_map(|r| if let Request::Acquire { lease, .. } = r { Some(lease) } else { None })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_free_key_is_granted_renewed_every_third_of_the_lease_and_released() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    assert_eq!((grant.attempts, grant.waited_ms), (1, 5));
    assert_eq!(grant.valid_for_ms, 26_995);
    assert_eq!(world.keeper.held(), 1);

    sleep(95 * SECOND).await;
    assert_eq!(world.store.renewals("a"), 9);
    let Row::Held(row) = world.store.row("a") else { panic!("not held") };
    assert_eq!(row.version, Version::Counter(grant.token + 9));

    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert!(world.store.is_free("a"));
    world.all_ended().await;
    let counts = world.keeper.counts();
    assert_eq!((counts.granted, counts.renewals, counts.released, counts.crash_releases), (1, 9, 1, 0));
    assert_eq!(counts.requests, 11);
    assert_eq!(world.home.unsettled(), []);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_neither_reads_nor_writes_is_renewed_all_the_same() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    sleep(600 * SECOND).await;
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    assert!(matches!(world.keeper.check(grant.owner), CheckAnswer::Held { .. }));
}

#[tokio::test(start_paused = true)]
async fn the_home_hears_of_sessions_and_attempts_in_order() {
    let world = World::new();
    let mut client = world.begin().await;
    let one = client.take(1, "a").await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(2, "b") }).await;
    let two = client.granted(2).await;
    client.send(&ToKeeper::End).await;
    assert_eq!(client.next().await, None);
    world.all_ended().await;

    let told = world.home.told();
    let Told::Began(session, _) = told[0] else { panic!("{told:?}") };
    assert_eq!(
        told[..4],
        [
            Told::Began(session, "r-1".to_owned()),
            Told::Attempt { pid: 77, key: "a".to_owned(), owner: one.owner, keep_on_crash: false },
            Told::Attempt { pid: 77, key: "b".to_owned(), owner: two.owner, keep_on_crash: true },
            Told::Ended(session, "r-1".to_owned()),
        ]
    );
    assert_eq!(world.home.unsettled(), []);
}

#[tokio::test(start_paused = true)]
async fn a_known_deadline_caps_the_lease_and_needs_no_renewal() {
    let world = World::new();
    let mut client = world.begin_until(Some(7 * SECOND)).await;
    let grant = client.take(1, "a").await;
    assert_eq!(leases_written(&world, "a"), [10 * SECOND]);
    assert!(grant.valid_for_ms >= 8_990, "{grant:?}");
    sleep(8 * SECOND).await;
    assert_eq!(world.store.renewals("a"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_does_not_cap_a_lease_on_managed_instances() {
    let world = World::with(KeeperOptions { managed_instances: true });
    let mut client = world.begin_until(Some(7 * SECOND)).await;
    client.take(1, "a").await;
    assert_eq!(leases_written(&world, "a"), [30 * SECOND]);
    sleep(60 * SECOND).await;
    assert!(world.store.renewals("a") >= 5);
}

#[tokio::test(start_paused = true)]
async fn check_tells_held_lost_and_unknown_without_the_session() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    let mut checking = world.connect();
    sleep(SECOND).await;
    checking.send(&ToKeeper::Check { owner: grant.owner }).await;
    // The answer to the attempt took 5 ms, and validity counts from before it was sent.
    let held = CheckAnswer::Held { valid_for_ms: 27_000 - 1_005 };
    assert_eq!(checking.receive().await, FromKeeper::Checked(held.clone()));
    assert_eq!(world.keeper.check(grant.owner), held);

    checking.send(&ToKeeper::Check { owner: OwnerId::from_u128(9) }).await;
    assert_eq!(checking.receive().await, FromKeeper::Checked(CheckAnswer::Unknown));

    // Frozen past the lease's end: the answer does not wait for the lease's task to notice.
    world.clock.freeze(27 * SECOND);
    assert!(matches!(world.keeper.check(grant.owner), CheckAnswer::Lost { .. }));
    assert!(matches!(client.receive().await, FromKeeper::AtRisk { id: 1 }));
    assert!(matches!(client.receive().await, FromKeeper::Lost { id: 1, .. }));
    checking.send(&ToKeeper::Check { owner: grant.owner }).await;
    assert!(matches!(checking.receive().await, FromKeeper::Checked(CheckAnswer::Lost { .. })));

    client.release(1, ReleaseReason::Finished, false).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    checking.vanish().await;
}

#[tokio::test(start_paused = true)]
async fn a_released_owner_is_unknown() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    client.release(1, ReleaseReason::Finished, true).await;
    client.receive().await;
    assert_eq!(world.keeper.check(grant.owner), CheckAnswer::Unknown);
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_served_are_named_and_the_session_goes_on() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { lease_ms: 10, ..acquire(1, "a") }).await;
    let (kind, message) = client.failed(1).await;
    assert_eq!(kind, FailKind::BadRequest);
    assert!(message.contains("`lease_ms`"), "{message}");
    client.take(1, "a").await;
    client.acquire(acquire(1, "b")).await;
    let (kind, message) = client.failed(1).await;
    assert_eq!(kind, FailKind::BadRequest);
    assert!(message.contains("`id` 1"), "{message}");
    client.take(u64::MAX, "b").await;
}

#[tokio::test(start_paused = true)]
async fn the_same_key_twice_in_one_session_is_answered_at_once() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(acquire(1, "a")).await;
    client.acquire(acquire(2, "a")).await;
    client.acquire(Acquire { table: Table::new("others"), ..acquire(3, "b") }).await;
    assert_eq!(client.failed(2).await.0, FailKind::AlreadyHeld);
    client.granted(1).await;
    client.granted(3).await;
    client.acquire(acquire(4, "a")).await;
    assert_eq!(client.failed(4).await.0, FailKind::AlreadyHeld);
    // Once it is given back it may be asked for again, even before the row is written.
    client.release(1, ReleaseReason::Finished, false).await;
    client.acquire(acquire(5, "a")).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    client.granted(5).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_store_refuses_is_told_by_its_kind() {
    let world = World::new();
    let mut client = world.begin().await;
    let kinds = [
        (FailureKind::MissingTable, FailKind::MissingTable),
        (FailureKind::WrongKeySchema, FailKind::WrongKeySchema),
        (FailureKind::AccessDenied, FailKind::AccessDenied),
        (FailureKind::Credentials, FailKind::Credentials),
        (FailureKind::Rejected, FailKind::Rejected),
        (FailureKind::Throttled, FailKind::Throttled),
        (FailureKind::TransactionConflict, FailKind::TransactionConflict),
        (FailureKind::Server, FailKind::Server),
        (FailureKind::Connection, FailKind::Connection),
    ];
    // Where one may have landed its id is in use for a little longer.
    for (id, (kind, told)) in (10..).zip(kinds) {
        world.store.decide(move |_, _| Fate::failed(kind));
        client.acquire(acquire(id, "a")).await;
        assert_eq!(client.failed(id).await.0, told);
    }
    world.store.decide(|_, _| Fate::USUAL);
    world
        .store
        .put("a", Row::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format: Some("other".to_owned()) }));
    client.acquire(acquire(1, "a")).await;
    assert_eq!(client.failed(1).await.0, FailKind::ForeignRow);
    world.all_ended().await;
    assert_eq!(world.home.unsettled(), []);
    assert_eq!(world.keeper.counts().failed, 10);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_answer_is_lost_is_replaced_by_the_next() {
    let world = World::new();
    let mut client = world.begin().await;
    let mut first = true;
    world.store.decide(move |_, _| if std::mem::take(&mut first) { Fate::UNANSWERED } else { Fate::USUAL });
    client.acquire(Acquire { wait_ms: 20_000, ..acquire(1, "a") }).await;
    let grant = client.granted(1).await;
    assert_eq!(grant.attempts, 2);
    assert_eq!(world.store.owner("a"), Some(grant.owner));
    assert_eq!(world.home.unsettled().len(), 2);
    client.vanish().await;
    world.all_ended().await;
    assert_eq!(world.home.unsettled(), []);
}
