//! Sessions that come, wait, hold and leave at random, with random faults of the store: what holds of the line all the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::memory_store::Fate;
use super::support::{Client, SECOND, World, acquire};
use crate::protocol::{FailureKind, Request};
use crate::session::{Acquire, FromKeeper, ReleaseReason, ToKeeper};

#[derive(Clone, Copy, Debug)]
enum Ending {
    Finishes,
    Drops,
    Vanishes,
    Ends,
    Cancels,
}

/// What one session does.
#[derive(Clone, Copy, Debug)]
struct Part {
    comes_ms: u64,
    wait_ms: u64,
    holds_ms: u64,
    key: usize,
    elsewhere: bool,
    /// When it loses patience, answered or not.
    leaves_after_ms: Option<u64>,
    ending: Ending,
}

fn part() -> impl Strategy<Value = Part> {
    let ending = prop_oneof![
        3 => Just(Ending::Finishes),
        1 => Just(Ending::Drops),
        1 => Just(Ending::Vanishes),
        1 => Just(Ending::Ends),
        1 => Just(Ending::Cancels),
    ];
    let wait = prop_oneof![1 => Just(0_u64), 3 => 1_u64..400, 3 => 400_u64..20_000];
    let leaves = proptest::option::weighted(0.2, 0_u64..600);
    (0_u64..500, wait, 0_u64..80, 0_usize..2, proptest::bool::weighted(0.15), leaves, ending).prop_map(
        |(comes_ms, wait_ms, holds_ms, key, elsewhere, leaves_after_ms, ending)| Part {
            comes_ms,
            wait_ms,
            holds_ms,
            key,
            elsewhere,
            leaves_after_ms,
            ending,
        },
    )
}

/// Who works on which key.
type Work = Arc<Mutex<[Option<u64>; 2]>>;

async fn play(mut client: Client, id: u64, part: Part, work: Work) -> Result<(), String> {
    client.acquire(Acquire { wait_ms: part.wait_ms, ..acquire(id, ["a", "b"][part.key]) }).await;
    let asked = Instant::now();
    let patience =
        part.leaves_after_ms.map_or(Duration::from_millis(part.wait_ms) + 20 * SECOND, Duration::from_millis);
    match timeout(patience, client.receive()).await {
        Err(_) if part.leaves_after_ms.is_none() => return Err(format!("{id} is stuck")),
        Err(_) => {
            if matches!(part.ending, Ending::Cancels) {
                client.cancel(id).await;
            }
            client.vanish().await;
            return Ok(());
        }
        Ok(FromKeeper::Granted { .. }) => {}
        Ok(FromKeeper::Busy { attempts, .. }) => {
            client.send(&ToKeeper::Count { id }).await;
            let FromKeeper::Counted(counted) = client.receive().await else { return Err("no counts".to_owned()) };
            if attempts == 0 && counted.write_requests + counted.read_requests > 0 {
                return Err(format!("{id} was in line all the time, and sent something: {counted:?}"));
            }
            if attempts == 0 && asked.elapsed() > Duration::from_millis(part.wait_ms + 10) {
                return Err(format!("{id} waited longer than it may: {:?}", asked.elapsed()));
            }
            client.vanish().await;
            return Ok(());
        }
        Ok(FromKeeper::Failed { .. }) => {
            client.vanish().await;
            return Ok(());
        }
        Ok(line) => return Err(format!("{line:?}")),
    }
    if let Some(other) = work.lock().unwrap()[part.key].replace(id) {
        return Err(format!("{id} and {other} work at once"));
    }
    sleep(Duration::from_millis(part.holds_ms)).await;
    work.lock().unwrap()[part.key] = None;
    match part.ending {
        Ending::Finishes => client.release(id, ReleaseReason::Finished, false).await,
        Ending::Drops => client.release(id, ReleaseReason::Dropped, true).await,
        Ending::Cancels => client.release(id, ReleaseReason::Cancelled, true).await,
        Ending::Ends => client.send(&ToKeeper::End).await,
        Ending::Vanishes => {}
    }
    if !matches!(part.ending, Ending::Ends | Ending::Vanishes) {
        client.receive().await;
    }
    client.vanish().await;
    Ok(())
}

async fn play_all(parts: Vec<Part>, faults: Vec<u8>) -> Result<(), String> {
    let in_peace = faults.is_empty() && parts.iter().all(|part| !part.elsewhere);
    let world = World::new();
    let elsewhere = world.elsewhere();
    let mut n = 0;
    world.store.decide(move |_, request| {
        n += 1;
        let renews = matches!(request, Request::Renew { .. });
        match faults.get(n % faults.len().max(1)).filter(|_| !renews) {
            Some(1) => Fate::failed(FailureKind::Throttled),
            Some(2) => Fate::UNANSWERED,
            Some(3) => Fate::SWALLOWED,
            Some(4) => Fate::slow(Duration::from_millis(200)),
            Some(5) => Fate::PANIC,
            _ => Fate::USUAL,
        }
    });
    let (work, mut playing) = (Work::default(), JoinSet::new());
    for (id, part) in parts.into_iter().enumerate() {
        let client = if part.elsewhere { elsewhere.begin().await } else { world.begin().await };
        let work = work.clone();
        playing.spawn(async move {
            sleep(Duration::from_millis(part.comes_ms)).await;
            play(client, id as u64, part, work).await
        });
    }
    while let Some(played) = playing.join_next().await {
        played.unwrap()?;
    }
    // Both see that each attempt has ended in one way.
    world.all_ended().await;
    elsewhere.all_ended().await;
    let places = world.places() + elsewhere.places();
    if places > 0 {
        return Err(format!("{places} places were never left"));
    }
    let counts = world.keeper.counts();
    let looks = ["a", "b"].map(|key| world.store.requests(key, |request| *request == Request::Read).len());
    if in_peace && (counts.attempts_refused > 0 || looks != [0, 0]) {
        return Err(format!("somebody asked whose turn it was not: {looks:?}, {counts:?}"));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_no_two_work_at_once_nobody_is_stuck_and_who_is_in_line_sends_nothing(
        mut parts in proptest::collection::vec(part(), 2..24),
        mut faults in proptest::collection::vec(prop_oneof![6 => Just(0_u8), 1 => 1_u8..6], 1..40),
        in_peace in any::<bool>(),
    ) {
        if in_peace {
            faults.clear();
            parts.iter_mut().for_each(|part| part.elsewhere = false);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let played = runtime.block_on(play_all(parts, faults));
        prop_assert!(played.is_ok(), "{}", played.unwrap_err());
    }
}
