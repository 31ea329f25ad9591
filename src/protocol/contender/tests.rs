#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod ending;
mod failures;
mod takeover;
mod tickets;

use std::sync::Arc;

use super::{Budget, Contender};
use crate::clock::Wall;
use crate::protocol::testing::{BEGIN, Rig, failed, held, ms, owner, read, refused, sent, written};
use crate::protocol::{
    Action, Backoff, FailureKind, Hints, Polling, Request, RequestId, Row, Settings, Subject, Verdict, Version,
};

fn subject() -> Subject {
    Arc::from("orders:1")
}

/// A contender with a lease of 6 s that waits for `wait` ms, `latest` ms from now at the latest.
fn contender(rig: &mut Rig, wait: u64, latest: Option<u64>) -> Contender {
    let now = rig.now();
    let epoch = rig.server_time.begin();
    let polling = Polling::Backoff(Backoff::default());
    let settings = Settings { lease: ms(6_000), polling, ..Settings::default() };
    let budget = Budget { stop: now.mono + ms(wait), latest: latest.map(|latest| now.mono + ms(latest)) };
    let mut contender = Contender::new(settings, subject(), budget, epoch, now);
    contender.start(&mut rig.cx());
    contender
}

/// Wakes the contender when it wants to be woken.
#[track_caller]
fn sleep(rig: &mut Rig, contender: &mut Contender) {
    let at = contender.poll_wakeup().unwrap();
    rig.clock.advance(at.since(rig.now().mono));
    contender.handle_wakeup(&mut rig.cx());
}

#[track_caller]
fn verdict(action: Option<Action>) -> Verdict {
    match action {
        Some(Action::Verdict(verdict)) => verdict,
        other => panic!("no verdict: {other:?}"),
    }
}

#[test]
fn a_free_row_is_taken_by_the_first_write() {
    let mut rig = Rig::new();
    let began = rig.now();
    let mut contender = contender(&mut rig, 2_000, None);
    let (id, request, _) = sent(contender.poll_action());
    assert!(matches!(request, Request::Acquire { owner: me, ref unknown, .. } if me == owner(1) && unknown.is_empty()));
    assert_eq!(contender.poll_action(), None);

    rig.advance(20);
    contender.handle_answer(&mut rig.cx(), id, written(7));
    let Some(Action::Acquired { acquired, unwanted: false }) = contender.poll_action() else { panic!("not acquired") };
    assert_eq!((acquired.owner, acquired.version, acquired.sent), (owner(1), Version::Counter(7), began));
    assert_eq!((acquired.waited, acquired.attempts, acquired.took_over), (ms(20), 1, false));
    assert!(contender.is_finished());
    assert_eq!(contender.poll_action(), None);
}

#[test]
fn without_a_wait_one_attempt_is_sent_and_busy_names_the_holder() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 0, None);
    let (id, ..) = sent(contender.poll_action());
    rig.advance(20);
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    let Verdict::Busy(busy) = verdict(contender.poll_action()) else { panic!("not busy") };
    assert_eq!(busy.holder.unwrap().function, "function-99");
    assert_eq!((busy.attempts, busy.waited, busy.retry_after), (1, ms(20), ms(4_000)));
    assert!(contender.is_finished());
}

#[test]
fn an_attempt_may_replace_the_unknown_ones_before_it_but_no_refused_one() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 10_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    sleep(&mut rig, &mut contender);
    let (id, request, _) = sent(contender.poll_action());
    assert!(
        matches!(request, Request::Acquire { owner: me, ref unknown, .. } if me == owner(2) && *unknown == [owner(1)])
    );

    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    sleep(&mut rig, &mut contender);
    let (id, request, _) = sent(contender.poll_action());
    assert_eq!(request, Request::Read);
    contender.handle_answer(&mut rig.cx(), id, read(Row::Free { version: 5, hints: Hints::default() }));
    let (_, request, _) = sent(contender.poll_action());
    assert!(
        matches!(request, Request::Acquire { owner: me, ref unknown, .. } if me == owner(3) && *unknown == [owner(1)])
    );
}

#[test]
fn a_row_that_an_unknown_attempt_of_mine_took_is_written_at_once() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 10_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    sleep(&mut rig, &mut contender);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    sleep(&mut rig, &mut contender);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, read(held(1, 6, 6_000)));
    assert!(matches!(sent(contender.poll_action()).1, Request::Acquire { .. }));
}

#[test]
fn requests_get_their_timeouts() {
    let mut rig = Rig::new();
    let mut warm = contender(&mut rig, 60_000, None);
    let (id, _, timeout) = sent(warm.poll_action());
    assert_eq!(timeout, ms(5_000), "an attempt");
    warm.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    sleep(&mut rig, &mut warm);
    assert_eq!(sent(warm.poll_action()).2, ms(2_000), "a look: a third of the lease");

    let mut short = contender(&mut rig, 2_000, None);
    let (id, _, timeout) = sent(short.poll_action());
    assert_eq!(timeout, ms(1_000), "half of what is left of the wait");
    short.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    sleep(&mut rig, &mut short);
    let (id, _, timeout) = sent(short.poll_action());
    assert_eq!(timeout, ms(975), "a look, too");
    rig.advance(600);
    short.handle_answer(&mut rig.cx(), id, read(held(99, 5, 4_000)));
    sleep(&mut rig, &mut short);
    assert_eq!(sent(short.poll_action()).2, ms(2_000 - 50 - 600 - 100), "the last look: until the end of the wait");

    assert_eq!(sent(contender(&mut rig, 100, Some(300)).poll_action()).2, ms(300), "what is left");
    rig.warm = false;
    assert_eq!(sent(contender(&mut rig, 100, Some(300)).poll_action()).2, ms(1_000), "the first of a client");
}

#[test]
fn an_attempt_writes_server_time_where_an_answer_of_its_session_tells_it() {
    let mut rig = Rig::new();
    rig.clock.set_wall(Wall::from_millis(1_000));
    let mut contender = contender(&mut rig, 60_000, None);
    let (id, request, _) = sent(contender.poll_action());
    assert!(matches!(request, Request::Acquire { expires_at: Some(at), .. } if at == Wall::from_millis(7_000)));
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 100)));
    sleep(&mut rig, &mut contender);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, read(Row::Free { version: 5, hints: Hints::default() }));
    let (_, request, _) = sent(contender.poll_action());
    let upper = Wall::from_millis((BEGIN + 1) * 1_000 + 6_000);
    assert!(matches!(request, Request::Acquire { expires_at: Some(at), .. } if at == upper + ms(1)), "{request:?}");
}

#[test]
fn polling_doubles_up_to_its_limit_and_spreads_by_a_fifth() {
    let polling = Backoff { first: ms(50), max: ms(500) };
    for (look, base) in [(0, 50), (1, 100), (2, 200), (3, 400), (4, 500), (40, 500)] {
        assert_eq!(polling.delay(look, 0.0), ms(base).mul_f64(0.8));
        assert_eq!(polling.delay(look, 1.0), ms(base).mul_f64(1.2));
        let somewhere = polling.delay(look, 0.3);
        assert!(ms(base).mul_f64(0.8) <= somewhere && somewhere <= ms(base).mul_f64(1.2));
    }
}

#[test]
fn answers_to_other_requests_are_dropped() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), RequestId(77), written(7));
    assert_eq!(contender.poll_action(), None);
    contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    contender.handle_answer(&mut rig.cx(), id, written(7));
    assert_eq!(contender.poll_action(), None);
}
