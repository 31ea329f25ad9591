//! The row freed, by who is done and by who is not wanted; what a release tells of the hold.

use super::{LEASE, VERSION, acquired, endless, granted, settings, started, wake};
use crate::protocol::holder::Holder;
use crate::protocol::testing::{Rig, failed, held, ms, owner, refused, sent, written};
use crate::protocol::{Acquired, Action, FailureKind, Request};

#[test]
fn only_work_that_is_done_under_a_valid_lease_tells_how_long_it_took() {
    let told = |end: &dyn Fn(&mut Rig, &mut Holder), after: u64, usual: Option<u64>| {
        let mut rig = Rig::new();
        let acquired = Acquired { usual_hold: usual.map(ms), ..acquired(&mut rig) };
        let mut holder = started(&mut rig, acquired, None);
        while holder.poll_action().is_some() {}
        rig.advance(after);
        end(&mut rig, &mut holder);
        match std::iter::from_fn(|| holder.poll_action()).find_map(|action| match action {
            Action::Send { request: Request::Release { hold, .. }, .. } => Some(hold),
            _ => None,
        }) {
            Some(hold) => hold,
            None => panic!("no release"),
        }
    };
    let done = |rig: &mut Rig, holder: &mut Holder| holder.handle_release(&mut rig.cx());
    assert_eq!(told(&done, 100, None), Some(ms(100)));
    assert_eq!(told(&done, 100, Some(20)), Some(ms(40)), "a quarter of the way");
    assert_eq!(told(&done, 60_000, Some(20)), None, "the lease was over");
    assert_eq!(told(&|rig, holder| holder.handle_unwanted(&mut rig.cx()), 100, Some(20)), None, "a crash");
    let kept = |rig: &mut Rig, holder: &mut Holder| holder.handle_park(&mut rig.cx(), ms(50));
    assert_eq!(told(&kept, 100, Some(20)), None, "the minimum was over, but most such holds end by a takeover");
}

#[test]
fn no_renewal_follows_a_release() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    wake(&mut rig, &mut holder, 2_000);
    let (renewal, ..) = sent(holder.poll_action());
    holder.handle_release(&mut rig.cx());
    let (release, request, _) = sent(holder.poll_action());
    let ttl = Some(rig.now().wall.as_millis() / 1_000 + 7 * 86_400);
    assert_eq!(request, Request::Release { owners: vec![owner(1)], ttl, hold: Some(ms(2_000)) });
    assert!(holder.validity().is_none());

    holder.handle_answer(&mut rig.cx(), renewal, written(VERSION + 1));
    wake(&mut rig, &mut holder, 4_000);
    assert_eq!(holder.poll_action(), None);
    holder.handle_answer(&mut rig.cx(), release, written(0));
    assert_eq!(holder.poll_action(), Some(Action::Released(Ok(()))));
    assert!(holder.is_finished());
}

#[test]
fn an_unknown_release_is_sent_again_and_a_refused_one_is_done() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    holder.handle_release(&mut rig.cx());
    let (id, first, _) = sent(holder.poll_action());
    holder.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    let again = holder.poll_wakeup(rig.now()).unwrap();
    rig.clock.advance(again.since(rig.now().mono));
    holder.handle_wakeup(&mut rig.cx());
    let (id, second, _) = sent(holder.poll_action());
    assert_eq!(first, second);
    holder.handle_answer(&mut rig.cx(), id, refused(held(9, VERSION + 1, LEASE)));
    assert_eq!(holder.poll_action(), Some(Action::Released(Ok(()))));
}

#[test]
fn an_unwanted_row_is_freed_without_a_word() {
    let mut rig = Rig::new();
    let acquired = acquired(&mut rig);
    let now = rig.now();
    let mut holder = Holder::new(settings(), acquired, endless(now), None);
    holder.start(&mut rig.cx(), true);
    assert!(matches!(sent(holder.poll_action()).1, Request::Release { .. }));
    assert_eq!(holder.poll_action(), None);
}

#[test]
fn what_was_abandoned_says_nothing_more() {
    let mut rig = Rig::new();
    let mut holder = granted(&mut rig);
    holder.handle_abandon();
    wake(&mut rig, &mut holder, 60_000);
    assert_eq!(holder.poll_action(), None);
    assert!(holder.is_finished() && holder.validity().is_none());
}
