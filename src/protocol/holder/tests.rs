#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod confirming;
mod parking;
mod release;

use super::{Holder, Renewals};
use crate::clock::Now;
use crate::protocol::testing::{BEGIN, Rig, failed, held, ms, owner, refused, sent, written};
use crate::protocol::{
    Acquired, Action, FailureKind, FencingToken, Hints, LossReason, Request, Row, Sample, Settings, Version,
};

const LEASE: u64 = 6_000;
const VERSION: u64 = BEGIN * 1_000 + 1;

fn settings() -> Settings {
    Settings { lease: ms(LEASE), ..Settings::default() }
}

/// A row taken this moment, with clocks and server in agreement.
fn acquired(rig: &mut Rig) -> Acquired {
    let epoch = rig.server_time.begin();
    let now = rig.now();
    let sample = Sample { date: BEGIN, sent: now, answered: now, epoch };
    rig.server_time.record(sample);
    Acquired {
        owner: owner(1),
        version: Version::Counter(VERSION),
        sent: now,
        expires_at: Some(now.wall + ms(LEASE)),
        sample: Some(sample),
        epoch,
        waited: ms(0),
        attempts: 1,
        took_over: false,
        usual_hold: None,
    }
}

fn endless(now: Now) -> Renewals {
    Renewals { until: now.mono + ms(1_000_000), then: LossReason::MaxHold, covered_by: None }
}

fn started(rig: &mut Rig, acquired: Acquired, latest: Option<u64>) -> Holder {
    let now = rig.now();
    let latest = latest.map(|latest| now.mono + ms(latest));
    let mut holder = Holder::new(settings(), acquired, endless(now), latest);
    holder.start(&mut rig.cx(), false);
    holder
}

/// A holder that was granted its lease, with that grant already told.
fn granted(rig: &mut Rig) -> Holder {
    let acquired = acquired(rig);
    let mut holder = started(rig, acquired, None);
    let grant = Action::Granted { token: Some(FencingToken::new(VERSION)), valid_for: ms(5_400) };
    assert_eq!(holder.poll_action(), Some(grant));
    holder
}

#[track_caller]
fn wake(rig: &mut Rig, holder: &mut Holder, after: u64) {
    rig.advance(after);
    holder.handle_wakeup(&mut rig.cx());
}

#[test]
fn a_lease_is_believed_for_90_percent_from_before_the_write() {
    let mut rig = Rig::new();
    let acquired = acquired(&mut rig);
    rig.advance(100);
    let mut holder = started(&mut rig, acquired, None);
    assert!(matches!(holder.poll_action(), Some(Action::Granted { valid_for, .. }) if valid_for == ms(5_300)));
    rig.clock.advance_apart(ms(1), ms(5_299));
    assert_eq!(holder.validity().unwrap().left(rig.now()), ms(1), "by the larger of both clocks");
}

#[test]
fn a_renewal_is_due_at_a_third_and_extends_from_before_it_was_sent() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    assert_eq!(holder.poll_wakeup(rig.now()), Some(rig.now().mono + ms(2_000)));
    wake(&mut rig, &mut holder, 2_000);
    let before = rig.now();
    let (id, request, timeout) = sent(holder.poll_action());
    assert!(
        matches!(request, Request::Renew { version: Version::Counter(VERSION), new_version, .. } if new_version == Version::Counter(VERSION + 1))
    );
    assert_eq!(timeout, ms(2_000));
    rig.advance(1_000);
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    assert_eq!(holder.validity().unwrap().left(before), ms(5_400));
    assert_eq!(holder.poll_action(), None);
}

#[test]
fn a_failed_renewal_is_sent_again_after_a_twelfth_with_what_is_left_as_its_timeout() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    wake(&mut rig, &mut holder, 2_000);
    let (id, ..) = sent(holder.poll_action());
    rig.advance(2_000);
    holder.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    assert_eq!(holder.poll_action(), Some(Action::AtRisk), "4,000 of 5,400 ms are over");
    assert_eq!(holder.poll_wakeup(rig.now()), Some(rig.now().mono + ms(500)));
    wake(&mut rig, &mut holder, 500);
    assert_eq!(sent(holder.poll_action()).2, ms(900));
}

#[test]
fn a_risk_is_told_when_a_third_is_left_and_security_when_it_is_averted() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    wake(&mut rig, &mut holder, 2_000);
    let (id, ..) = sent(holder.poll_action());
    assert_eq!(holder.poll_wakeup(rig.now()), Some(rig.now().mono + ms(1_600)));
    wake(&mut rig, &mut holder, 1_599);
    assert_eq!(holder.poll_action(), None);
    wake(&mut rig, &mut holder, 1);
    assert_eq!(holder.poll_action(), Some(Action::AtRisk));
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    assert_eq!(holder.poll_action(), Some(Action::Secured));
}

#[test]
fn a_renewal_answered_in_the_same_moment_as_the_risk_is_no_risk() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    wake(&mut rig, &mut holder, 2_000);
    let (id, ..) = sent(holder.poll_action());
    rig.advance(1_700);
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    assert_eq!(holder.poll_action(), None);
}

#[test]
fn after_a_gap_the_first_act_is_the_check_and_an_answer_in_the_buffer_does_not_count() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    wake(&mut rig, &mut holder, 2_000);
    let (id, ..) = sent(holder.poll_action());
    rig.clock.advance_apart(ms(0), ms(10_000));
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    assert_eq!(holder.poll_action(), Some(Action::AtRisk));
    assert_eq!(holder.poll_action(), Some(Action::Lost(LossReason::Expired)));
    assert_eq!(holder.poll_action(), None);
    assert!(holder.validity().is_none());

    holder.handle_release(&mut rig.cx());
    assert!(matches!(sent(holder.poll_action()).1, Request::Release { .. }), "the row may still be mine");
}

#[test]
fn adopting_a_late_write_of_ones_own_takes_its_version_and_no_validity() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    wake(&mut rig, &mut holder, 2_000);
    let (id, ..) = sent(holder.poll_action());
    let before = holder.validity();
    rig.advance(100);
    holder.handle_answer(&mut rig.cx(), id, refused(held(1, VERSION + 1, LEASE)));
    assert_eq!(holder.validity(), before);
    let (_, request, _) = sent(holder.poll_action());
    assert!(matches!(request, Request::Renew { version, new_version, .. }
        if version == Version::Counter(VERSION + 1) && new_version == Version::Counter(VERSION + 2)));
}

#[test]
fn a_refusal_by_anything_else_is_a_loss_with_its_reason() {
    let cases = [
        (held(9, VERSION + 1, LEASE), LossReason::Stolen { by: owner(9) }),
        (Row::Absent, LossReason::Deleted),
        (Row::Free { version: VERSION, hints: Hints::default() }, LossReason::Freed),
    ];
    for (row, reason) in cases {
        let mut rig = Rig::new();
        let mut holder = granted(&mut rig);
        wake(&mut rig, &mut holder, 2_000);
        let (id, ..) = sent(holder.poll_action());
        holder.handle_answer(&mut rig.cx(), id, refused(row));
        assert_eq!(holder.poll_action(), Some(Action::AtRisk));
        assert_eq!(holder.poll_action(), Some(Action::Lost(reason)));
        holder.handle_release(&mut rig.cx());
        assert_eq!(holder.poll_action(), Some(Action::Released(Ok(()))), "nothing to free");
    }
}

#[test]
fn no_renewal_is_sent_once_validity_covers_the_work() {
    for (end_of_work, renewed) in [(5_400, false), (5_401, true)] {
        let mut rig = Rig::new();
        let acquired = acquired(&mut rig);
        let now = rig.now();
        let renewals = Renewals { covered_by: Some(now.mono + ms(end_of_work)), ..endless(now) };
        let mut holder = Holder::new(settings(), acquired, renewals, None);
        holder.start(&mut rig.cx(), false);
        assert!(matches!(holder.poll_action(), Some(Action::Granted { .. })));
        wake(&mut rig, &mut holder, 2_000);
        assert_eq!(holder.poll_action().is_some(), renewed);
        wake(&mut rig, &mut holder, 2_000);
        assert_eq!(holder.poll_action() == Some(Action::AtRisk), renewed, "no risk while the work is covered");
    }
}

#[test]
fn renewal_stops_at_its_end_and_the_loss_says_why() {
    let mut rig = Rig::new();
    let acquired = acquired(&mut rig);
    let now = rig.now();
    let renewals = Renewals { until: now.mono + ms(2_000), ..endless(now) };
    let mut holder = Holder::new(settings(), acquired, renewals, None);
    holder.start(&mut rig.cx(), false);
    assert!(matches!(holder.poll_action(), Some(Action::Granted { .. })));
    wake(&mut rig, &mut holder, 2_000);
    assert_eq!(holder.poll_action(), None);
    wake(&mut rig, &mut holder, 3_400);
    assert_eq!(holder.poll_action(), Some(Action::AtRisk));
    assert_eq!(holder.poll_action(), Some(Action::Lost(LossReason::MaxHold)));
}
