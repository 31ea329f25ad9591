//! More of everything than a keeper was made for: it serves what it can, in bounds, and those who hold go on holding.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory_store::{Fate, MemoryStore};
use super::support::{Client, SECOND, World, acquire};
use crate::keeper::lanes::{CONTENDING, LEAVING};
use crate::keeper::session::{MAX_LEASES, MAX_LEASES_IN_ALL};
use crate::protocol::{FailureKind, HolderInfo, Request, Row};
use crate::session::{Acquire, FailKind, FromKeeper, OnCrash, ReleaseReason, ToKeeper, encode};

const MS: Duration = Duration::from_millis(1);

/// A store that works off one request at a time, each in this time.
fn one_by_one(store: &MemoryStore, each: Duration) {
    let mut free_at = Instant::now();
    store.decide(move |_, _| {
        free_at = free_at.max(Instant::now()) + each;
        Fate { on_the_way: free_at - Instant::now(), on_the_way_back: Duration::ZERO, ..Fate::USUAL }
    });
}

#[tokio::test(start_paused = true)]
async fn renewals_and_releases_wait_for_no_acquire() {
    let world = World::new();
    let mut holder = world.begin().await;
    holder.acquire(Acquire { lease_ms: 6_000, ..acquire(1, "held") }).await;
    let grant = holder.granted(1).await;
    one_by_one(&world.store, 20 * MS);
    // Eight seconds of work, while a renewal has two.
    let mut crowd = world.begin().await;
    for id in 0..400 {
        crowd.acquire(Acquire { wait_ms: 60_000, ..acquire(id, &format!("k-{id}")) }).await;
    }
    holder.hears_nothing(10 * SECOND).await;
    assert_eq!(world.store.owner("held"), Some(grant.owner));
    assert!(world.store.renewals("held") >= 4, "{} renewals", world.store.renewals("held"));
    for _ in 0..400 {
        assert!(matches!(crowd.receive().await, FromKeeper::Granted { .. }));
    }
    holder.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(holder.receive().await, FromKeeper::Released { id: 1 });
    holder.vanish().await;
    crowd.vanish().await;
    world.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn requests_under_way_are_bounded_and_what_was_not_sent_is_told_as_such() {
    let world = World::new();
    let sent = Arc::new(Mutex::new(0));
    let counted = sent.clone();
    world.store.decide(move |_, request| match request {
        Request::Acquire { .. } => {
            *counted.lock().unwrap() += 1;
            Fate::SWALLOWED
        }
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    for id in 0..CONTENDING as u64 + 1 {
        client.acquire(Acquire { wait_ms: 0, ..acquire(id, &format!("k-{id}")) }).await;
    }
    client.hears_nothing(2 * SECOND).await;
    assert_eq!(*sent.lock().unwrap(), CONTENDING);
    let (kind, message) = loop {
        match client.receive().await {
            FromKeeper::Failed { id, kind, message } if id == CONTENDING as u64 => break (kind, message),
            FromKeeper::Failed { kind: FailKind::Timeout, .. } => {}
            line => panic!("{line:?}"),
        }
    };
    assert_eq!(kind, FailKind::Throttled, "{message}");
    assert!(message.contains("not sent"), "{message}");
    client.vanish().await;
    world.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn releases_under_way_are_bounded_as_well() {
    let world = World::new();
    let mut client = world.begin().await;
    for id in 0..2 * LEAVING as u64 {
        client.take(id, &format!("k-{id}")).await;
    }
    let sent: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = sent.clone();
    world.store.decide(move |_, request| {
        if let Request::Release { .. } = request {
            noted.lock().unwrap().push(Instant::now());
        }
        Fate::USUAL
    });
    client.vanish().await;
    world.all_ended().await;
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), 2 * LEAVING);
    assert_eq!(sent.iter().filter(|at| **at == sent[0]).count(), LEAVING, "at once");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_waits_for_no_release_that_hangs() {
    let world = World::new();
    let mut crowd = world.begin().await;
    for id in 0..4 * LEAVING as u64 {
        crowd.take(id, &format!("k-{id}")).await;
    }
    let mut holder = world.begin().await;
    holder.acquire(Acquire { lease_ms: 3_000, ..acquire(1, "held") }).await;
    let grant = holder.granted(1).await;
    // DynamoDB is silent for a moment, and what was sent then is never answered: for five seconds, with these leases.
    let silent_until = Instant::now() + 300 * MS;
    world.store.decide(move |_, _| if Instant::now() < silent_until { Fate::SWALLOWED } else { Fate::USUAL });
    crowd.vanish().await;
    holder.hears_nothing(10 * SECOND).await;
    assert_eq!(world.store.owner("held"), Some(grant.owner));
    holder.vanish().await;
    world.all_ended().await;
}

/// A world of a slow store, where 50 hold and ten times as many wait for their turn to ask; and the attempts sent so far.
async fn crowded() -> (World, Client, Arc<Mutex<usize>>) {
    let world = World::new();
    let sent: Arc<Mutex<usize>> = Arc::default();
    let counted = sent.clone();
    world.store.decide(move |_, request| {
        *counted.lock().unwrap() += usize::from(matches!(request, Request::Acquire { .. }));
        Fate { on_the_way: 25 * MS, on_the_way_back: 25 * MS, ..Fate::USUAL }
    });
    let mut crowd = world.begin().await;
    for id in 0..CROWD {
        crowd.acquire(Acquire { wait_ms: 60_000, ..acquire(id, &format!("k-{id}")) }).await;
    }
    for _ in 0..50 {
        assert!(matches!(crowd.receive().await, FromKeeper::Granted { .. }));
    }
    (world, crowd, sent)
}

const CROWD: u64 = 600;

#[tokio::test(start_paused = true)]
async fn who_has_not_had_a_turn_when_the_keeper_ends_takes_no_row_and_holds_up_no_release() {
    let (world, _crowd, sent) = crowded().await;
    let before = *sent.lock().unwrap();
    let drained = world.keeper.drain(1200 * MS).await;
    assert_eq!((drained.failed, drained.left), (0, 0), "{drained:?}");
    assert_eq!(*sent.lock().unwrap(), before, "attempts that nobody wanted any more");
    let held: Vec<_> = (0..CROWD).filter(|id| world.store.owner(&format!("k-{id}")).is_some()).collect();
    assert!(held.is_empty(), "nobody is left to free {held:?}");
}

#[tokio::test(start_paused = true)]
async fn who_has_not_had_a_turn_when_the_handler_dies_takes_no_row() {
    let (world, crowd, sent) = crowded().await;
    let before = *sent.lock().unwrap();
    crowd.vanish().await;
    world.all_ended().await;
    assert_eq!(*sent.lock().unwrap(), before, "attempts that nobody wanted any more");
    assert!((0..CROWD).all(|id| world.store.owner(&format!("k-{id}")).is_none()));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cancelled_before_its_turn_is_over_at_once() {
    let (world, mut crowd, _sent) = crowded().await;
    let asked = Instant::now();
    crowd.release(CROWD - 1, ReleaseReason::Cancelled, true).await;
    while crowd.receive().await != (FromKeeper::Released { id: CROWD - 1 }) {}
    assert!(asked.elapsed() < 50 * MS, "{:?}", asked.elapsed());
    crowd.vanish().await;
    world.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn more_leases_than_a_keeper_may_have_are_refused_until_others_end() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::SWALLOWED,
        _ => Fate::USUAL,
    });
    let mut sessions = Vec::new();
    for at in 0..MAX_LEASES_IN_ALL / MAX_LEASES {
        let mut client = world.begin().await;
        for id in 0..MAX_LEASES as u64 {
            client.acquire(acquire(id, &format!("{at}-{id}"))).await;
        }
        // It is served in order: what is asked for before this is under way.
        client.release(9_999, ReleaseReason::Finished, true).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 9_999 });
        sessions.push(client);
    }
    let mut next = world.begin().await;
    next.acquire(acquire(1, "next")).await;
    let (kind, message) = next.failed(1).await;
    assert!(kind == FailKind::BadRequest && message.contains("4096"), "{message}");
    for client in sessions {
        client.vanish().await;
    }
    world.store.decide(|_, _| Fate::USUAL);
    world.all_ended().await;
    next.take(2, "next").await;
}

#[tokio::test(start_paused = true)]
async fn what_people_are_told_is_cut_to_what_they_read() {
    let world = World::new();
    let mut client = world.begin().await;
    let holder = HolderInfo { template: "x".repeat(50_000), ..HolderInfo::default() };
    client.acquire(Acquire { holder, ..acquire(1, "a") }).await;
    client.granted(1).await;
    let Row::Held(row) = world.store.row("a") else { panic!("not held") };
    assert!(row.holder.unwrap().template.len() < 2_100);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_acquires_in_one_session_are_served_in_turn() {
    let world = World::new();
    let mut client = world.begin().await;
    for id in 0..3_000 {
        client.take(id, "a").await;
        client.release(id, ReleaseReason::Finished, false).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id });
    }
    client.vanish().await;
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.home.unsettled(), []);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_asks_and_never_reads_is_closed_at_a_bound() {
    let world = World::new();
    let mut reads = world.begin().await;
    let grant = reads.take(1, "b").await;
    let mut client = world.begin().await;
    client.take(1, "a").await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(2, "c") }).await;
    let left = client.granted(2).await;
    let line =
        encode(&ToKeeper::Release { id: 9, reason: ReleaseReason::Finished, wait: false, hold_at_least_ms: None })
            .unwrap();
    let mut sent = 0;
    while !client.served.is_finished() {
        let writing = tokio::io::AsyncWriteExt::write_all(&mut client.writer, &line);
        if writing.await.is_err() {
            break;
        }
        sent += 1;
        assert!(sent < 200_000, "it is never closed");
    }
    client.vanish().await;
    sleep(SECOND).await;
    assert_eq!(world.keeper.inner.tasks.live(), 1);
    assert!(world.store.is_free("a"));
    assert_eq!(world.store.owner("c"), Some(left.owner), "as its `on_crash` says");
    // Nobody else is harmed.
    sleep(30 * SECOND).await;
    assert_eq!(world.store.owner("b"), Some(grant.owner));
}

#[tokio::test(start_paused = true)]
async fn more_leases_than_a_session_may_have_are_refused() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::failed(FailureKind::Throttled),
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    for id in 0..=1024 {
        client.acquire(acquire(id, &format!("k-{id}"))).await;
    }
    let (_, message) = client.failed(1024).await;
    assert!(message.contains("1024"), "{message}");
    client.vanish().await;
    world.all_ended().await;
}
