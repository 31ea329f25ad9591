//! A crowd on one key, in virtual time: the goals for waiting by tickets, at seeds that give the same figures everywhere.
//!
//! `cargo run --release --features simulation --example contend` prints the whole table, beside that of the plain schedule.

use std::time::Duration;

use leasehold::protocol::simulation::contention::{Course, Figures};

const SECOND: Duration = Duration::from_secs(1);

/// Everybody who lives has the key once, and nobody gives up.
#[track_caller]
fn all_served(course: &Course, seeds: u64) -> Figures {
    let figures = course.figures(0..seeds);
    assert_eq!((figures.gave_up, figures.failed), (0, 0), "{figures:?}");
    if course.dead == 0 {
        assert_eq!(figures.served, seeds * course.contenders as u64, "{figures:?}");
    }
    figures
}

#[test]
fn who_is_alone_sends_two_writes_and_no_read() {
    let figures = all_served(&Course::at_once(1), 4);
    assert_eq!((figures.writes, figures.reads), (2.0, 0.0));
}

#[test]
fn fifty_pass_the_key_on_at_nearly_the_speed_of_the_store() {
    for latency in [5, 6].map(Duration::from_millis) {
        for spread in [Duration::ZERO, SECOND] {
            let figures = all_served(&Course { latency, spread, ..Course::at_once(50) }, 20);
            let what = format!("{latency:?} over {spread:?}: {figures:?}");
            assert!(figures.worst_ratio <= 1.15, "{what}");
            assert!(figures.requests <= 9.0, "{what}");
            assert!(figures.handover_p50 <= 2.5, "{what}");
            assert!(figures.unfairness <= 1.5, "{what}");
        }
    }
}

#[test]
fn five_hundred_do_not_collapse() {
    for spread in [Duration::ZERO, SECOND] {
        let figures = all_served(&Course { spread, ..Course::at_once(500) }, 3);
        assert!(figures.worst_ratio <= 1.5 && figures.unfairness <= 1.5, "{spread:?}: {figures:?}");
        assert!(figures.cost() <= 12.0, "{spread:?}: {figures:?}");
    }
}

#[test]
fn two_and_ten_and_two_hundred_lose_little_either() {
    for (contenders, ratio) in [(2, 1.15), (10, 1.15), (200, 1.15)] {
        let figures = all_served(&Course::at_once(contenders), 5);
        assert!(figures.ratio <= ratio && figures.cost() <= 9.0, "{contenders}: {figures:?}");
    }
}

#[test]
fn longer_holds_are_waited_for_as_well() {
    for contenders in [2, 10, 50] {
        let figures = all_served(&Course { hold: SECOND / 5, ..Course::at_once(contenders) }, 5);
        assert!(figures.ratio <= 1.25 && figures.unfairness <= 1.5, "{contenders}: {figures:?}");
    }
}

/// A fifth of those who wait die with a ticket in their hands. Where more turns were passed over at once, hundreds of those
/// who live would take themselves for overtaken, and write forty times each.
#[test]
fn the_dead_among_those_who_wait_hold_up_nobody_for_long() {
    for (contenders, seeds) in [(50, 20), (500, 3)] {
        let figures = all_served(&Course { dead: 20, ..Course::at_once(contenders) }, seeds);
        assert!(figures.worst_ratio <= 1.4, "{contenders}: {figures:?}");
        assert!(figures.writes <= 8.0 && figures.cost() <= 12.0, "{contenders}: {figures:?}");
    }
}

#[test]
fn with_two_seconds_to_wait_nobody_of_fifty_gives_up() {
    for spread in [Duration::ZERO, SECOND] {
        let course = Course { spread, budget: SECOND * 2, ..Course::at_once(50) };
        all_served(&course, 20);
        let by_backoff = course.by_backoff().figures(0..5);
        assert!(spread == SECOND || by_backoff.gave_up > 0, "the plain schedule loses some: {by_backoff:?}");
    }
}

#[test]
fn a_seed_gives_the_same_figures_every_time() {
    let course = Course { dead: 20, spread: SECOND, ..Course::at_once(50) };
    assert_eq!(course.figures(0..2), course.figures(0..2));
    assert_eq!(course.run(7), course.run(7));
}
