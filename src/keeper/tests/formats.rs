//! Tables of other row formats: what a lease there goes without, and what becomes of lost replies all the same.

use std::time::Duration;

use tokio::time::sleep;

use super::memory_store::Fate;
use super::support::{Client, SECOND, World, acquire};
use crate::protocol::{FailureKind, Format, OwnerId, Request, Row, Version};
use crate::session::{Acquire, CheckAnswer, FailKind, FromKeeper, ReleaseReason, Table};

/// An acquisition in a table that speaks pydynox's format.
fn acquire_pydynox(id: u64, key: &str) -> Acquire {
    Acquire { table: Table::new("python-locks").speaking(Format::PydynoxV1), ..acquire(id, key) }
}

/// The owner of a grant without a fencing token.
async fn granted_without_token(client: &mut Client, id: u64) -> OwnerId {
    match client.receive().await {
        FromKeeper::Granted { id: told, owner, token: None, .. } if told == id => owner,
        line => panic!("no grant of {id} without a token: {line:?}"),
    }
}

/// The versions that a key's row was given, in order.
fn versions(world: &World, key: &str) -> Vec<Version> {
    let writes = world.store.requests(key, |request| !matches!(request, Request::Read | Request::Release { .. }));
    let given = writes.iter().map(|request| match request {
        Request::Acquire { version, .. } | Request::TakeOver { version, .. } => version.unwrap(),
        Request::Renew { new_version, .. } => *new_version,
        other => panic!("{other:?}"),
    });
    given.collect()
}

#[tokio::test(start_paused = true)]
async fn one_keeper_serves_tables_of_several_formats_at_once() {
    let world = World::new();
    let mut client = world.begin().await;
    let ours = client.take(1, "a").await;
    client.acquire(acquire_pydynox(2, "b")).await;
    let theirs = granted_without_token(&mut client, 2).await;
    sleep(60 * SECOND).await;
    for owner in [ours.owner, theirs] {
        assert!(matches!(world.keeper.check(owner), CheckAnswer::Held { .. }));
    }
    assert!(world.store.renewals("b") >= 5, "{}", world.store.renewals("b"));

    // Versions are UUIDs, each a fresh one, and no row says when it ends by server time.
    let mut given = versions(&world, "b");
    assert!(given.iter().all(|version| version.counter().is_none()), "{given:?}");
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), 1 + world.store.renewals("b"));
    let Row::Held(held) = world.store.row("b") else { panic!("not held") };
    assert_eq!((held.owner, held.expires_at), (theirs, None));
    let expiries = world.store.requests("b", |request| {
        matches!(request, Request::Acquire { expires_at: Some(_), .. } | Request::Renew { expires_at: Some(_), .. })
    });
    assert_eq!(expiries, []);

    for id in [1, 2] {
        client.release(id, ReleaseReason::Finished, true).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id });
    }
    assert!(world.store.is_free("a"));
    assert_eq!(world.store.row("b"), Row::Absent, "a release deletes the row");
    let releases = world.store.requests("b", |request| matches!(request, Request::Release { ttl: Some(_), .. }));
    assert_eq!(releases, [], "there is no row to sweep");
}

#[tokio::test(start_paused = true)]
async fn a_grant_waits_for_no_date_where_nothing_rests_on_it() {
    let world = World::new();
    world.store.leave_out_dates();
    let mut client = world.begin().await;
    client.acquire(acquire_pydynox(1, "b")).await;
    granted_without_token(&mut client, 1).await;
    assert_eq!(world.store.renewals("b"), 0);
    client.take(2, "a").await;
    assert_eq!(world.store.renewals("a"), 1, "a counter that nobody checked is confirmed first");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_reply_is_lost_is_replaced_by_the_next() {
    let world = World::new();
    let mut first = true;
    world.store.decide(move |_, request| match request {
        Request::Acquire { .. } if std::mem::take(&mut first) => Fate::UNANSWERED,
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.acquire(Acquire { wait_ms: 20_000, ..acquire_pydynox(1, "b") }).await;
    let owner = granted_without_token(&mut client, 1).await;
    let attempts = world.store.requests("b", |request| matches!(request, Request::Acquire { .. }));
    let [Request::Acquire { owner: lost, .. }, Request::Acquire { owner: next, unknown, .. }] = &attempts[..] else {
        panic!("{attempts:?}");
    };
    assert_eq!((next, unknown), (&owner, &vec![*lost]));
    assert_eq!(world.store.owner("b"), Some(owner));
}

#[tokio::test(start_paused = true)]
async fn attempts_of_unknown_outcome_are_cleaned_up_when_it_gives_up() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::UNANSWERED,
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.acquire(Acquire { wait_ms: 0, ..acquire_pydynox(1, "b") }).await;
    assert_eq!(client.failed(1).await.0, FailKind::Timeout);
    world.all_ended().await;
    assert_eq!(world.store.row("b"), Row::Absent);
    assert_eq!(world.home.unsettled(), []);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_reply_is_lost_costs_nobody_the_lease() {
    let world = World::new();
    let mut renewals = 0;
    world.store.decide(move |_, request| match request {
        Request::Renew { .. } => {
            renewals += 1;
            if renewals % 3 == 1 { Fate::UNANSWERED } else { Fate::USUAL }
        }
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.acquire(acquire_pydynox(1, "b")).await;
    let owner = granted_without_token(&mut client, 1).await;
    // The jitter of the one that follows decides whether the lease is at risk before it is answered.
    client.loses_nothing(300 * SECOND).await;
    assert!(matches!(world.keeper.check(owner), CheckAnswer::Held { .. }));
    assert_eq!(world.keeper.counts().lost, 0);
    assert!(world.keeper.counts().renewals_failed >= 5);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_reply_is_lost_is_sent_again() {
    let world = World::new();
    let mut first = true;
    world.store.decide(move |_, request| match request {
        Request::Release { .. } if std::mem::take(&mut first) => Fate::UNANSWERED,
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.acquire(acquire_pydynox(1, "b")).await;
    granted_without_token(&mut client, 1).await;
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.store.row("b"), Row::Absent);
    assert_eq!(world.keeper.counts().release_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn throttles_and_conflicts_cost_neither_an_acquisition_nor_a_lease() {
    let world = World::new();
    let mut requests = 0;
    world.store.decide(move |_, _| {
        requests += 1;
        match requests % 4 {
            1 => Fate::failed(FailureKind::Throttled),
            2 => Fate::failed(FailureKind::TransactionConflict),
            _ => Fate::USUAL,
        }
    });
    let mut client = world.begin().await;
    client.acquire(acquire_pydynox(1, "b")).await;
    let owner = granted_without_token(&mut client, 1).await;
    client.hears_nothing(120 * SECOND).await;
    assert!(matches!(world.keeper.check(owner), CheckAnswer::Held { .. }));
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.store.row("b"), Row::Absent);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_row_is_taken_over_once_it_was_seen_unchanged_for_its_lease() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { lease_ms: 3_000, ..acquire_pydynox(1, "b") }).await;
    granted_without_token(&mut client, 1).await;
    world.keeper.stop();

    let elsewhere = world.elsewhere();
    let mut client = elsewhere.begin().await;
    client.acquire(Acquire { wait_ms: 20_000, ..acquire_pydynox(1, "b") }).await;
    granted_without_token(&mut client, 1).await;
    assert_eq!(elsewhere.keeper.counts().takeovers, 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_format_is_told_and_the_sessions_other_leases_live_on() {
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    let table = Table { format: "java/1".to_owned(), ..Table::new("locks") };
    client.acquire(Acquire { table, ..acquire(2, "b") }).await;
    let (kind, message) = client.failed(2).await;
    assert_eq!(kind, FailKind::BadRequest);
    assert!(message.contains("\"java/1\"") && message.contains("`leasehold/1` or `pydynox/1`"), "{message}");
    sleep(Duration::from_secs(1)).await;
    assert!(matches!(world.keeper.check(grant.owner), CheckAnswer::Held { .. }));
}
