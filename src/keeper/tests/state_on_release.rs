//! States that are left with a release, or in its place: with it if they can be, and never in its way.

use std::time::Duration;

use tokio::time::sleep;

use super::memory_store::Fate;
use super::state::{holder, load, save, saved, writes};
use super::support::{SECOND, World};
use crate::protocol::{FailureKind, Request};
use crate::session::{FromKeeper, ReleaseReason};

#[tokio::test(start_paused = true)]
async fn a_state_for_the_release_is_written_with_it_and_only_if_the_handler_finished() {
    for (reason, expected) in [(ReleaseReason::Finished, Some("7")), (ReleaseReason::Dropped, None)] {
        let world = World::new();
        let mut client = holder(&world).await;
        client.send(&save(1, Some("7"), true)).await;
        assert_eq!(client.receive().await, saved(1));
        sleep(SECOND).await;
        assert_eq!(world.store.value("a"), None, "not before the release");
        client.release(1, reason, true).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        assert!(world.store.is_free("a"));
        assert_eq!(world.store.value("a").as_deref(), expected);
        let plain = world.store.requests("a", |request| matches!(request, Request::Release { .. })).len();
        assert_eq!((plain, world.store.writes("a").len()), if expected.is_some() { (0, 1) } else { (1, 0) });
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_for_the_release_is_saved_before_a_key_that_stays_held() {
    for is_answered in [true, false] {
        let world = World::new();
        let mut client = holder(&world).await;
        client.send(&save(1, Some("7"), true)).await;
        assert_eq!(client.receive().await, saved(1));
        world.store.decide_state(
            move |_, request| {
                if writes(request) && !is_answered { Fate::SWALLOWED } else { Fate::USUAL }
            },
        );
        client.park(1, ReleaseReason::Finished, 600 * SECOND).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        world.all_ended().await;
        // It is parked in any case: whoever is late must find it held.
        let counts = world.keeper.counts();
        let saved = if is_answered { (1, 1, 0) } else { (1, 0, 1) };
        assert_eq!((counts.parked, counts.states_saved, counts.states_left_unknown), saved);
        assert_eq!(counts.states_not_left, 0);
        assert_eq!(world.store.value("a").as_deref(), is_answered.then_some("7"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_given_last_is_left() {
    let world = World::new();
    let mut client = holder(&world).await;
    for (line, call) in [(save(1, Some("1"), true), 1), (save(2, Some("2"), false), 2)] {
        client.send(&line).await;
        assert_eq!(client.receive().await, saved(call));
    }
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.store.value("a").as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_release_waits_for_a_state_under_way_but_not_for_long_and_a_crash_does_not() {
    for (answer_after, reason, is_saved) in [
        (Duration::from_millis(300), ReleaseReason::Finished, true),
        (Duration::MAX, ReleaseReason::Finished, false),
        (Duration::from_millis(300), ReleaseReason::Dropped, false),
    ] {
        let world = World::new();
        let mut client = holder(&world).await;
        assert_eq!(load(&mut client, 1).await, None);
        world.store.decide_state(move |_, _| Fate { on_the_way: answer_after, ..Fate::USUAL });
        client.send(&save(2, Some("1"), false)).await;
        sleep(Duration::from_millis(1)).await;
        let before = world.clock_since_start();
        client.release(1, reason, true).await;
        loop {
            match client.receive().await {
                FromKeeper::Released { .. } => break,
                FromKeeper::StateSaved { .. } => assert!(is_saved),
                FromKeeper::StateFailed { .. } => assert!(!is_saved),
                line => panic!("{line:?}"),
            }
        }
        assert!(world.clock_since_start() - before < Duration::from_millis(1_100));
        assert_eq!(world.store.value("a").is_some(), is_saved, "{reason:?}");
        assert!(world.store.is_free("a"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_is_not_held_back_by_a_state_that_cannot_be_written() {
    for (kind, unknown) in
        [(FailureKind::AccessDenied, false), (FailureKind::Throttled, false), (FailureKind::Timeout, true)]
    {
        let world = World::new();
        let mut client = holder(&world).await;
        client.send(&save(1, Some("1"), true)).await;
        assert_eq!(client.receive().await, saved(1));
        world.store.decide_state(move |_, _| Fate::failed(kind));
        client.release(1, ReleaseReason::Finished, true).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
        assert!(world.store.is_free("a"), "{kind:?}");
        let counts = world.keeper.counts();
        assert_eq!((counts.states_not_left == 1, counts.states_left_unknown == 1), (!unknown, unknown), "{kind:?}");
        let sent = world.store.writes("a");
        assert!(sent.iter().all(|write| *write == sent[0]) && sent.len() <= 5);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_of_which_no_answer_comes_is_told_as_not_known() {
    let world = World::new();
    let mut client = holder(&world).await;
    client.send(&save(1, Some("1"), true)).await;
    assert_eq!(client.receive().await, saved(1));
    // Written, and nobody is told.
    world.store.decide_state(|_, _| Fate::UNANSWERED);
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.store.value("a").as_deref(), Some("1"));
    let counts = world.keeper.counts();
    assert_eq!((counts.states_saved, counts.states_not_left, counts.states_left_unknown), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_was_lost_leaves_the_state_once() {
    let world = World::new();
    let mut client = holder(&world).await;
    client.send(&save(1, Some("1"), true)).await;
    assert_eq!(client.receive().await, saved(1));
    let mut first = true;
    world.store.decide_state(move |_, _| if std::mem::take(&mut first) { Fate::UNANSWERED } else { Fate::USUAL });
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    assert_eq!(world.store.value("a").as_deref(), Some("1"));
    assert_eq!((world.keeper.counts().states_saved, world.keeper.counts().states_not_left), (1, 0));
}
