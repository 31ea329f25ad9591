//! Between the row taken and the grant: what a renewal has to confirm, and what comes of it if none does.

use super::{LEASE, VERSION, acquired, endless, settings, started, wake};
use crate::clock::Wall;
use crate::protocol::holder::Holder;
use crate::protocol::testing::{BEGIN, Rig, failed, held, ms, refused, sent, written};
use crate::protocol::{
    Action, Answer, FailureKind, FencingToken, Format, Outcome, Request, Row, Settings, Unusable, Verdict, Version,
};

#[test]
fn a_slow_wall_clock_cuts_the_first_validity_short() {
    let mut rig = Rig::new();
    let mut acquired = acquired(&mut rig);
    acquired.expires_at = Some(Wall::from_millis(BEGIN * 1_000));
    let mut holder = started(&mut rig, acquired, None);
    // Server time may be a second later than its date: 3 s are left to the grace, counted by a clock 5 % slow.
    let expected = ms(2_850);
    assert!(matches!(holder.poll_action(), Some(Action::Granted { valid_for, .. })
        if valid_for < expected && valid_for > expected - ms(1)));
    assert_eq!(holder.poll_wakeup(rig.now()).map(|at| at.since(rig.now().mono) < ms(1_426)), Some(true));
}

#[test]
fn an_expires_at_far_too_early_is_put_right_before_the_grant() {
    let mut rig = Rig::new();
    let mut acquired = acquired(&mut rig);
    acquired.expires_at = Some(Wall::from_millis(1_000));
    let mut holder = started(&mut rig, acquired, None);
    let (id, request, _) = sent(holder.poll_action());
    let right = Wall::from_millis((BEGIN + 1) * 1_000 + LEASE) + ms(1);
    assert!(matches!(request, Request::Renew { expires_at: Some(at), .. } if at == right), "{request:?}");
    assert!(holder.validity().is_none());
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    let grant = Action::Granted { token: Some(FencingToken::new(VERSION + 1)), valid_for: ms(5_400) };
    assert_eq!(holder.poll_action(), Some(grant));
}

#[test]
fn without_a_date_a_renewal_removes_expires_at_before_the_grant() {
    let mut rig = Rig::new();
    let mut acquired = acquired(&mut rig);
    acquired.sample = None;
    acquired.epoch = rig.server_time.begin();
    let mut holder = started(&mut rig, acquired, None);
    let (id, request, _) = sent(holder.poll_action());
    assert!(matches!(request, Request::Renew { expires_at: None, .. }), "{request:?}");
    let answer = Answer::new(Outcome::written(Version::Counter(VERSION + 1)), None);
    holder.handle_answer(&mut rig.cx(), id, answer);
    assert!(matches!(holder.poll_action(), Some(Action::Granted { .. })));
}

#[test]
fn a_version_from_a_wrong_clock_is_raised_before_the_grant_with_or_without_server_time() {
    for server_time in [true, false] {
        let mut rig = Rig::new();
        let now = rig.now();
        let mut acquired = acquired(&mut rig);
        acquired.version = Version::Counter(17);
        acquired.expires_at = acquired.expires_at.filter(|_| server_time);
        let settings = Settings { server_time, ..settings() };
        let mut holder = Holder::new(settings, acquired, endless(now), None);
        holder.start(&mut rig.cx(), false);
        let (id, request, _) = sent(holder.poll_action());
        let raised = BEGIN * 1_000;
        assert!(
            matches!(request, Request::Renew { version: Version::Counter(17), new_version, .. } if new_version == Version::Counter(raised))
        );
        holder.handle_answer(&mut rig.cx(), id, written(raised));
        let grant = Action::Granted { token: Some(FencingToken::new(raised)), valid_for: ms(5_400) };
        assert_eq!(holder.poll_action(), Some(grant));
    }
}

/// A holder whose grant waits for a renewal, and that renewal.
pub(super) fn confirming(rig: &mut Rig, latest: Option<u64>) -> (Holder, crate::protocol::RequestId) {
    let mut acquired = acquired(rig);
    acquired.sample = None;
    let mut holder = started(rig, acquired, latest);
    let (id, ..) = sent(holder.poll_action());
    (holder, id)
}

#[test]
fn a_grant_that_is_not_confirmed_in_time_is_refused_and_the_row_freed() {
    for (latest, end) in [(Some(700), 700), (None, 5_000)] {
        let mut rig = Rig::new();
        let (mut holder, _) = confirming(&mut rig, latest);
        assert_eq!(holder.poll_wakeup(rig.now()), Some(rig.now().mono + ms(end)));
        wake(&mut rig, &mut holder, end);
        assert_eq!(holder.poll_action(), Some(Action::Verdict(Verdict::TooLate)));
        assert!(matches!(sent(holder.poll_action()).1, Request::Release { .. }));
        assert_eq!(holder.poll_action(), None);
    }
}

#[test]
fn a_cancel_before_the_grant_is_a_verdict() {
    let mut rig = Rig::new();
    let (mut holder, id) = confirming(&mut rig, None);
    holder.handle_release(&mut rig.cx());
    assert_eq!(holder.poll_action(), Some(Action::Verdict(Verdict::Cancelled)));
    assert!(matches!(sent(holder.poll_action()).1, Request::Release { .. }));
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    assert_eq!(holder.poll_action(), None);
}

#[test]
fn before_the_grant_a_hopeless_failure_is_told_at_once_and_a_lost_row_too() {
    let mut rig = Rig::new();
    let (mut holder, id) = confirming(&mut rig, None);
    holder.handle_answer(&mut rig.cx(), id, failed(FailureKind::AccessDenied));
    assert!(matches!(holder.poll_action(), Some(Action::Verdict(Verdict::Failed(failure)))
        if failure.kind == FailureKind::AccessDenied));

    let mut rig = Rig::new();
    let (mut holder, id) = confirming(&mut rig, None);
    holder.handle_answer(&mut rig.cx(), id, refused(held(9, VERSION + 1, LEASE)));
    assert!(matches!(holder.poll_action(), Some(Action::Verdict(Verdict::Failed(_)))));
    assert_eq!(holder.poll_action(), Some(Action::Released(Ok(()))));
    assert!(holder.is_finished());
}

#[test]
fn before_the_grant_a_row_that_turned_into_something_else_is_named() {
    let mut rig = Rig::new();
    let (mut holder, id) = confirming(&mut rig, None);
    let foreign = Unusable::Foreign { expected: Format::LeaseholdV1, format: None };
    holder.handle_answer(&mut rig.cx(), id, refused(Row::Unusable(foreign.clone())));
    assert_eq!(holder.poll_action(), Some(Action::Verdict(Verdict::Unusable(foreign))));
    assert_eq!(holder.poll_action(), Some(Action::Released(Ok(()))), "and is not written to");
    assert!(holder.is_finished() && holder.poll_action().is_none());
}
