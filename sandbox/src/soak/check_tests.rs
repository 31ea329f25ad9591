//! The witness bites: histories with overlapping claims and falling tokens are noticed, and others are not.

use super::{super::history::History, *};

/// A history of lines as functions write them: request, time, until, and whether the work is over.
fn history(lines: &[(&str, u64, u64, Option<u64>, bool)]) -> History {
    let mut history = History::default();
    for (request, token, at, until, end) in lines {
        let until = until.map_or_else(String::new, |until| format!(r#","until":{until}"#));
        let end = if *end { r#","end":true"# } else { "" };
        history.add(&format!(
            r#"{{"request":"{request}","key":"k","owner":"{request}","token":{token},"at":{at}{until}{end}}}"#
        ));
    }
    assert_eq!(history.unreadable(), &[] as &[String]);
    history
}

fn broken(lines: &[(&str, u64, u64, Option<u64>, bool)]) -> Vec<&'static str> {
    exclusion(history(lines).claims()).into_iter().map(|broken| broken.invariant).collect()
}

const OVERLAP: &str = "one holder at a time";
const TOKENS: &str = "tokens rise";

#[test]
fn one_after_the_other_is_well() {
    let lines = [("a", 1, 10, Some(90), false), ("a", 1, 20, None, true), ("b", 2, 20, Some(99), false)];
    assert_eq!(broken(&lines), [] as [&str; 0]);
}

#[test]
fn two_who_work_at_the_same_time_are_noticed() {
    let lines = [("a", 1, 10, Some(90), false), ("b", 2, 19, Some(99), false), ("a", 1, 20, None, true)];
    assert_eq!(broken(&lines), [OVERLAP]);
}

#[test]
fn lines_may_come_in_any_order() {
    let lines = [("b", 2, 19, Some(99), false), ("a", 1, 10, Some(90), false), ("a", 1, 20, None, true)];
    assert_eq!(broken(&lines), [OVERLAP]);
}

#[test]
fn a_frozen_holder_believes_up_to_the_end_of_its_validity_and_no_longer() {
    let frozen =
        |other: u64| [("a", 1, 10, Some(90), false), ("b", 2, other, Some(200), false), ("a", 1, 150, None, false)];
    assert_eq!(broken(&frozen(89)), [OVERLAP]);
    assert_eq!(broken(&frozen(90)), [] as [&str; 0]);
}

#[test]
fn a_killed_holder_believes_up_to_its_last_line() {
    let killed =
        |last: u64| [("a", 1, 10, Some(90), false), ("a", 1, last, Some(100), false), ("b", 2, 40, Some(140), false)];
    assert_eq!(broken(&killed(40)), [] as [&str; 0]);
    assert_eq!(broken(&killed(41)), [OVERLAP]);
}

#[test]
fn who_is_told_no_believes_no_more() {
    let lines = [
        ("a", 1, 10, Some(90), false),
        ("a", 1, 30, None, false),
        ("b", 2, 31, Some(99), false),
        ("c", 3, 5, None, false),
        ("c", 3, 60, None, true),
    ];
    assert_eq!(broken(&lines), [] as [&str; 0]);
}

#[test]
fn one_long_claim_is_held_against_all_that_fall_into_it() {
    let lines = [
        ("a", 1, 10, Some(900), false),
        ("a", 1, 800, None, true),
        ("b", 2, 20, Some(90), false),
        ("b", 2, 30, None, true),
        ("c", 3, 40, Some(90), false),
        ("c", 3, 50, None, true),
    ];
    assert_eq!(broken(&lines), [OVERLAP, OVERLAP]);
}

#[test]
fn a_token_that_does_not_rise_is_noticed() {
    let tokens =
        |second: u64| [("a", 7, 10, Some(90), false), ("a", 7, 20, None, true), ("b", second, 30, Some(99), false)];
    assert_eq!(broken(&tokens(8)), [] as [&str; 0]);
    assert_eq!(broken(&tokens(7)), [TOKENS]);
    assert_eq!(broken(&tokens(6)), [TOKENS]);
}

#[test]
fn the_last_look_and_the_end_are_remembered() {
    let lines = [("a", 1, 10, Some(90), false), ("a", 1, 20, None, false), ("a", 1, 21, None, true)];
    let history = history(&lines);
    let claim = history.of_request("a").unwrap();
    assert!(!claim.looked && claim.ended);
    assert_eq!((claim.start, claim.end()), (10, 21));
}
