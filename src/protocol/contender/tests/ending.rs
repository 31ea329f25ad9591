//! How an acquisition ends without a lease: by its time, by a failure or by a cancellation, and what is cleared up then.

use super::{contender, sleep, verdict};
use crate::protocol::testing::{Rig, failed, held, owner, refused, sent, written};
use crate::protocol::{Action, FailureKind, Format, Request, Row, Unusable, Verdict};

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
