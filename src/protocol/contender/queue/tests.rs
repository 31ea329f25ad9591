//! The rules of waiting by tickets, one by one.

use super::*;
use crate::protocol::Row;
use crate::protocol::testing::{held, ms};

fn at(millis: u64) -> Mono {
    Mono::from_origin(ms(millis))
}

fn row(owner: u128, hints: Hints) -> HeldRow {
    match held(owner, 7, 6_000) {
        Row::Held(held) => HeldRow { hints, ..held },
        row => unreachable!("{row:?}"),
    }
}

fn hints(tickets: u64, served: u64, hold: Option<u64>) -> Hints {
    Hints { tickets: Some(tickets), served: Some(served), hold: hold.map(ms), ..Hints::default() }
}

/// A queue with requests of 6 ms that has this ticket on a row that it sees held since just now.
fn waiting(ticket: u64, served: u64, hold: Option<u64>) -> Queue {
    let mut queue = Queue::new(Rules::default());
    queue.note_latency(ms(6), true);
    queue.saw_held(&row(50, hints(ticket, served, hold)), at(0));
    queue.numbered(hints(ticket, served, hold));
    queue
}

fn look(queue: &Queue, now: u64) -> NextLook {
    queue.next_look(at(now), 0.5).unwrap()
}

#[test]
fn who_is_far_looks_when_its_turn_may_have_come_but_soon_enough_to_bear_a_wrong_position() {
    // A turn is 20 ms and two requests: 32 ms.
    assert_eq!(look(&waiting(3, 0, Some(20)), 0).after, ms(32).mul_f64(0.85 * 2.0));
    assert_eq!(look(&waiting(30, 0, Some(20)), 0).after, ms(96), "three turns at most, at first");
    assert_eq!(look(&waiting(30, 0, Some(20)), 100).after, ms(296), "and twice what was waited");
    assert_eq!(look(&waiting(3_000, 0, Some(20)), 60_000).after, ms(1_000), "and a second in the end");
    assert_eq!(look(&waiting(2, 0, Some(20)), 800).after, ms(100), "nor more often than who is next, in a long hold");
    let (early, late) = (waiting(3, 0, None).next_look(at(0), 0.0), waiting(3, 0, None).next_look(at(0), 1.0));
    let expected = ms(37).mul_f64(0.85 * 2.0);
    assert_eq!(early.unwrap().after, expected.mul_f64(0.9), "25 ms where the row says nothing");
    assert!(late.unwrap().after.abs_diff(expected.mul_f64(1.1)) < Duration::from_micros(1));
    assert!(!early.unwrap().takes);
}

#[test]
fn who_is_next_looks_the_more_seldom_the_longer_the_hold_lasts() {
    let next = |now| look(&waiting(1, 0, None), now);
    assert_eq!(next(0).after, ms(25) / 8, "no sooner, while the hold is not usually over");
    assert_eq!(next(40).after, ms(5));
    assert_eq!(next(400).after, ms(50));
    assert_eq!(next(10_000), NextLook { after: ms(100), takes: false });
}

/// The row went from one owner to another between looks 5 ms apart, so the hold began just now.
fn next_in_turn(hold: u64) -> Queue {
    let mut queue = waiting(1, 0, Some(hold));
    queue.saw_held(&row(51, hints(1, 0, Some(hold))), at(5));
    queue
}

#[test]
fn who_is_next_comes_as_the_hold_ends_and_with_the_attempt_itself() {
    let queue = next_in_turn(20);
    assert_eq!(look(&queue, 5), NextLook { after: ms(17), takes: true }, "half a request ahead");
    assert_eq!(look(&queue, 23), NextLook { after: ms(2).max(ms(18) / 8).max(ms(20) / 8), takes: true });
    assert!(!look(&queue, 60).takes, "it lasts longer than usual");
    assert!(!look(&next_in_turn(60), 5).takes, "a hold of more than eight requests");
    assert!(!look(&waiting(1, 0, Some(20)), 5).takes, "nobody was seen to take it from another");
    let mut unsure = waiting(1, 0, Some(20));
    unsure.saw_held(&row(51, hints(1, 0, Some(20))), at(40));
    assert!(look(&unsure, 40).after < ms(5), "the hold began at some time within 40 ms");
}

#[test]
fn nobody_relies_on_a_usual_hold_for_long() {
    assert_eq!(look(&next_in_turn(600_000), 5).after, ms(500));
    assert_eq!(look(&next_in_turn(800), 5).after, ms(500));
}

#[test]
fn who_was_overtaken_looks_up_to_16_times_as_seldom() {
    let queue = |served| waiting(5, served, None);
    assert_eq!(queue(5).next_look(at(400), 1.0).unwrap().after, ms(50));
    assert_eq!(queue(6).next_look(at(400), 1.0).unwrap().after, ms(100));
    assert_eq!(queue(1_000_000).next_look(at(400), 1.0).unwrap().after, ms(800));
    assert_eq!(queue(u64::MAX >> 1).next_look(at(400), 0.0).unwrap().after, ms(50));
}

#[test]
fn who_was_overtaken_does_not_leave_a_row_alone_for_longer_than_who_is_far() {
    let overtaken = |hold| {
        let mut queue = waiting(5, 1_000, hold);
        queue.saw_held(&row(51, hints(5, 1_000, hold)), at(5));
        queue
    };
    for (queue, now) in [(overtaken(None), 10_000), (overtaken(Some(600_000)), 5), (overtaken(Some(600_000)), 60_000)] {
        assert_eq!(queue.next_look(at(now), 1.0).unwrap().after, ms(1_000), "{now}");
        assert!(queue.next_look(at(now), 0.5).unwrap().after < ms(800), "and not all of them at the same moment");
    }
}

#[test]
fn a_free_row_is_left_to_those_before_once_and_for_a_moment() {
    let free = |queue: &mut Queue, version, now| queue.saw_free(version, hints(40, 0, None), at(now), 0.5);
    for (ticket, turn) in [
        (1, Turn::Mine),
        (2, Turn::Mine),
        (3, Turn::AfterOthers(ms(9))),
        (16, Turn::AfterOthers(ms(48))),
        (40, Turn::AfterOthers(ms(48))),
    ] {
        let mut queue = waiting(ticket, 0, None);
        assert_eq!(free(&mut queue, 8, 10), turn, "{ticket}");
        assert_eq!(free(&mut queue, 8, 20), Turn::Mine, "nobody took it");
    }
    let mut queue = waiting(9, 0, None);
    assert!(matches!(free(&mut queue, 8, 10), Turn::AfterOthers(_)));
    assert!(matches!(free(&mut queue, 9, 20), Turn::AfterOthers(_)), "somebody had it in between");
    queue.note_latency(ms(60_000), true);
    assert_eq!(free(&mut queue, 10, 30), Turn::AfterOthers(LONGEST_COURTESY), "however slow the store is");
    let mut without = Queue::new(Rules::default());
    assert_eq!(free(&mut without, 8, 10), Turn::Mine);
}

#[test]
fn an_attempt_counts_the_turns() {
    let served = |ticket, served| waiting(ticket, served, None).served();
    assert_eq!(Queue::new(Rules::default()).served(), None, "without a ticket");
    assert_eq!((served(5, 5), served(5, 900)), (None, None), "what is further stays");
    assert_eq!((served(6, 5), served(9, 5)), (Some(6), Some(9)));
    assert_eq!(served(10, 5), Some(6), "too far to say that all before are dead");
    for (ticket, expected) in [(15, 15), (21, 21), (22, 21), (900, 21)] {
        let mut queue = waiting(ticket, 5, None);
        for now in [10, 20] {
            queue.saw_free(8, hints(ticket, 5, None), at(now), 0.5);
        }
        assert_eq!(queue.served(), Some(expected), "nobody before {ticket} takes a free row");
    }
}

#[test]
fn a_ticket_on_a_row_that_was_made_anew_is_dropped_and_another_one_taken_a_few_times() {
    let mut queue = waiting(9, 5, None);
    for lost in 0..MOST_LOST {
        assert!(queue.has_ticket() && !queue.wants_ticket(), "{lost}");
        queue.saw_held(&row(60, hints(2, 0, None)), at(10));
        assert_eq!((queue.has_ticket(), queue.wants_ticket()), (false, lost + 1 < MOST_LOST), "{lost}");
        queue.numbered(hints(9, 0, None));
    }
    queue.saw_none(at(20));
    assert!(!queue.has_ticket() && !queue.wants_ticket());
}

#[test]
fn numbers_that_make_no_sense_are_harmless() {
    let highest = (1 << 63) - 1;
    for (ticket, served, hold) in [(0, highest, Some(0)), (highest, 0, Some(86_400_000)), (highest, highest, None)] {
        let mut queue = waiting(ticket, served, hold);
        queue.saw_held(&row(51, hints(highest, served, hold)), at(1));
        for now in [1, 100, 1_000_000] {
            assert!(look(&queue, now).after <= ms(1_100), "{ticket} {served} {hold:?}");
        }
        queue.served();
        queue.saw_free(8, hints(highest, served, hold), at(5), 1.0);
    }
}
