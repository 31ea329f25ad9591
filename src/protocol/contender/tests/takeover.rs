//! When a held row may be taken over: by observation, or by server time.

use super::{contender, sleep, subject};
use crate::clock::Wall;
use crate::protocol::testing::{BEGIN, Rig, held, ms, owner, read, refused, sent, written};
use crate::protocol::{Action, HeldRow, Hints, Request, Row, Version};

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
