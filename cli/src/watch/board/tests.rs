//! What differs between two looks is told as what it can have been, and nothing more.

use leasehold::protocol::{Hints, OwnerId, Version};

use super::*;

fn row(owner: u128, version: u64) -> HeldRow {
    HeldRow {
        owner: OwnerId::from_u128(owner),
        version: Version::Counter(version),
        lease: Duration::from_secs(3),
        expires_at: None,
        holder: None,
        hints: Hints::default(),
    }
}

fn seen(rows: &[(&str, HeldRow)]) -> Seen {
    let held = rows.iter().map(|(key, row)| ((*key).to_owned(), row.clone())).collect();
    Seen { held, ..Seen::default() }
}

/// Plays looks, one a second, and tells what happened: the kind and the key of each event.
fn play(looks: &[&[(&str, HeldRow)]]) -> (Board, Vec<(Kind, String)>) {
    let mut board = Board::new(false);
    for (second, rows) in (0..).zip(looks) {
        board.look(Duration::from_secs(second), seen(rows));
    }
    let told = board.take_events().into_iter().map(|event| (event.kind, event.key)).collect();
    (board, told)
}

fn event(kind: Kind, key: &str) -> (Kind, String) {
    (kind, key.to_owned())
}

#[test]
fn what_was_held_before_the_first_look_is_no_event() {
    let (board, told) = play(&[&[("a", row(1, 1))], &[("a", row(1, 2))]]);
    assert_eq!(told, []);
    let a = &board.held["a"];
    assert!(a.from_start && a.renewed, "{a:?}");
    assert_eq!(a.unchanged_since, Duration::from_secs(1));
}

#[test]
fn taken_and_given_back() {
    let (_, told) = play(&[&[], &[("a", row(1, 1))], &[]]);
    assert_eq!(told, [event(Kind::Acquired, "a"), event(Kind::Released, "a")]);
}

#[test]
fn another_owner_is_a_takeover_only_after_a_whole_lease_without_a_change() {
    let (board, told) = play(&[&[("a", row(1, 1))], &[("a", row(1, 1))], &[("a", row(2, 2))]]);
    assert_eq!((told, board.taken_over), (vec![event(Kind::HandedOn, "a")], 0));
    let same = [("a", row(1, 1))];
    let (board, told) = play(&[&same, &same, &same, &same, &[("a", row(2, 2))]]);
    assert_eq!(told, [event(Kind::Overdue, "a"), event(Kind::TakenOver, "a")]);
    assert_eq!((board.taken_over, board.overdue()), (1, 0));
}

#[test]
fn a_renewal_in_time_is_never_overdue() {
    let (board, told) = play(&[
        &[("a", row(1, 1))],
        &[("a", row(1, 1))],
        &[("a", row(1, 2))],
        &[("a", row(1, 2))],
        &[("a", row(1, 2))],
    ]);
    assert_eq!((told, board.overdue()), (vec![], 0));
}

#[test]
fn what_lies_beyond_the_shown_rows_is_not_taken_for_released() {
    let mut board = Board::new(false);
    board.look(Duration::ZERO, seen(&[("a", row(1, 1)), ("b", row(2, 1))]));
    board.look(Duration::from_secs(1), Seen { more: 1, ..seen(&[("b", row(2, 1))]) });
    assert!(board.take_events().is_empty());
}

#[test]
fn who_waits_is_known_from_log_lines_alone() {
    let mut board = Board::new(true);
    let (key, request_id) = ("a".to_owned(), "r-1".to_owned());
    board.logged(Duration::ZERO, Logged::Waiting { key: key.clone(), request_id: request_id.clone(), holder: None });
    assert_eq!(board.waiting.as_ref().unwrap().len(), 1);
    board.logged(Duration::ZERO, Logged::Busy { key, request_id, waited_ms: 5, attempts: 1 });
    assert!(board.waiting.as_ref().unwrap().is_empty());
    let told: Vec<_> = board.take_events().iter().map(|event| event.kind).collect();
    assert_eq!(told, [Kind::Waiting, Kind::Refused]);
}
