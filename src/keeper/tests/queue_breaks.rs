//! What a line leaves to those elsewhere: breaks, within which the key is free for whoever looks.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::queue::finish;
use super::support::{SECOND, World, acquire};
use crate::keeper::queue::{BREAK, LONG_STREAK, STREAK};
use crate::protocol::{HeldRow, Hints, Row};
use crate::session::{Acquire, PollingMs};

const MS: Duration = Duration::from_millis(1);
/// A request and its answer, by the store's usual fate.
const ROUND_TRIP: Duration = Duration::from_millis(5);
const HOLD: Duration = Duration::from_millis(100);

/// Waits by the clock, or by tickets.
const BY_CLOCK: Option<PollingMs> = Some(PollingMs { first: 50, max: 500 });
const BY_TICKETS: Option<PollingMs> = None;

fn patient(id: u64, polling: Option<PollingMs>) -> Acquire {
    Acquire { wait_ms: 600_000, polling, ..acquire(id, "a") }
}

/// So many in line who wait like this, the first of whom has the key; those behind it hold it one after the other.
async fn line(world: &World, many: u64, polling: Option<PollingMs>) -> JoinSet<()> {
    let mut line = JoinSet::new();
    for id in 0..many {
        let mut client = world.asks_with(patient(id, polling)).await;
        line.spawn(async move {
            client.granted(id).await;
            sleep(HOLD).await;
            finish(&mut client, id).await;
        });
    }
    line
}

/// How much longer than their turns it takes until all of them are through.
async fn beside_their_turns(many: u64, polling: Option<PollingMs>, world: &World) -> Duration {
    let began = Instant::now();
    line(world, many, polling).await.join_all().await;
    assert_eq!(world.keeper.counts().busy, 0);
    began.elapsed() - many as u32 * (HOLD + 2 * ROUND_TRIP)
}

/// Those of one keeper hand the key on before who polls could see it free; so they let others go first now and then.
#[tokio::test(start_paused = true)]
async fn a_keeper_with_a_long_line_lets_others_have_the_key_as_well() {
    // Who takes no ticket is not known to wait.
    for (of_the_line, of_the_other, within) in
        [(BY_CLOCK, BY_CLOCK, STREAK), (BY_TICKETS, BY_TICKETS, STREAK), (BY_TICKETS, BY_CLOCK, LONG_STREAK)]
    {
        let world = World::new();
        let line = line(&world, 400, of_the_line).await;
        sleep(SECOND).await;
        let elsewhere = world.elsewhere();
        let mut other = elsewhere.begin().await;
        other.acquire(patient(1, of_the_other)).await;
        let waited = Duration::from_millis(other.granted(1).await.waited_ms);
        assert!(waited <= within + HOLD + BREAK, "{of_the_line:?} {of_the_other:?}: {waited:?}");
        assert!(line.len() > 50, "while the line is long");
        finish(&mut other, 1).await;
        line.join_all().await;
        assert_eq!(world.keeper.counts().busy, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn breaks_are_rare_where_the_row_tells_that_nobody_waits_elsewhere() {
    let held_up = beside_their_turns(160, BY_CLOCK, &World::new()).await;
    assert!((3 * BREAK..3 * BREAK + SECOND / 2).contains(&held_up), "one each 5 s: {held_up:?}");
    let held_up = beside_their_turns(160, BY_TICKETS, &World::new()).await;
    assert!(held_up < BREAK, "none: {held_up:?}");
    let held_up = beside_their_turns(400, BY_TICKETS, &World::new()).await;
    assert!((BREAK..2 * BREAK).contains(&held_up), "one in 44 s: {held_up:?}");
}

/// Tickets of those who are gone stay on the row.
#[tokio::test(start_paused = true)]
async fn who_has_let_a_break_go_by_is_waited_for_no_more() {
    let world = World::new();
    let hints = Hints { tickets: Some(9), served: Some(3), ..Hints::default() };
    world.store.put("a", Row::Free { version: 1_800_000_000_000, hints });
    let held_up = beside_their_turns(160, BY_TICKETS, &world).await;
    assert!((BREAK..2 * BREAK).contains(&held_up), "one: {held_up:?}");
    // A number that is none tells nothing.
    let world = World::new();
    let hints = Hints { uncountable: true, ..Hints::default() };
    world.store.put("a", Row::Free { version: 1_800_000_000_000, hints });
    let held_up = beside_their_turns(160, BY_TICKETS, &world).await;
    assert!((3 * BREAK..3 * BREAK + SECOND / 2).contains(&held_up), "as without tickets: {held_up:?}");
}

/// A row that was deleted counts from 1 again.
#[tokio::test(start_paused = true)]
async fn tickets_of_a_new_row_are_not_taken_for_those_of_the_old_one() {
    let world = World::new();
    let hints = Hints { tickets: Some(9), served: Some(3), ..Hints::default() };
    world.store.put("a", Row::Free { version: 1_800_000_000_000, hints });
    let line = line(&world, 400, BY_TICKETS).await;
    sleep(STREAK + BREAK + SECOND).await;
    let Row::Held(held) = world.store.row("a") else { panic!("it is held again after the break") };
    world.store.put("a", Row::Held(HeldRow { hints: Hints::default(), ..held }));
    sleep(SECOND).await;
    let elsewhere = world.elsewhere();
    let mut other = elsewhere.begin().await;
    other.acquire(patient(1, BY_TICKETS)).await;
    let waited = Duration::from_millis(other.granted(1).await.waited_ms);
    assert!(waited <= STREAK + HOLD + BREAK, "{waited:?}");
    assert!(line.len() > 50, "while the line is long: {}", line.len());
}

/// As the row says of who was overtaken.
#[tokio::test(start_paused = true)]
async fn who_waits_elsewhere_with_a_ticket_that_is_served_already_is_not_forgotten() {
    let world = World::new();
    let line = line(&world, 200, BY_TICKETS).await;
    let elsewhere = world.elsewhere();
    let mut other = elsewhere.begin().await;
    other.acquire(patient(1, BY_TICKETS)).await;
    let overtaken = loop {
        sleep(MS).await;
        if let Row::Held(HeldRow { hints: Hints { tickets: Some(ticket), .. }, .. }) = world.store.row("a") {
            break ticket;
        }
    };
    let Row::Held(held) = world.store.row("a") else { panic!("it is held, and a ticket is taken of it") };
    let hints = Hints { served: Some(overtaken), ..held.hints };
    world.store.put("a", Row::Held(HeldRow { hints, ..held }));
    let waited = Duration::from_millis(other.granted(1).await.waited_ms);
    assert!(waited <= STREAK + HOLD + BREAK, "{waited:?}");
    assert!(line.len() > 50, "while the line is long: {}", line.len());
}

#[tokio::test(start_paused = true)]
async fn a_break_goes_on_for_who_is_next_when_the_one_that_began_it_is_gone_or_had_no_time_for_it() {
    for gone in [true, false] {
        let world = World::new();
        let mut first = world.begin().await;
        first.take(1, "a").await;
        let mut second = world.asks(2, 600 * SECOND).await;
        finish(&mut first, 1).await;
        second.granted(2).await;
        let mut head = world.asks(3, if gone { 600 * SECOND } else { STREAK + 200 * MS }).await;
        let mut next = world.asks(4, 600 * SECOND).await;
        sleep(STREAK).await;
        finish(&mut second, 2).await;
        let freed = Instant::now();
        if gone {
            sleep(100 * MS).await;
            head.vanish().await;
        } else {
            head.granted(3).await;
            assert!(freed.elapsed() < 200 * MS, "it takes its last chance: {:?}", freed.elapsed());
            finish(&mut head, 3).await;
        }
        next.granted(4).await;
        assert!(freed.elapsed() >= BREAK, "{gone}: {:?}", freed.elapsed());
        assert!(freed.elapsed() < BREAK + 2 * ROUND_TRIP, "{gone}: {:?}", freed.elapsed());
    }
}
