//! A contender that waits by tickets: what it sends, and what no ticket may ever cost it.

use super::{sleep, subject, verdict};
use crate::protocol::contender::{Budget, Contender};
use crate::protocol::testing::{Rig, failed, held, ms, owner, read, refused, sent, written};
use crate::protocol::{Action, Answer, FailureKind, HeldRow, Hints, Outcome, Request, Row, Settings, Verdict};

fn contender(rig: &mut Rig, wait: u64) -> Contender {
    let now = rig.now();
    let epoch = rig.server_time.begin();
    let budget = Budget { stop: now.mono + ms(wait), latest: None };
    let mut contender =
        Contender::new(Settings { lease: ms(6_000), ..Settings::default() }, subject(), budget, epoch, now);
    contender.start(&mut rig.cx());
    contender
}

fn hinted(owner: u128, version: u64, tickets: u64, served: u64) -> Row {
    match held(owner, version, 6_000) {
        Row::Held(held) => {
            let hints = Hints { tickets: Some(tickets), served: Some(served), hold: Some(ms(20)), ..Hints::default() };
            Row::Held(HeldRow { hints, ..held })
        }
        row => row,
    }
}

fn numbered(row: Row) -> Answer {
    Answer { outcome: Outcome::Numbered { row }, ..read(Row::Absent) }
}

/// Answers the request that is due after 6 ms.
#[track_caller]
fn answer(rig: &mut Rig, contender: &mut Contender, answer: Answer) -> Request {
    let (id, request, _) = sent(contender.poll_action());
    rig.advance(6);
    contender.handle_answer(&mut rig.cx(), id, answer);
    request
}

/// Refused, and with ticket 3 while 1 was served.
fn in_line(rig: &mut Rig, wait: u64) -> Contender {
    let mut contender = contender(rig, wait);
    assert!(matches!(answer(rig, &mut contender, refused(hinted(99, 5, 2, 1))), Request::Acquire { served: None, .. }));
    assert_eq!(answer(rig, &mut contender, numbered(hinted(99, 5, 3, 1))), Request::Ticket);
    contender
}

#[test]
fn the_first_refusal_is_followed_by_a_ticket_and_then_by_looks_until_its_turn() {
    let mut rig = Rig::new();
    let mut contender = in_line(&mut rig, 2_000);
    assert_eq!(contender.poll_action(), None);
    sleep(&mut rig, &mut contender);
    assert_eq!(answer(&mut rig, &mut contender, read(hinted(98, 6, 3, 2))), Request::Read);
    sleep(&mut rig, &mut contender);
    let (id, request, _) = sent(contender.poll_action());
    assert!(
        matches!(request, Request::Acquire { served: Some(3), .. }),
        "next in turn, by the attempt itself: {request:?}"
    );
    contender.handle_answer(&mut rig.cx(), id, written(7));
    assert!(matches!(contender.poll_action(), Some(Action::Acquired { unwanted: false, .. })));
}

#[test]
fn who_does_not_wait_takes_no_ticket() {
    for wait in [0, 8] {
        let mut rig = Rig::new();
        let mut contender = contender(&mut rig, wait);
        answer(&mut rig, &mut contender, refused(held(99, 5, 6_000)));
        let Verdict::Busy(busy) = verdict(contender.poll_action()) else { panic!("not busy") };
        assert_eq!(busy.attempts, 1);
        assert!(contender.is_finished());
    }
}

/// Whoever put it there: each contender would pay a write for a number that is none.
#[test]
fn where_tickets_can_not_be_counted_nobody_asks_for_one() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 2_000);
    let Row::Held(odd) = held(99, 5, 6_000) else { panic!() };
    let odd = Row::Held(HeldRow { hints: Hints { uncountable: true, ..Hints::default() }, ..odd });
    answer(&mut rig, &mut contender, refused(odd.clone()));
    for _ in 0..3 {
        assert_eq!(contender.poll_action(), None);
        sleep(&mut rig, &mut contender);
        assert_eq!(answer(&mut rig, &mut contender, read(odd.clone())), Request::Read);
    }
    // Once somebody has set it right, there are tickets again.
    sleep(&mut rig, &mut contender);
    assert_eq!(answer(&mut rig, &mut contender, read(hinted(99, 5, 2, 1))), Request::Read);
    assert_eq!(answer(&mut rig, &mut contender, numbered(hinted(99, 5, 3, 1))), Request::Ticket);
}

#[test]
fn a_ticket_that_finds_the_row_free_is_followed_by_an_attempt() {
    for row in [Row::Absent, Row::Free { version: 6, hints: Hints::default() }] {
        let mut rig = Rig::new();
        let mut contender = contender(&mut rig, 2_000);
        answer(&mut rig, &mut contender, refused(held(99, 5, 6_000)));
        assert_eq!(answer(&mut rig, &mut contender, refused(row)), Request::Ticket);
        assert!(matches!(sent(contender.poll_action()).1, Request::Acquire { served: None, .. }));
    }
}

#[test]
fn no_failure_of_a_ticket_ends_the_wait_and_only_a_few_are_asked_for() {
    for kind in [FailureKind::Timeout, FailureKind::Throttled, FailureKind::MalformedRow, FailureKind::AccessDenied] {
        let mut rig = Rig::new();
        let mut contender = contender(&mut rig, 60_000);
        answer(&mut rig, &mut contender, refused(held(99, 5, 30_000)));
        let mut tickets = 0;
        for _ in 0..20 {
            let (id, request, _) = sent(contender.poll_action());
            rig.advance(6);
            let to = if request == Request::Ticket { failed(kind) } else { read(held(99, 5, 30_000)) };
            tickets += u32::from(request == Request::Ticket);
            contender.handle_answer(&mut rig.cx(), id, to);
            if contender.poll_wakeup().is_some() {
                sleep(&mut rig, &mut contender);
            }
        }
        assert_eq!(tickets, if kind.is_transient() { 4 } else { 1 }, "{kind}");
        assert!(!contender.is_finished());
    }
}

#[test]
fn a_held_row_that_refuses_a_ticket_is_not_asked_again() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 2_000);
    answer(&mut rig, &mut contender, refused(held(99, 5, 6_000)));
    assert_eq!(answer(&mut rig, &mut contender, refused(held(99, 5, 6_000))), Request::Ticket);
    for _ in 0..3 {
        sleep(&mut rig, &mut contender);
        assert_eq!(answer(&mut rig, &mut contender, read(held(99, 5, 6_000))), Request::Read);
    }
}

#[test]
fn who_waits_far_from_its_turn_takes_over_as_soon_as_it_may() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 60_000);
    answer(&mut rig, &mut contender, refused(hinted(99, 5, 900, 1)));
    let seen = rig.now().mono;
    answer(&mut rig, &mut contender, numbered(hinted(99, 5, 901, 1)));
    loop {
        sleep(&mut rig, &mut contender);
        let (id, request, _) = sent(contender.poll_action());
        if let Request::TakeOver { served, .. } = request {
            assert_eq!(served, Some(2), "one turn, for others may live");
            break;
        }
        assert_eq!(request, Request::Read);
        contender.handle_answer(&mut rig.cx(), id, read(hinted(99, 5, 901, 1)));
    }
    let waited = rig.now().mono.since(seen);
    assert!(waited >= ms(6_000) && waited < ms(6_010), "{waited:?}");
}

#[test]
fn who_is_cancelled_while_a_ticket_is_under_way_has_nothing_to_clear_up() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 2_000);
    answer(&mut rig, &mut contender, refused(held(99, 5, 6_000)));
    let (id, request, _) = sent(contender.poll_action());
    assert_eq!(request, Request::Ticket);
    contender.handle_cancel(&mut rig.cx());
    assert_eq!(verdict(contender.poll_action()), Verdict::Cancelled);
    contender.handle_answer(&mut rig.cx(), id, numbered(hinted(99, 5, 1, 0)));
    assert_eq!(contender.poll_action(), None);
    assert!(contender.is_finished());
}

#[test]
fn an_attempt_of_unknown_outcome_is_replaced_whatever_the_turn() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 20_000);
    let Request::Acquire { owner: mine, .. } = answer(&mut rig, &mut contender, failed(FailureKind::Timeout)) else {
        panic!("no attempt")
    };
    sleep(&mut rig, &mut contender);
    answer(&mut rig, &mut contender, refused(hinted(99, 5, 40, 1)));
    answer(&mut rig, &mut contender, numbered(hinted(mine.bits(), 6, 41, 1)));
    let (_, request, _) = sent(contender.poll_action());
    assert!(matches!(request, Request::Acquire { unknown, .. } if unknown == [owner(mine.bits())]));
}

#[test]
fn the_last_look_is_in_time_for_an_attempt_before_the_end() {
    let mut rig = Rig::new();
    let mut contender = in_line(&mut rig, 40);
    let stop = rig.now().mono + ms(28);
    sleep(&mut rig, &mut contender);
    assert_eq!(rig.now().mono, stop - ms(9), "one and a half requests before it");
    answer(
        &mut rig,
        &mut contender,
        read(Row::Free { version: 6, hints: Hints { tickets: Some(3), ..Hints::default() } }),
    );
    assert!(matches!(sent(contender.poll_action()).1, Request::Acquire { .. }), "nobody before it is waited for");
}
