//! What a contender makes of requests that fail: how soon it sends another, and what it tells in the end.

use super::*;

#[test]
fn the_release_at_giving_up_is_sent_three_times_at_most_and_nobody_waits_for_more_than_the_first() {
    for (cancelled, answered_by) in [(false, 2), (false, 9), (true, 9)] {
        let mut rig = Rig::new();
        let mut contender = contender(&mut rig, 0, None);
        let (id, ..) = sent(contender.poll_action());
        contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
        let mut releases = 0;
        while !contender.is_finished() {
            let (id, request, _) = sent(contender.poll_action());
            assert_eq!(request, Request::Release { owners: vec![owner(1)], ttl: None, hold: None });
            releases += 1;
            let answer = if releases == answered_by { written(0) } else { failed(FailureKind::Throttled) };
            contender.handle_answer(&mut rig.cx(), id, answer);
            if releases == 1 {
                assert!(matches!(verdict(contender.poll_action()), Verdict::Failed(_)));
                if cancelled {
                    contender.handle_cancel(&mut rig.cx());
                }
            }
            if !contender.is_finished() {
                sleep(&mut rig, &mut contender);
            }
        }
        assert_eq!(releases, answered_by.min(3));
        assert_eq!(contender.poll_action(), None);
    }
}

#[test]
fn a_takeover_that_fails_is_sent_again_at_the_pace_of_polling() {
    let mut rig = Rig::new();
    let now = rig.now();
    rig.observations.record(&subject(), owner(99), Version::Counter(5), ms(4_000), now);
    rig.advance(4_000);
    let mut contender = contender(&mut rig, 2_000, None);
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, refused(held(99, 5, 4_000)));
    let mut takeovers = vec![];
    loop {
        match contender.poll_action() {
            Some(Action::Send { id, request: Request::TakeOver { .. }, .. }) => {
                takeovers.push(rig.now().mono);
                contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Throttled));
            }
            None => sleep(&mut rig, &mut contender),
            action => {
                // Not that it is busy: the holder's lease is over.
                let Verdict::Failed(failure) = verdict(action) else { panic!("not a failure") };
                assert_eq!(failure.kind, FailureKind::Throttled);
                break;
            }
        }
    }
    let between: Vec<_> = takeovers.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert_eq!(between[..5], [ms(50), ms(100), ms(200), ms(400), ms(500)]);
}

#[test]
fn five_throttles_in_a_row_leave_time_for_a_sixth_attempt_within_the_usual_wait() {
    let mut rig = Rig::new();
    // Jitter makes each of the delays up to a fifth longer.
    let polling = Polling::Backoff(Backoff { first: ms(60), max: ms(600) });
    let now = rig.now();
    let epoch = rig.server_time.begin();
    let settings = Settings { lease: ms(6_000), polling, ..Settings::default() };
    let budget = Budget { stop: now.mono + ms(2_000), latest: None };
    let mut contender = Contender::new(settings, subject(), budget, epoch, now);
    contender.start(&mut rig.cx());
    for _ in 0..5 {
        let (id, ..) = sent(contender.poll_action());
        rig.advance(30);
        contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Throttled));
        sleep(&mut rig, &mut contender);
    }
    let (id, ..) = sent(contender.poll_action());
    contender.handle_answer(&mut rig.cx(), id, written(7));
    assert!(matches!(contender.poll_action(), Some(Action::Acquired { acquired, .. }) if acquired.attempts == 6));
}

#[test]
fn one_request_without_an_answer_does_not_use_up_the_wait() {
    let mut rig = Rig::new();
    let mut contender = contender(&mut rig, 2_000, None);
    let (id, _, timeout) = sent(contender.poll_action());
    assert_eq!(timeout, ms(1_000));
    rig.advance(1_000);
    contender.handle_answer(&mut rig.cx(), id, failed(FailureKind::Timeout));
    sleep(&mut rig, &mut contender);
    let (id, request, timeout) = sent(contender.poll_action());
    assert!(matches!(request, Request::Acquire { unknown, .. } if unknown == [owner(1)]));
    assert_eq!(timeout, ms(5_000), "the last one has all of what an attempt may take");
    rig.advance(4_000);
    contender.handle_answer(&mut rig.cx(), id, written(8));
    assert!(matches!(contender.poll_action(), Some(Action::Acquired { unwanted: false, .. })));
}
