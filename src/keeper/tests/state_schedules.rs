//! Holders in line that save and leave states at random, with random faults of the store: what the next one may read.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::sleep;

use super::memory_store::Fate;
use super::state::{failed, holder, load, save, saved, writes};
use super::support::{SECOND, World};
use crate::protocol::{Hints, Row};
use crate::session::{FailKind, FromKeeper, ReleaseReason};
use crate::store::StateRequest;

/// What a random holder does.
#[derive(Clone, Debug)]
enum Deed {
    Save(u8),
    SaveUnanswered(u8),
    SaveLost(u8),
    OnRelease(u8),
    Release,
    /// A save is under way, and not answered before the release that leaves this.
    ReleaseOverUnknown(u8),
    Crash,
    Stolen,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => any::<u8>().prop_map(Deed::Save),
        2 => any::<u8>().prop_map(Deed::SaveUnanswered),
        2 => any::<u8>().prop_map(Deed::SaveLost),
        2 => any::<u8>().prop_map(Deed::OnRelease),
        2 => Just(Deed::Release),
        2 => any::<u8>().prop_map(Deed::ReleaseOverUnknown),
        1 => Just(Deed::Crash),
        1 => Just(Deed::Stolen),
    ];
    prop::collection::vec(deed, 1..24)
}

/// A line of holders, in turn at two keepers. What the next one reads is what was acknowledged last, or the one that was
/// not known when its holder went.
async fn line_of_holders(deeds: Vec<Deed>) {
    let (one, mut turn) = (World::new(), 0);
    let worlds = [one.elsewhere(), one];
    let store = worlds[0].store.clone();
    let mut client = holder(&worlds[0]).await;
    let (mut possible, mut counter, mut call): (Vec<Option<String>>, u64, u64) = (vec![None], 0, 0);
    let mut left: Option<String> = None;
    for deed in deeds {
        store.decide_state(|_, _| Fate::USUAL);
        call += 1;
        let over = match deed {
            Deed::Save(n) | Deed::SaveUnanswered(n) | Deed::SaveLost(n) => {
                let fate = match deed {
                    Deed::Save(_) => Fate::USUAL,
                    Deed::SaveUnanswered(_) => Fate::UNANSWERED,
                    _ => Fate::SWALLOWED,
                };
                let mut first = true;
                store.decide_state(
                    move |_, request| {
                        if writes(request) && std::mem::take(&mut first) { fate } else { Fate::USUAL }
                    },
                );
                client.send(&save(call, Some(&n.to_string()), false)).await;
                assert_eq!(client.receive().await, saved(call));
                (possible, left) = (vec![Some(n.to_string())], None);
                false
            }
            Deed::OnRelease(n) => {
                client.send(&save(call, Some(&n.to_string()), true)).await;
                assert_eq!(client.receive().await, saved(call));
                left = Some(n.to_string());
                false
            }
            Deed::Release => {
                client.release(1, ReleaseReason::Finished, true).await;
                assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
                if let Some(left) = left.take() {
                    possible = vec![Some(left)];
                }
                true
            }
            Deed::ReleaseOverUnknown(n) => {
                let fate = if call % 2 == 0 { Fate::UNANSWERED } else { Fate::SWALLOWED };
                store.decide_state(move |_, request| match request {
                    StateRequest::Write(write) if write.release.is_none() => fate,
                    _ => Fate::USUAL,
                });
                client.send(&save(call, Some("\"unknown\""), false)).await;
                sleep(Duration::from_millis(40)).await;
                call += 1;
                client.send(&save(call, Some(&n.to_string()), true)).await;
                assert_eq!(client.receive().await, saved(call));
                client.release(1, ReleaseReason::Finished, true).await;
                assert_eq!(failed(&mut client, call - 1).await.0, FailKind::NotHeld);
                assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
                (possible, left) = (vec![Some(n.to_string())], None);
                true
            }
            Deed::Crash | Deed::Stolen => {
                // A save is under way, applied or not, when its holder goes.
                let fate = if call % 2 == 0 { Fate::UNANSWERED } else { Fate::SWALLOWED };
                store.decide_state(move |_, request| if writes(request) { fate } else { Fate::USUAL });
                let unknown = format!("1{call:03}");
                client.send(&save(call, Some(&unknown), false)).await;
                sleep(Duration::from_millis(40)).await;
                possible.push(Some(unknown));
                left = None;
                if matches!(deed, Deed::Stolen) {
                    // Whoever took the row has given it back by now.
                    let Row::Held(held) = store.row("a") else { panic!("not held") };
                    store.put("a", Row::Free { version: held.version.counter().unwrap() + 5, hints: Hints::default() });
                }
                true
            }
        };
        if over {
            // The old holder's connection and task stay for a stolen one: it may try whatever it likes.
            let old = if matches!(deed, Deed::Stolen) {
                Some(client)
            } else {
                drop(client);
                None
            };
            turn += 1;
            store.decide_state(|_, _| Fate::USUAL);
            client = holder(&worlds[turn % 2]).await;
            let read = load(&mut client, 1_000).await;
            assert!(possible.contains(&read), "{read:?} is none of {possible:?}");
            sleep(20 * SECOND).await;
            assert_eq!(load(&mut client, 1_001).await, read, "nothing comes later");
            possible = vec![read];
            drop(old);
        }
        let now = store.state_of("a").map_or(0, |kept| kept.counter);
        assert!(now >= counter, "{now} after {counter}");
        counter = now;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_next_holder_reads_what_was_saved_last(deeds in deeds()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(line_of_holders(deeds));
    }
}
