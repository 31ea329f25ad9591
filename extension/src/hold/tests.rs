//! Every clause of the hold, each as a row of what happens and what is to be done.

use super::*;

const INVOKED_WALL: u64 = 1_800_000_000_000;
const A: SessionId = SessionId(1);
const B: SessionId = SessionId(2);

/// What happens, in milliseconds after the start.
#[derive(Clone, Copy, Debug)]
enum Event {
    Hello,
    /// An invocation with this much time left, or with none known.
    Invoke(&'static str, Option<u64>),
    Began(SessionId, &'static str),
    Lease(SessionId, u64),
    Ended(SessionId),
    Settled,
}

/// What is to be done, in milliseconds after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Nobody asks: Next is out.
    Out,
    Wait(u64),
    WaitForEvent,
    Settle(u64),
    Next,
}

use Event::{Began, Ended, Hello, Invoke, Lease, Settled};
use Expected::{Next, Out, Settle, Wait, WaitForEvent};

const ORIGIN: Mono = Mono::from_origin(Duration::from_secs(100));

fn at(ms: u64) -> Now {
    let since = Duration::from_millis(ms);
    Now { mono: ORIGIN + since, wall: Wall::from_millis(INVOKED_WALL) + since }
}

fn apply(hold: &mut Hold, ms: u64, event: Event) {
    match event {
        Hello => hold.handle_hello(),
        Invoke(id, left) => {
            hold.handle_invoke(at(ms), id.to_owned(), left.map_or(0, |left| INVOKED_WALL + ms + left));
        }
        Began(session, id) => hold.handle_began(session, id),
        Lease(session, lease) => hold.handle_lease(session, Duration::from_millis(lease)),
        Ended(session) => hold.handle_ended(session),
        Settled => hold.handle_settled(),
    }
}

fn expected(step: Step) -> Expected {
    let ms = |mono: Mono| u64::try_from(mono.since(ORIGIN).as_millis()).unwrap();
    match step {
        Step::Wait { until: Some(until) } => Wait(ms(until)),
        Step::Wait { until: None } => WaitForEvent,
        Step::Settle { until } => Settle(ms(until)),
        Step::Next => Next,
    }
}

/// Runs the rows in order: at a moment these events happen, then this is to be done. Asking twice must not change it,
/// except that Next is said once.
#[track_caller]
fn check(rows: &[(u64, &[Event], Expected)]) {
    let mut hold = Hold::default();
    for (index, (ms, events, then)) in rows.iter().enumerate() {
        for event in *events {
            apply(&mut hold, *ms, *event);
        }
        let questions = match then {
            Out => 0,
            Next => 1,
            Wait(_) | WaitForEvent | Settle(_) => 2,
        };
        for asked in 0..questions {
            let step = expected(hold.poll(at(*ms).mono));
            assert_eq!(step, *then, "row {index} at {ms} ms, question {asked}, after {events:?}");
        }
    }
}

#[test]
fn without_a_layer_next_is_called_at_once() {
    check(&[(0, &[], Out), (10, &[Invoke("r", Some(3_000))], Settle(1_210)), (10, &[Settled], Next)]);
}

#[test]
fn before_a_next_without_an_invocation_the_writes_are_awaited_too() {
    check(&[
        (0, &[Began(A, "r")], Settle(1_200)),
        (5, &[Settled], Next),
        (500, &[], Settle(1_700)),
        (1_700, &[Settled], Next),
    ]);
}

#[test]
fn a_layer_that_said_hello_is_waited_for_for_50_ms() {
    check(&[
        (0, &[Hello], Out),
        (10, &[Invoke("r", Some(3_000))], Wait(60)),
        (59, &[], Wait(60)),
        (60, &[], Settle(1_260)),
        (61, &[Settled], Next),
    ]);
}

#[test]
fn a_session_within_the_50_ms_is_held_for() {
    check(&[
        (0, &[Hello, Invoke("r", Some(3_000))], Wait(50)),
        (30, &[Began(A, "r")], Wait(4_500)),
        (2_000, &[], Wait(4_500)),
        (2_100, &[Ended(A)], Settle(2_900)),
        (2_101, &[Settled], Next),
    ]);
}

#[test]
fn a_function_that_had_a_session_has_a_layer() {
    check(&[
        (0, &[Invoke("r", Some(3_000)), Began(A, "r")], Wait(4_500)),
        (10, &[Ended(A)], Settle(1_210)),
        (11, &[Settled], Next),
        (20, &[Invoke("r2", Some(3_000))], Wait(70)),
    ]);
}

#[test]
fn a_session_that_opened_before_its_invocation_came_is_held_for() {
    check(&[
        (0, &[Hello, Began(A, "r")], Out),
        (1, &[Invoke("r", Some(3_000))], Wait(4_501)),
        (5, &[Ended(A)], Settle(1_205)),
        (6, &[Settled], Next),
    ]);
}

#[test]
fn a_session_that_closed_before_its_invocation_came_is_consumed_by_it() {
    check(&[
        (0, &[Hello, Began(A, "r"), Ended(A)], Out),
        (1, &[Invoke("r", Some(3_000))], Settle(1_201)),
        (2, &[Settled], Next),
        // Consumed: the retry under the same id in the same environment waits for a session of its own.
        (1_000, &[Invoke("r", Some(3_000))], Wait(1_050)),
        (1_010, &[Began(B, "r")], Wait(5_500)),
        (1_020, &[Ended(B)], Settle(2_220)),
        (1_020, &[Settled], Next),
    ]);
}

#[test]
fn two_sessions_that_both_closed_early_are_consumed_together() {
    check(&[
        (0, &[Hello, Began(A, "r"), Began(B, "r"), Ended(B), Ended(A)], Out),
        (1, &[Invoke("r", Some(3_000))], Settle(1_201)),
        (1, &[Settled], Next),
        (9, &[Invoke("r", Some(3_000))], Wait(59)),
    ]);
}

#[test]
fn what_another_invocation_left_behind_is_forgotten() {
    check(&[
        (0, &[Hello, Began(A, "late"), Ended(A)], Out),
        (1, &[Invoke("r", Some(3_000))], Wait(51)),
        (51, &[Settled], Settle(1_251)),
        (51, &[Settled], Next),
        (60, &[Invoke("late", Some(3_000))], Wait(110)),
    ]);
}

#[test]
fn several_sessions_of_one_request_id_are_all_held_for() {
    check(&[
        (0, &[Hello, Began(A, "r"), Invoke("r", Some(3_000)), Began(B, "r")], Wait(4_500)),
        (10, &[Ended(A)], Wait(4_500)),
        (20, &[Ended(B)], Settle(1_220)),
        (20, &[Settled], Next),
    ]);
}

#[test]
fn a_session_that_opens_during_the_cleanup_is_held_for_and_cleaned_up_after() {
    check(&[
        (0, &[Invoke("r", Some(10_000)), Began(A, "r")], Wait(11_500)),
        (10, &[Ended(A)], Settle(1_210)),
        (20, &[Began(B, "r"), Settled], Wait(11_500)),
        (500, &[Ended(B)], Settle(1_700)),
        (501, &[Settled], Next),
    ]);
}

#[test]
fn another_invocations_session_holds_nothing() {
    check(&[
        (0, &[Began(A, "other"), Invoke("r", Some(3_000)), Began(B, "r")], Wait(4_500)),
        (10, &[Ended(B)], Settle(1_210)),
        (10, &[Settled], Next),
    ]);
}

#[test]
fn a_short_lease_shortens_the_cleanup_to_three_fifths_of_it() {
    check(&[
        (0, &[Invoke("r", Some(10_000)), Began(A, "r"), Lease(A, 30_000), Lease(A, 1_000)], Wait(11_500)),
        (10, &[Ended(A)], Settle(610)),
        (10, &[Settled], Next),
        (20, &[Invoke("r2", Some(10_000)), Began(A, "r2"), Lease(A, 30_000)], Wait(11_520)),
        (30, &[Ended(A)], Settle(1_230)),
    ]);
}

#[test]
fn a_cleanup_that_began_before_the_deadline_ends_100_ms_before_it() {
    check(&[
        (0, &[Invoke("r", Some(1_000)), Began(A, "r")], Wait(2_500)),
        (800, &[Ended(A)], Settle(900)),
        (850, &[], Settle(900)),
        // Whoever awaits the writes reports at the bound.
        (900, &[Settled], Next),
    ]);
    check(&[
        (0, &[Invoke("r", Some(1_000)), Began(A, "r")], Wait(2_500)),
        // Too late for it: the bound has passed when the cleanup begins.
        (950, &[Ended(A)], Settle(900)),
        (950, &[Settled], Next),
    ]);
}

#[test]
fn a_cleanup_that_began_after_the_deadline_has_its_full_time_but_no_overtime() {
    check(&[
        (0, &[Invoke("r", Some(1_000)), Began(A, "r")], Wait(2_500)),
        (1_000, &[Ended(A)], Settle(2_200)),
        (1_100, &[Settled], Next),
    ]);
    check(&[
        (0, &[Invoke("r", Some(1_000)), Began(A, "r")], Wait(2_500)),
        (2_000, &[Ended(A)], Settle(2_500)),
        (2_500, &[Settled], Next),
    ]);
}

#[test]
fn in_overtime_next_is_called_whatever_is_open() {
    check(&[
        (0, &[Invoke("r", Some(1_000)), Began(A, "r")], Wait(2_500)),
        (2_499, &[], Wait(2_500)),
        (2_500, &[], Settle(2_500)),
        (2_500, &[Settled], Next),
        // The session that was given up holds no retry, and its end is nobody's session.
        (3_000, &[Invoke("r", Some(1_000))], Wait(3_050)),
        (3_050, &[Ended(A)], Settle(3_900)),
        (3_050, &[Settled], Next),
        (4_000, &[Invoke("r", Some(1_000))], Wait(4_050)),
    ]);
}

#[test]
fn a_late_question_finds_the_same_answer() {
    check(&[
        (0, &[Hello, Invoke("r", Some(1_000)), Began(A, "r")], Wait(2_500)),
        // The process did not run for ten seconds.
        (10_000, &[], Settle(2_500)),
        (10_000, &[Settled], Next),
    ]);
}

#[test]
fn an_unknown_deadline_bounds_nothing() {
    check(&[
        (0, &[Hello, Invoke("r", None)], Wait(50)),
        (10, &[Began(A, "r")], WaitForEvent),
        (3_600_000, &[], WaitForEvent),
        (3_600_001, &[Ended(A)], Settle(3_601_201)),
        (3_600_002, &[Settled], Next),
    ]);
}

#[test]
fn a_deadline_of_the_last_century_is_unknown_and_one_that_just_passed_is_not() {
    let mut hold = Hold::default();
    hold.handle_began(A, "r");
    hold.handle_invoke(at(0), "r".to_owned(), 86_400_000);
    assert_eq!(hold.poll(at(0).mono), Step::Wait { until: None });

    let mut hold = Hold::default();
    hold.handle_began(A, "r");
    hold.handle_invoke(at(0), "r".to_owned(), INVOKED_WALL - 500);
    assert_eq!(expected(hold.poll(at(0).mono)), Wait(1_000));
}

#[test]
fn next_is_held_for_a_session_from_its_invocation_until_next() {
    let mut hold = Hold::default();
    hold.handle_began(A, "r");
    assert!(!hold.is_held_for(A), "before the invocation came");
    hold.handle_invoke(at(0), "r".to_owned(), INVOKED_WALL + 1_000);
    hold.handle_began(B, "other");
    assert!(hold.is_held_for(A));
    assert!(!hold.is_held_for(B), "another invocation's");
    assert_eq!(expected(hold.poll(at(2_500).mono)), Settle(2_500));
    hold.handle_settled();
    assert_eq!(hold.poll(at(2_500).mono), Step::Next);
    assert!(!hold.is_held_for(A), "after Next");
}

#[test]
fn the_memory_is_bounded_and_keeps_the_latest() {
    let mut hold = Hold::default();
    for n in 0..1_000 {
        hold.handle_began(SessionId(n), &format!("r{n}"));
        hold.handle_ended(SessionId(n));
    }
    assert_eq!(hold.remembered.len(), REMEMBERED);
    hold.handle_invoke(at(0), "r999".to_owned(), 0);
    assert_eq!(expected(hold.poll(at(0).mono)), Settle(1_200));
}

#[test]
fn a_report_that_nobody_asked_for_changes_nothing() {
    check(&[(0, &[Settled, Ended(A)], Out), (1, &[Hello, Invoke("r", Some(3_000)), Settled], Wait(51))]);
}

#[test]
fn what_was_waited_for_in_vain_is_told_and_nothing_else_is() {
    let through = |events: &[(u64, Event)]| {
        let mut hold = Hold::default();
        for (ms, event) in events {
            apply(&mut hold, *ms, *event);
        }
        // To Next, however long it takes.
        for ms in [0, 50, 100, 60_000] {
            if let Step::Settle { .. } = hold.poll(at(ms).mono) {
                hold.handle_settled();
                assert_eq!(hold.poll(at(ms).mono), Step::Next);
                break;
            }
        }
        (hold.take_in_vain(), hold.take_in_vain())
    };
    let invoke = (0, Invoke("r", None));
    assert_eq!(through(&[(0, Hello), invoke]), (true, false), "once each time");
    assert_eq!(through(&[(0, Hello), invoke, (40, Began(A, "r")), (45, Ended(A))]), (false, false));
    assert_eq!(through(&[(0, Began(A, "r")), (0, Ended(A)), invoke]), (false, false), "its session came before it");
    assert_eq!(through(&[invoke]), (false, false), "a function without a layer");
}
