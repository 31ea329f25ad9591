//! The row parked, and each thing that may come of it.

use super::{LEASE, VERSION, granted, settings, wake};
use crate::clock::Wall;
use crate::protocol::Hints;
use crate::protocol::holder::Holder;
use crate::protocol::testing::{BEGIN, Rig, failed, held, ms, owner, refused, sent, written};
use crate::protocol::{Action, FailureKind, LossReason, Mutant, Request, RequestId, Row, Version};

/// How long the key is to stay held.
const MINIMUM: u64 = 60_000;
/// The first identity that the rig makes up: under it the row is parked.
const PARKED: u128 = 1;
/// The holder's own, by its rig.
const ME: u128 = 77;

/// A holder whose work took this long, and the request that parks its row.
fn parking(rig: &mut Rig, worked: u64) -> (Holder, RequestId, Request) {
    let mut acquired = super::acquired(rig);
    acquired.owner = owner(ME);
    let mut holder = super::started(rig, acquired, None);
    assert!(matches!(holder.poll_action(), Some(Action::Granted { .. })));
    rig.advance(worked);
    holder.handle_park(&mut rig.cx(), ms(MINIMUM));
    let (id, request, timeout) = sent(holder.poll_action());
    assert_eq!(timeout, ms(LEASE / 3));
    (holder, id, request)
}

#[track_caller]
fn lease_of(request: &Request) -> u64 {
    match request {
        Request::Park { lease, .. } => u64::try_from(lease.as_millis()).unwrap(),
        other => panic!("not a parking: {other:?}"),
    }
}

#[test]
fn a_row_is_parked_under_a_fresh_owner_for_a_ninth_more_than_is_left() {
    let mut rig = Rig::new();
    let at = rig.now().wall;
    let (mut holder, id, request) = parking(&mut rig, 50);
    // 59,950 ms are left; server time may be a second later than its date, and a clock 5 % off.
    let lease = 66_612;
    let expires_at = Wall::from_millis((BEGIN + 1) * 1_000 + 50 + 3 + lease);
    let (owner, parked) = (owner(ME), owner(PARKED));
    let (version, new_version) = (Version::Counter(VERSION), Version::Counter(VERSION + 1));
    let expected =
        Request::Park { owner, version, parked, new_version, at, lease: ms(lease), expires_at: Some(expires_at) };
    assert_eq!(request, expected);
    assert!(holder.validity().is_none(), "belief ends when it is sent");

    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    assert_eq!(holder.poll_action(), Some(Action::Parked));
    assert!(holder.is_finished() && holder.poll_action().is_none());
}

#[test]
fn what_is_left_counts_by_the_smaller_clock_since_the_acquisition_was_sent() {
    for (mono, wall, lease) in [(10_000, 5_000, 61_112), (5_000, 3_600_000, 61_112), (3_000, 3_000, 63_334)] {
        let mut rig = Rig::new();
        let mut holder = granted(&mut rig);
        // A renewal lets it live through the time that passes.
        holder.validity = crate::protocol::Validity::renewed(
            &crate::protocol::Settings { lease: ms(36_000_000), ..settings() },
            rig.now(),
        );
        rig.clock.advance_apart(ms(mono), ms(wall));
        holder.handle_park(&mut rig.cx(), ms(MINIMUM));
        assert_eq!(lease_of(&sent(holder.poll_action()).1), lease, "{mono} {wall}");
    }
}

#[test]
fn a_minimum_that_is_over_frees_the_row() {
    for (minimum, parks) in [(2_999, false), (3_000, false), (3_001, true)] {
        let mut rig = Rig::new();
        let mut holder = granted(&mut rig);
        rig.advance(3_000);
        holder.handle_park(&mut rig.cx(), ms(minimum));
        let request = sent(holder.poll_action()).1;
        assert_eq!(matches!(request, Request::Park { .. }), parks, "{request:?}");
        if parks {
            assert_eq!(lease_of(&request), 100, "what a row can say at least");
        } else {
            assert!(matches!(request, Request::Release { .. }), "{request:?}");
        }
    }
}

#[test]
fn a_parking_that_was_never_answered_is_sent_again_under_the_same_owner_for_less() {
    let mut rig = Rig::new();
    let (mut holder, id, first) = parking(&mut rig, 50);
    rig.advance(2_000);
    holder.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    assert_eq!(holder.poll_action(), None);
    let again = holder.poll_wakeup(rig.now()).unwrap();
    rig.clock.advance(again.since(rig.now().mono));
    holder.handle_wakeup(&mut rig.cx());
    let (id, second, _) = sent(holder.poll_action());
    assert!(lease_of(&second) < lease_of(&first) - 2_000);
    let under = |request: &Request| match request {
        Request::Park { parked, .. } => *parked,
        other => panic!("{other:?}"),
    };
    assert_eq!(under(&second), under(&first));

    holder.handle_answer(&mut rig.cx(), id, refused(held(PARKED, VERSION + 1, 66_612)));
    assert_eq!(holder.poll_action(), Some(Action::Parked), "the first had landed unseen");
    assert!(holder.is_finished());
}

#[test]
fn an_own_late_renewal_is_adopted_and_the_parking_sent_again() {
    let mut rig = Rig::new();
    let (mut holder, id, _) = parking(&mut rig, 50);
    holder.handle_answer(&mut rig.cx(), id, refused(held(ME, VERSION + 1, LEASE)));
    let (id, request, _) = sent(holder.poll_action());
    assert!(matches!(request, Request::Park { version, new_version, .. }
        if version == Version::Counter(VERSION + 1) && new_version == Version::Counter(VERSION + 2)));
    assert!(holder.validity().is_none());
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 2));
    assert_eq!(holder.poll_action(), Some(Action::Parked));
}

#[test]
fn a_renewal_in_flight_is_not_awaited_and_its_answer_means_nothing() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    wake(&mut rig, &mut holder, 2_000);
    let (renewal, ..) = sent(holder.poll_action());
    holder.handle_park(&mut rig.cx(), ms(MINIMUM));
    let (id, ..) = sent(holder.poll_action());
    holder.handle_answer(&mut rig.cx(), renewal, written(VERSION + 1));
    assert!(holder.validity().is_none() && holder.poll_action().is_none());
    holder.handle_release(&mut rig.cx());
    holder.handle_park(&mut rig.cx(), ms(1));
    assert_eq!(holder.poll_action(), None, "what is asked for comes once");
    holder.handle_answer(&mut rig.cx(), id, written(VERSION + 1));
    assert_eq!(holder.poll_action(), Some(Action::Parked));
}

#[test]
fn a_row_that_is_no_longer_mine_is_done_as_with_a_release() {
    for row in [held(9, VERSION + 1, LEASE), Row::Absent, Row::Free { version: VERSION, hints: Hints::default() }] {
        let mut rig = Rig::new();
        let (mut holder, id, _) = parking(&mut rig, 50);
        holder.handle_answer(&mut rig.cx(), id, refused(row));
        assert_eq!(holder.poll_action(), Some(Action::Released(Ok(()))));
        assert!(holder.is_finished());
    }
}

#[test]
fn a_parking_that_fails_for_good_or_for_too_long_is_told() {
    let mut rig = Rig::new();
    let (mut holder, id, _) = parking(&mut rig, 50);
    holder.handle_answer(&mut rig.cx(), id, failed(FailureKind::AccessDenied));
    assert!(matches!(holder.poll_action(), Some(Action::Released(Err(failure)))
        if failure.kind == FailureKind::AccessDenied));

    let (mut holder, id, _) = parking(&mut rig, 50);
    rig.advance(2 * LEASE);
    holder.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    assert!(matches!(holder.poll_action(), Some(Action::Released(Err(_)))), "anybody may have the row by now");
}

#[test]
fn a_minimum_that_is_over_before_the_parking_is_answered_frees_the_row() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    holder.handle_park(&mut rig.cx(), ms(1_000));
    let (id, ..) = sent(holder.poll_action());
    rig.advance(1_000);
    holder.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    wake(&mut rig, &mut holder, 500);
    assert!(matches!(sent(holder.poll_action()).1, Request::Release { .. }));
}

#[test]
fn without_server_time_no_end_is_written() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    holder.settings.server_time = false;
    holder.handle_park(&mut rig.cx(), ms(MINIMUM));
    assert!(matches!(sent(holder.poll_action()).1, Request::Park { expires_at: None, .. }));
}

#[test]
fn what_is_lost_or_not_granted_yet_is_only_released() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    rig.advance(LEASE);
    holder.handle_park(&mut rig.cx(), ms(MINIMUM));
    assert_eq!(holder.poll_action(), Some(Action::AtRisk));
    assert_eq!(holder.poll_action(), Some(Action::Lost(LossReason::Expired)));
    assert!(matches!(sent(holder.poll_action()).1, Request::Release { .. }));

    let mut rig = Rig::new();
    let (mut holder, _) = super::confirming::confirming(&mut rig, None);
    holder.handle_park(&mut rig.cx(), ms(MINIMUM));
    assert!(matches!(holder.poll_action(), Some(Action::Verdict(_))));
    assert!(matches!(sent(holder.poll_action()).1, Request::Release { .. }));
}

#[test]
fn the_rules_apply_to_formats_that_have_a_place_for_them() {
    use crate::protocol::Format;
    assert!(Mutant::ParkingWithoutVersion.applies_to(Format::LeaseholdV1));
    assert!(!Mutant::ParkingWithoutVersion.applies_to(Format::PydynoxV1));
    assert!(Mutant::ParkedUnderSameOwner.applies_to(Format::PydynoxV1));
}
