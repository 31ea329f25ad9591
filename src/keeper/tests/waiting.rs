//! Two that want the same key, each with a keeper of its own; those of one keeper are in `queue`.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::memory_store::Fate;
use super::support::{SECOND, World, acquire};
use crate::protocol::{FailureKind, HeldRow, Hints, Request, Row};
use crate::session::{Acquire, FailKind, FromKeeper, OnCrash, PollingMs, ReleaseReason};

#[tokio::test(start_paused = true)]
async fn the_second_waits_for_the_first_and_gets_a_higher_token() {
    let world = World::new();
    let elsewhere = world.elsewhere();
    let (mut one, mut two) = (world.begin().await, elsewhere.begin().await);
    let first = one.take(1, "a").await;
    two.acquire(acquire(1, "a")).await;
    two.hears_nothing(SECOND).await;
    one.release(1, ReleaseReason::Finished, true).await;
    let second = two.granted(1).await;
    assert!(second.token > first.token);
    assert!(second.waited_ms >= 1_000 && second.waited_ms < 1_700, "{second:?}");
    assert_eq!(elsewhere.keeper.counts().takeovers, 0);
}

#[tokio::test(start_paused = true)]
async fn busy_comes_when_the_wait_is_over_and_names_the_holder() {
    let world = World::new();
    let elsewhere = world.elsewhere();
    let (mut one, mut two) = (world.begin().await, elsewhere.begin().await);
    one.take(1, "a").await;
    let asked = Instant::now();
    two.acquire(acquire(1, "a")).await;
    let FromKeeper::Busy { id: 1, holder: Some(holder), waited_ms, attempts, retry_after_ms } = two.receive().await
    else {
        panic!("not busy")
    };
    assert_eq!((holder.function.as_str(), holder.request_id.as_str(), attempts), ("orders", "r-1", 1));
    assert!((1_900..=2_000).contains(&waited_ms) && asked.elapsed() <= 2 * SECOND, "{waited_ms}");
    assert!(retry_after_ms > 25_000, "{retry_after_ms}");
    assert_eq!(elsewhere.keeper.counts().busy, 1);
}

#[tokio::test(start_paused = true)]
async fn no_wait_tries_once() {
    let world = World::new();
    let elsewhere = world.elsewhere();
    let (mut one, mut two) = (world.begin().await, elsewhere.begin().await);
    one.take(1, "a").await;
    two.acquire(Acquire { wait_ms: 0, ..acquire(1, "a") }).await;
    assert!(matches!(two.receive().await, FromKeeper::Busy { waited_ms: 5, attempts: 1, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_too_close_sends_nothing() {
    let world = World::new();
    let mut client = world.begin().await;
    client.acquire(Acquire { answer_within_ms: Some(0), ..acquire(1, "a") }).await;
    assert_eq!(client.failed(1).await.0, FailKind::TooLate);
    assert_eq!(world.keeper.counts().requests, 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_latest_moment_is_given_back() {
    let world = World::new();
    let mut client = world.begin().await;
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::slow(Duration::from_millis(900)),
        _ => Fate::USUAL,
    });
    client.acquire(Acquire { answer_within_ms: Some(200), ..acquire(1, "a") }).await;
    let asked = Instant::now();
    assert_eq!(client.failed(1).await.0, FailKind::Timeout);
    assert!(asked.elapsed() <= Duration::from_millis(210));
    assert_eq!(world.keeper.writes_in_flight(), 1);
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.home.unsettled(), []);
}

#[tokio::test(start_paused = true)]
async fn what_one_contender_saw_serves_the_next() {
    let world = World::new();
    let far = world.elsewhere();
    let mut holder = far.begin().await;
    // Without server time only the observed rule is left, and its holder is left to its fate.
    holder.acquire(Acquire { on_crash: OnCrash::Expire, server_time: false, ..acquire(1, "a") }).await;
    holder.granted(1).await;
    holder.vanish().await;
    far.all_ended().await;

    let unserved = |id| Acquire { server_time: false, wait_ms: 0, ..acquire(id, "a") };
    let mut client = world.begin().await;
    client.acquire(unserved(1)).await;
    assert!(matches!(client.receive().await, FromKeeper::Busy { .. }));
    sleep(31 * SECOND).await;
    // In another invocation, a lease later: what the first saw still counts.
    let mut next = world.begin().await;
    next.acquire(unserved(2)).await;
    next.granted(2).await;
    assert_eq!(world.keeper.counts().takeovers, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_left_behind_is_taken_over_by_server_time_soon_after_its_end() {
    let world = World::new();
    let far = world.elsewhere();
    let mut holder = far.begin().await;
    holder.acquire(Acquire { on_crash: OnCrash::Expire, lease_ms: 5_000, ..acquire(1, "a") }).await;
    holder.granted(1).await;
    holder.vanish().await;
    sleep(20 * SECOND).await;
    let mut client = world.begin().await;
    let grant = client.take(1, "a").await;
    assert!(grant.waited_ms < 100, "{grant:?}");
    assert_eq!(world.keeper.counts().takeovers, 1);
}

#[tokio::test(start_paused = true)]
async fn many_contend_and_each_is_granted_alone() {
    let world = World::new();
    let mut tasks = tokio::task::JoinSet::new();
    for id in 0..20 {
        let mut client = world.elsewhere().begin().await;
        tasks.spawn(async move {
            client.acquire(Acquire { wait_ms: 120_000, ..acquire(id, "a") }).await;
            let grant = client.granted(id).await;
            let from = Instant::now();
            sleep(Duration::from_millis(100)).await;
            let until = Instant::now();
            client.release(id, ReleaseReason::Finished, true).await;
            client.receive().await;
            (grant.token, from, until)
        });
    }
    let mut held = tasks.join_all().await;
    held.sort_by_key(|(_, from, _)| *from);
    for pair in held.windows(2) {
        assert!(pair[0].0 < pair[1].0, "tokens grow: {pair:?}");
        assert!(pair[0].2 <= pair[1].1, "no two at once: {pair:?}");
    }
    world.all_ended().await;
}

/// Its acquire is answered late, so that it needs a renewal before the grant, and by then somebody else has taken over.
#[tokio::test(start_paused = true)]
async fn a_row_that_is_lost_before_the_grant_is_contended_for_again() {
    let (world, mut slow) = (World::new(), true);
    let store = world.store.clone();
    world.store.decide(move |_, request| match request {
        Request::Acquire { .. } if std::mem::take(&mut slow) => Fate::slow(4 * SECOND),
        // While the renewal is on its way.
        Request::Renew { .. } => Fate { on_the_way: SECOND, ..Fate::USUAL },
        _ => Fate::USUAL,
    });
    let mut one = world.begin().await;
    one.acquire(Acquire { lease_ms: 6_000, wait_ms: 60_000, ..acquire(1, "a") }).await;
    sleep(4 * SECOND + SECOND / 2).await;
    let first = store.owner("a").unwrap();
    let elsewhere = world.elsewhere();
    store.put("a", Row::Free { version: 9_000_000_000_000, hints: Hints::default() });
    let mut two = elsewhere.begin().await;
    let taken = two.take(1, "a").await;
    one.hears_nothing(2 * SECOND).await;
    two.release(1, ReleaseReason::Finished, true).await;
    let granted = one.granted(1).await;
    assert!(granted.token > taken.token && granted.owner != first);
    assert_eq!(world.home.unsettled(), [granted.owner], "the lost attempt is settled");
}

/// One of its attempts had no answer, and lands only when the row that another one took is lost again.
#[tokio::test(start_paused = true)]
async fn who_contends_again_knows_its_attempts_from_before() {
    let (world, mut sent) = (World::new(), 0);
    world.store.decide(move |_, request| {
        if matches!(request, Request::Acquire { .. }) {
            sent += 1;
        }
        match request {
            Request::Acquire { .. } if sent == 1 => Fate::SWALLOWED,
            Request::Acquire { .. } if sent == 2 => Fate::slow(4 * SECOND),
            Request::Renew { .. } => Fate { on_the_way: SECOND, ..Fate::USUAL },
            _ => Fate::USUAL,
        }
    });
    let mut one = world.begin().await;
    one.acquire(Acquire { lease_ms: 6_000, wait_ms: 60_000, ..acquire(1, "a") }).await;
    let attempts = || world.store.requests("a", |request| matches!(request, Request::Acquire { .. }));
    while world.store.renewals("a") == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let [Request::Acquire { owner: swallowed, .. }, Request::Acquire { owner: taken, .. }] = attempts()[..] else {
        panic!("{:?}", attempts());
    };
    let Row::Held(held) = world.store.row("a") else { panic!("it is taken") };
    assert_eq!(held.owner, taken);
    world.store.put("a", Row::Held(HeldRow { owner: swallowed, ..held }));
    let lost = Instant::now();
    let granted = one.granted(1).await;
    assert!(lost.elapsed() < 3 * SECOND, "its own attempt is not waited for: {:?}", lost.elapsed());
    one.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(one.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!((granted.owner == swallowed, world.home.unsettled()), (false, vec![]));
}

/// Without a deadline a grant has as long as one request; the wait may be longer. Contending again would leave the row behind,
/// and take the answer of a renewal that is under way for an attempt's.
#[tokio::test(start_paused = true)]
async fn a_row_that_can_not_be_confirmed_in_time_is_freed_and_not_contended_for_again() {
    let world = World::new();
    world.store.leave_out_dates();
    let mut renewals = 0;
    world.store.decide(move |_, request| match request {
        Request::Renew { .. } => {
            renewals += 1;
            if renewals < 3 { Fate::failed(FailureKind::Throttled) } else { Fate::slow(10 * SECOND) }
        }
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    client.acquire(Acquire { wait_ms: 60_000, ..acquire(1, "a") }).await;
    assert_eq!(client.failed(1).await.0, FailKind::Throttled);
    client.hears_nothing(30 * SECOND).await;
    client.vanish().await;
    world.all_ended().await;
    let attempts = world.store.requests("a", |request| matches!(request, Request::Acquire { .. }));
    assert_eq!(attempts.len(), 1);
    assert!(world.store.is_free("a"));
    assert_eq!(world.home.unsettled(), []);
}

#[tokio::test(start_paused = true)]
async fn an_outage_within_the_wait_is_waited_out_however_many_attempts_it_takes() {
    for kind in [FailureKind::Server, FailureKind::Connection] {
        let world = World::new();
        let back_at = Instant::now() + 20 * SECOND;
        world.store.decide(move |_, _| if Instant::now() < back_at { Fate::failed(kind) } else { Fate::USUAL });
        let mut client = world.begin().await;
        let polling = Some(PollingMs { first: 10, max: 100 });
        client.acquire(Acquire { wait_ms: 60_000, polling, ..acquire(1, "a") }).await;
        client.hears_nothing(19 * SECOND).await;
        assert!(world.home.unsettled().len() <= 100, "{} attempts are noted", world.home.unsettled().len());
        let grant = client.granted(1).await;
        assert!(grant.attempts > 100, "{grant:?}");
        assert!(world.home.unsettled().contains(&grant.owner));
        let listed = world
            .store
            .requests("a", |request| matches!(request, Request::Acquire { unknown, .. } if unknown.len() > 100));
        assert_eq!(listed, [], "more than DynamoDB takes in a list");
        client.release(1, ReleaseReason::Finished, true).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        client.vanish().await;
        world.all_ended().await;
        assert_eq!(world.home.unsettled(), []);
    }
}

fn by_tickets(id: u64) -> Acquire {
    Acquire { polling: None, wait_ms: 60_000, ..acquire(id, "a") }
}

fn hints(row: Row) -> Hints {
    match row {
        Row::Free { hints, .. } => hints,
        Row::Held(held) => held.hints,
        row => panic!("{row:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_that_waits_by_tickets_passes_the_key_on_at_once_and_adds_up() {
    const CROWD: u64 = 12;
    let world = World::new();
    let mut first = world.begin().await;
    first.take(1, "a").await;
    let (mut crowd, mut worlds) = (Vec::new(), vec![]);
    for _ in 0..CROWD {
        let elsewhere = world.elsewhere();
        let mut client = elsewhere.begin().await;
        client.acquire(by_tickets(1)).await;
        worlds.push(elsewhere);
        crowd.push(tokio::spawn(async move {
            client.granted(1).await;
            sleep(Duration::from_millis(20)).await;
            client.release(1, ReleaseReason::Finished, true).await;
            client
        }));
    }
    sleep(Duration::from_millis(20)).await;
    let began = Instant::now();
    first.release(1, ReleaseReason::Finished, true).await;
    let mut clients = Vec::new();
    for member in crowd {
        clients.push(member.await.unwrap());
    }
    // Each holds it for 20 ms, and a request takes 5 ms: half as much again is what the clock alone would need.
    assert!(began.elapsed() < Duration::from_millis(CROWD * 45), "{:?}", began.elapsed());
    worlds.push(world);
    for world in &worlds {
        world.all_ended().await;
    }

    let world = worlds.last().unwrap();
    let told = hints(world.store.row("a"));
    assert_eq!(told.tickets, Some(CROWD));
    assert!(told.served.is_some_and(|served| served <= CROWD) && told.hold.is_some(), "{told:?}");
    let mut granted = 0;
    for counts in worlds.iter().map(|world| world.keeper.counts()) {
        let ends = counts.granted + counts.grants_undone + counts.attempts_refused + counts.attempts_unknown;
        assert_eq!(counts.attempts, ends, "a ticket is no attempt: {counts:?}");
        granted += counts.granted;
    }
    assert_eq!(granted, CROWD + 1);
    let tickets = world.store.requests("a", |request| *request == Request::Ticket);
    assert_eq!(tickets.len() as u64, CROWD);
}

#[tokio::test(start_paused = true)]
async fn only_a_hold_that_ended_by_itself_tells_how_long_it_took() {
    let world = World::new();
    let usual = || hints(world.store.row("a")).hold;
    let mut client = world.begin().await;
    for (reason, expected) in [
        (ReleaseReason::Finished, Some(100)),
        (ReleaseReason::Dropped, Some(100)),
        (ReleaseReason::Cancelled, Some(100)),
        (ReleaseReason::Finished, Some(325)),
    ] {
        client.take(1, "a").await;
        sleep(Duration::from_millis(if usual().is_none() { 100 } else { 1_000 })).await;
        client.release(1, reason, true).await;
        world.all_ended().await;
        assert_eq!(usual(), expected.map(Duration::from_millis), "{reason:?}");
        client.receive().await;
    }
    client.take(1, "a").await;
    sleep(SECOND).await;
    client.vanish().await;
    world.all_ended().await;
    assert_eq!(usual(), Some(Duration::from_millis(325)), "a crash");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_while_its_ticket_is_under_way_leaves_nothing_behind() {
    let world = World::new();
    let elsewhere = world.elsewhere();
    let (mut one, mut two) = (world.begin().await, elsewhere.begin().await);
    one.take(1, "a").await;
    world.store.decide(|_, request| match request {
        Request::Ticket => Fate::slow(Duration::from_millis(300)),
        _ => Fate::USUAL,
    });
    two.acquire(by_tickets(1)).await;
    sleep(Duration::from_millis(50)).await;
    assert_eq!(elsewhere.keeper.writes_in_flight(), 1, "a freeze waits for it as for any write");
    two.release(1, ReleaseReason::Cancelled, true).await;
    sleep(SECOND).await;
    assert_eq!(elsewhere.keeper.writes_in_flight(), 0);
    let of_two = world.store.requests("a", |request| matches!(request, Request::Release { .. }));
    assert_eq!(of_two, [], "there is nothing to clear up");
    assert!(world.store.owner("a").is_some());
}
