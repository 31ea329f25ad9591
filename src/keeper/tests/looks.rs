//! Keys that are looked at, and what leases have taken.

use std::time::Duration;

use super::memory_store::Fate;
use super::support::{Client, SECOND, START_MS, World, acquire};
use crate::clock::Wall;
use crate::keeper::inspect::MAX_LOOKS;
use crate::protocol::{FailureKind, Format, HeldRow, Hints, OwnerId, Request, Row, Unusable, Version};
use crate::session::{Counted, FailKind, FromKeeper, Inspect, ReleaseReason, RowState, Table, ToKeeper};

fn inspect(id: u64, key: &str) -> Inspect {
    Inspect { id, key: key.to_owned(), table: Table::new("locks"), server_time: true }
}

async fn look(client: &mut Client, inspect: Inspect) -> RowState {
    client.send(&ToKeeper::Inspect(Box::new(inspect))).await;
    match client.receive().await {
        FromKeeper::Inspected(inspected) => inspected.row,
        line => panic!("{line:?}"),
    }
}

async fn count(client: &mut Client, id: u64) -> Counted {
    client.send(&ToKeeper::Count { id }).await;
    match client.receive().await {
        FromKeeper::Counted(counted) => *counted,
        line => panic!("{line:?}"),
    }
}

/// How long the row was seen as it is, and when it can end.
fn times(state: &RowState) -> (u64, u64) {
    match state {
        RowState::Held { unchanged_for_ms, retry_after_ms, .. } => (*unchanged_for_ms, *retry_after_ms),
        state => panic!("{state:?}"),
    }
}

fn held(owner: u128, expires_at: Option<u64>) -> Row {
    Row::Held(HeldRow {
        owner: OwnerId::from_u128(owner),
        version: Version::Counter(START_MS),
        lease: 30 * SECOND,
        expires_at: expires_at.map(Wall::from_millis),
        holder: None,
        hints: Hints::default(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_look_reads_once_and_writes_nothing() {
    let world = World::new();
    let mut client = world.begin().await;
    assert_eq!(look(&mut client, inspect(1, "k")).await, RowState::Absent);
    world.store.put("k", Row::Free { version: 7, hints: Hints::default() });
    assert_eq!(look(&mut client, inspect(2, "k")).await, RowState::Free { version: 7 });
    world.store.put("k", held(9, None));
    let expected = RowState::Held {
        owner: OwnerId::from_u128(9),
        version: Some(START_MS),
        lease_ms: 30_000,
        unchanged_for_ms: 0,
        retry_after_ms: 30_000,
        holder: None,
    };
    assert_eq!(look(&mut client, inspect(3, "k")).await, expected);
    assert_eq!(world.store.requests("k", |request| *request == Request::Read).len(), 3);
    assert_eq!(world.store.requests("k", |_| true).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn unchanged_is_told_from_the_second_look_on_and_only_while_nothing_changes() {
    let world = World::new();
    let mut client = world.begin().await;
    world.store.put("k", held(9, None));
    assert_eq!(times(&look(&mut client, inspect(1, "k")).await), (0, 30_000));
    tokio::time::sleep(10 * SECOND).await;
    // Another session of the same keeper: the memory is the keeper's.
    let mut other = world.begin().await;
    let (unchanged, retry_after) = times(&look(&mut other, inspect(1, "k")).await);
    assert!((10_000..10_100).contains(&unchanged) && unchanged + retry_after == 30_000, "{unchanged} {retry_after}");
    world.store.put("k", held(10, None));
    assert_eq!(times(&look(&mut client, inspect(2, "k")).await), (0, 30_000));
    // In between it was free.
    world.store.put("k", Row::Absent);
    assert_eq!(look(&mut client, inspect(3, "k")).await, RowState::Absent);
    world.store.put("k", held(10, None));
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(times(&look(&mut client, inspect(4, "k")).await), (0, 30_000));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ended_by_server_time_is_told_at_the_first_look() {
    let world = World::new();
    let mut client = world.begin().await;
    world.store.put("k", held(9, Some(START_MS - 60_000)));
    assert_eq!(times(&look(&mut client, inspect(1, "k")).await), (0, 0));
    world.store.put("k", held(11, Some(START_MS + 1_000)));
    let (_, retry_after) = times(&look(&mut client, inspect(2, "k")).await);
    assert!((5_000..8_000).contains(&retry_after), "{retry_after}");
    let without = Inspect { server_time: false, ..inspect(3, "k") };
    world.store.put("k", held(12, Some(START_MS - 60_000)));
    assert_eq!(times(&look(&mut client, without).await), (0, 30_000));
}

#[tokio::test(start_paused = true)]
async fn who_takes_over_later_has_seen_the_row_since_the_look() {
    let world = World::new();
    let mut client = world.begin().await;
    world.store.put("k", held(9, None));
    look(&mut client, inspect(1, "k")).await;
    tokio::time::sleep(30 * SECOND).await;
    let grant = client.take(2, "k").await;
    assert!(grant.waited_ms < 100, "{} ms", grant.waited_ms);
    assert_eq!(count(&mut client, 2).await.takeovers, 1);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_not_ours_and_a_store_that_fails_are_told_and_nothing_is_lost_by_it() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "held").await;
    let foreign = Unusable::Foreign { expected: Format::default(), format: None };
    let malformed = Unusable::Malformed { attribute: "version".to_owned(), found: "is a string".to_owned() };
    for (id, unusable, kind) in [(2, foreign, FailKind::ForeignRow), (3, malformed, FailKind::MalformedRow)] {
        world.store.put("k", Row::Unusable(unusable));
        client.send(&ToKeeper::Inspect(Box::new(inspect(id, "k")))).await;
        let (told, message) = client.failed(id).await;
        assert_eq!(told, kind);
        assert!(message.contains("in table `locks`"), "{message}");
    }
    world.store.decide(|_, request| match request {
        Request::Read => Fate::failed(FailureKind::AccessDenied),
        _ => Fate::USUAL,
    });
    client.send(&ToKeeper::Inspect(Box::new(inspect(4, "k")))).await;
    assert_eq!(client.failed(4).await.0, FailKind::AccessDenied);
    client.send(&ToKeeper::Inspect(Box::new(inspect(5, "")))).await;
    assert_eq!(client.failed(5).await.0, FailKind::BadRequest);
    client.hears_nothing(60 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn looks_without_an_answer_are_bounded_and_end_with_their_session_and_the_keeper() {
    let world = World::new();
    world.store.decide(|_, _| Fate::SWALLOWED);
    let mut client = world.begin().await;
    for id in 0..=MAX_LOOKS as u64 {
        client.send(&ToKeeper::Inspect(Box::new(inspect(id, "k")))).await;
    }
    let (kind, message) = client.failed(MAX_LOOKS as u64).await;
    assert_eq!(kind, FailKind::BadRequest);
    assert!(message.contains("64 looks"), "{message}");
    let drained = world.keeper.drain(SECOND).await;
    assert_eq!(drained.left, 0);
    for _ in 0..MAX_LOOKS {
        assert!(matches!(client.receive().await, FromKeeper::Failed { kind: FailKind::ShuttingDown, .. }));
    }
    client.vanish().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_counts_what_it_took_to_get_and_to_keep_it() {
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "k").await;
    let elsewhere = world.elsewhere();
    let mut second = elsewhere.begin().await;
    second.acquire(acquire(1, "k")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    first.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(first.receive().await, FromKeeper::Released { id: 1 });
    second.granted(1).await;
    let counted = count(&mut second, 1).await;
    assert_eq!((counted.attempts, counted.attempts_refused, counted.attempts_unknown), (2, 1, 0));
    assert_eq!((counted.write_requests, counted.conditional_failures, counted.request_failures), (2, 1, 0));
    assert!(counted.read_requests >= 1 && counted.waited_ms >= 300, "{counted:?}");
    tokio::time::sleep(25 * SECOND).await;
    let counted = count(&mut second, 1).await;
    assert_eq!((counted.renewals, counted.renewal_failures, counted.write_requests), (2, 0, 4));
    // What the first one cost is known for as long as its session is there.
    assert_eq!(count(&mut first, 1).await.write_requests, 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_for_the_lease_that_met_them_and_outlive_its_loss() {
    let world = World::new();
    let mut client = world.begin().await;
    let mut attempts = 0;
    world.store.decide(move |_, request| match request {
        Request::Acquire { .. } => {
            attempts += 1;
            match attempts {
                1 => Fate::failed(FailureKind::Throttled),
                2 => Fate::failed(FailureKind::Server),
                _ => Fate::USUAL,
            }
        }
        Request::Renew { .. } => Fate::failed(FailureKind::Throttled),
        _ => Fate::USUAL,
    });
    client.take(1, "k").await;
    let counted = count(&mut client, 1).await;
    assert_eq!((counted.attempts, counted.attempts_refused, counted.attempts_unknown), (3, 1, 1));
    assert_eq!((counted.request_failures, counted.conditional_failures), (2, 0));
    loop {
        match client.receive().await {
            FromKeeper::AtRisk { .. } => {}
            FromKeeper::Lost { .. } => break,
            line => panic!("{line:?}"),
        }
    }
    let counted = count(&mut client, 1).await;
    assert!(counted.renewal_failures >= 3 && counted.renewals == 0, "{counted:?}");
    assert_eq!(counted.request_failures, counted.renewal_failures + 2);
    client.vanish().await;
    world.all_ended().await;
}
