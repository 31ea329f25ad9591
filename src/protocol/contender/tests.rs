#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod failures;
mod tickets;

use std::sync::Arc;

use super::{Budget, Contender};
use crate::clock::Wall;
use crate::protocol::testing::{BEGIN, Rig, failed, held, ms, owner, read, refused, sent, written};
use crate::protocol::{
    Action, Backoff, FailureKind, Format, HeldRow, Hints, Polling, Request, RequestId, Row, Settings, Subject,
    Unusable, Verdict, Version,
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
fn without_a_wait_a_lease_observed_to_be_over_is_taken_at_once() {
    let mut rig = Rig::new();
    let now = rig.now();
    rig.observations.record(&subject(), owner(99), Version::Counter(5), ms(4_000), now);
    rig.advance(4_000);
    let mut contender = contender(&mut rig, 0, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    let (id, request, _) = sent(contender.poll_action());
    assert!(
        matches!(request, Request::TakeOver { seen_owner, seen_version: Version::Counter(5), .. } if seen_owner == owner(99)),
        "{request:?}"
    );
    contender.handle_answer(&mut rig.cx(), id, written(6));
    assert!(matches!(contender.poll_action(), Some(Action::Acquired { unwanted: false, .. })));
}

#[test]
fn a_lease_expired_by_server_time_is_taken_5_s_later_and_not_before() {
    for (expired_for, taken) in [(4_999, false), (5_000, true)] {
        let mut rig = Rig::new();
        let mut contender = contender(&mut rig, 0, None);
        let (id, ..) = sent(contender.poll_action());
        let expires_at = Wall::from_millis(BEGIN * 1_000 - expired_for);
        let Row::Held(row) = held(99, 5, 4_000) else { unreachable!() };
        let row = Row::Held(HeldRow { expires_at: Some(expires_at), ..row });
        contender.handle_answer(&mut rig.cx(), id, refused(row));
        let action = contender.poll_action();
        assert_eq!(matches!(action, Some(Action::Send { request: Request::TakeOver { .. }, .. })), taken);
    }
}

#[test]
fn who_waits_for_server_time_wakes_when_it_is_there_and_does_not_look_over_and_over() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 60_000, None);
    let (id, ..) = sent(contender.poll_action());
    // Server time is past this in 10 ms and 5 % of them; an answer before that says the second again that is not enough.
    let end = Wall::from_epoch(std::time::Duration::from_secs(BEGIN)) - ms(4_990);
    let row = Row::Held(HeldRow {
        owner: owner(50),
        version: Version::Counter(4),
        lease: ms(6_000),
        expires_at: Some(end),
        holder: None,
        hints: Hints::default(),
    });
    contender.handle_answer(&mut rig.cx(), id, refused(row));
    let began = rig.now();
    sleep(&mut rig, &mut contender);
    assert!(rig.now().mono.since(began.mono) < ms(11));
    let (_, request, _) = sent(contender.poll_action());
    assert!(matches!(request, Request::TakeOver { seen_version: Version::Counter(4), .. }), "{request:?}");
}

#[test]
fn an_observed_lease_is_over_by_the_slower_clock_only() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 60_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    rig.clock.advance_apart(ms(10_000), ms(3_999));
    contender.handle_wakeup(&mut rig.cx());
    let (id, request, _) = sent(contender.poll_action());
    assert_eq!(request, Request::Read);
    rig.advance(1);
    contender.handle_answer(&mut rig.cx(), id, read(held(99, 5, 4_000)));
    assert!(matches!(sent(contender.poll_action()).1, Request::TakeOver { .. }));
}

#[test]
fn an_observation_starts_again_when_the_wall_clock_is_earlier_than_at_its_start() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 60_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    rig.advance(3_900);
    rig.clock.set_wall(Wall::from_millis(BEGIN * 1_000 - 1));
    contender.handle_wakeup(&mut rig.cx());
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, read(held(99, 5, 4_000)));
    rig.advance(3_999);
    contender.handle_wakeup(&mut rig.cx());
    let (id, request, _) = sent(contender.poll_action());
    assert_eq!(request, Request::Read);
    rig.advance(1);
    contender.handle_answer(&mut rig.cx(), id, read(held(99, 5, 4_000)));
    assert!(matches!(sent(contender.poll_action()).1, Request::TakeOver { .. }));
}

#[test]
fn an_outage_until_the_end_is_told_as_the_failure_that_it_was() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 300, None);
    let mut writes = 0;
    loop {
        match contender.poll_action() {
            Some(Action::Send { id, request: Request::Acquire { unknown, .. }, .. }) => {
                assert!(unknown.is_empty(), "a throttled write did not land");
                writes += 1;
                contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Throttled));
            }
            None => sleep(&mut rig, &mut contender),
            action => {
                let Verdict::Failed(failure) = verdict(action) else { panic!("not a failure") };
                assert_eq!(failure.kind, FailureKind::Throttled);
                break;
            }
        }
    }
    assert!(writes > 2);
}

#[test]
fn what_trying_again_will_not_change_is_told_at_once() {
    let mut rig = Rig::new();
    let mut one = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(one.poll_action());
    one.handle_answer(&mut rig.cx(), id, failed(FailureKind::AccessDenied));
    assert!(
        matches!(verdict(one.poll_action()), Verdict::Failed(failure) if failure.kind == FailureKind::AccessDenied)
    );

    let mut other = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(other.poll_action());
    let foreign = Unusable::Foreign { expected: Format::LeaseholdV1, format: None };
    other.handle_answer(&mut rig.cx(), id, refused(Row::Unusable(foreign.clone())));
    assert_eq!(verdict(other.poll_action()), Verdict::Unusable(foreign));
    assert!(one.is_finished() && other.is_finished());
}

#[test]
fn past_the_latest_moment_nothing_is_sent() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 0, Some(0));
    assert_eq!(verdict(contender.poll_action()), Verdict::TooLate);
    assert!(contender.is_finished());
}

#[test]
fn a_row_taken_after_the_latest_moment_is_freed_and_never_given_out() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 100, Some(200));
    let (id, ..) = sent(contender.poll_action());
    rig.advance(200);
    contender.handle_answer(&mut rig.cx(), id, written(7));
    assert_eq!(verdict(contender.poll_action()), Verdict::TooLate);
    assert!(matches!(contender.poll_action(), Some(Action::Acquired { unwanted: true, .. })));
}

#[test]
fn who_waits_is_told_at_the_latest_moment_even_with_a_request_under_way() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 100, Some(200));
    let (id, ..) = sent(contender.poll_action());
    sleep(&mut rig, &mut contender);
    assert!(
        matches!(verdict(contender.poll_action()), Verdict::Failed(failure) if failure.kind == FailureKind::Timeout)
    );
    assert!(!contender.is_finished());

    contender.handle_answer(&mut rig.cx(), id, written(7));
    assert!(matches!(contender.poll_action(), Some(Action::Acquired { unwanted: true, .. })));
    assert_eq!(contender.poll_action(), None);
}

#[test]
fn a_late_wakeup_after_the_end_sends_nothing() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 500, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    rig.advance(60_000);
    contender.handle_wakeup(&mut rig.cx());
    assert!(matches!(verdict(contender.poll_action()), Verdict::Busy(_)));
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
fn giving_up_sends_a_release_and_tells_the_verdict_after_its_answer() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 300, None);
    for attempt in 1..=2 {
        let (id, request, _) = sent(contender.poll_action());
        assert!(matches!(request, Request::Acquire { owner: me, .. } if me == owner(attempt)));
        contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Connection));
        if attempt == 1 {
            sleep(&mut rig, &mut contender);
            rig.advance(250);
        }
    }
    let (id, request, _) = sent(contender.poll_action());
    assert_eq!(request, Request::Release { owners: vec![owner(1), owner(2)], ttl: None, hold: None });
    assert_eq!(contender.poll_action(), None);

    contender.handle_answer(&mut rig.cx(), id, written(0));
    assert!(
        matches!(verdict(contender.poll_action()), Verdict::Failed(failure) if failure.kind == FailureKind::Connection)
    );
    assert_eq!(contender.poll_action(), None);
    assert!(contender.is_finished());
}

#[test]
fn a_cancelled_attempt_under_way_is_awaited_and_then_freed() {
    let mut rig = Rig::new();
    let mut landed = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(landed.poll_action());
    landed.handle_cancel(&mut rig.cx());
    assert_eq!(verdict(landed.poll_action()), Verdict::Cancelled);
    assert_eq!(landed.poll_action(), None);
    landed.handle_answer(&mut rig.cx(), id, written(7));
    assert!(matches!(landed.poll_action(), Some(Action::Acquired { unwanted: true, .. })));

    let mut unknown = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(unknown.poll_action());
    unknown.handle_cancel(&mut rig.cx());
    assert_eq!(verdict(unknown.poll_action()), Verdict::Cancelled);
    unknown.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    let (id, request, _) = sent(unknown.poll_action());
    assert_eq!(request, Request::Release { owners: vec![owner(2)], ttl: None, hold: None });
    unknown.handle_answer(&mut rig.cx(), id, written(0));
    assert_eq!(unknown.poll_action(), None);

    let mut lost_race = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(lost_race.poll_action());
    lost_race.handle_cancel(&mut rig.cx());
    assert_eq!(verdict(lost_race.poll_action()), Verdict::Cancelled);
    lost_race.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    assert_eq!(lost_race.poll_action(), None);
    assert!(landed.is_finished() && unknown.is_finished() && lost_race.is_finished());
}

#[test]
fn a_cancel_between_two_looks_ends_it_at_once() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    contender.handle_cancel(&mut rig.cx());
    assert_eq!(verdict(contender.poll_action()), Verdict::Cancelled);
    assert!(contender.is_finished());
    assert_eq!(contender.poll_wakeup(), None);
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

#[test]
fn the_observation_of_a_row_seen_free_is_forgotten() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 60_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    assert!(rig.observations.get(&subject()).is_some());
    sleep(&mut rig, &mut contender);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, read(Row::Absent));
    assert!(rig.observations.get(&subject()).is_none());
}
