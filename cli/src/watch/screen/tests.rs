//! The view as it is drawn: a board in, a screen of characters out.

use std::collections::BTreeMap;

use crossterm::event::KeyEvent;
use leasehold::protocol::{HeldRow, Hints, HolderInfo, OwnerId, Version};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::board::Seen;
use super::*;
use crate::report::Event as Logged;

fn row(owner: u128, function: &str, request: &str) -> HeldRow {
    let holder = HolderInfo { function: function.into(), request_id: request.into(), ..HolderInfo::default() };
    HeldRow {
        owner: OwnerId::from_u128(owner),
        version: Version::Counter(7),
        lease: Duration::from_secs(30),
        expires_at: None,
        holder: Some(Box::new(holder)),
        hints: Hints::default(),
    }
}

fn view() -> View {
    View { table: "locks".into(), every: Duration::from_secs(2), scrolled: 0 }
}

fn drawn(view: &mut View, board: &Board, now: Duration) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(96, 18)).unwrap();
    terminal.draw(|frame| view.draw(frame, board, now)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(96).map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn held_waiting_and_what_happened_have_their_places() {
    let mut board = Board::new(true);
    let held = |rows: &[(&str, HeldRow)]| Seen {
        held: rows.iter().map(|(key, row)| ((*key).to_owned(), row.clone())).collect::<BTreeMap<_, _>>(),
        ..Seen::default()
    };
    let (one, two) = (row(1, "ship-orders", "r-0001"), row(2, "bill\u{1b}[31m", "r-0002"));
    board.look(Duration::ZERO, held(&[("orders:1", one.clone())]));
    board.look(Duration::from_secs(2), held(&[("orders:1", one), ("orders:2", two)]));
    let (key, request_id) = ("orders:1".to_owned(), "r-0003".to_owned());
    board.logged(Duration::from_secs(2), Logged::Waiting { key, request_id, holder: None });
    let screen = drawn(&mut view(), &board, Duration::from_secs(17));
    let expected = include_str!("view.txt");
    assert_eq!(screen.join("\n"), expected.trim_end(), "\n{}", screen.join("\n"));
}

#[test]
fn an_empty_table_and_a_tiny_terminal_are_drawn_as_well() {
    let mut board = Board::new(false);
    board.look(Duration::ZERO, Seen::default());
    let screen = drawn(&mut view(), &board, Duration::ZERO);
    assert!(screen[0].contains("0 held") && screen[0].contains("give --log"), "{screen:?}");
    let mut terminal = Terminal::new(TestBackend::new(3, 2)).unwrap();
    terminal.draw(|frame| view().draw(frame, &board, Duration::ZERO)).unwrap();
}

#[test]
fn q_escape_and_control_c_end_it_and_arrows_stay_within_the_rows() {
    let mut board = Board::new(false);
    let rows = (0..3).map(|n| (format!("k{n}"), row(n, "f", "r"))).collect();
    board.look(Duration::ZERO, Seen { held: rows, ..Seen::default() });
    let mut view = view();
    let key = |code, modifiers| Input::Key(KeyEvent::new(code, modifiers));
    for _ in 0..9 {
        assert!(!view.handle(&key(KeyCode::Down, KeyModifiers::NONE), &board));
    }
    assert_eq!(view.scrolled, 2);
    assert!(drawn(&mut view, &board, Duration::ZERO).iter().any(|line| line.contains("k2")));
    assert!(!view.handle(&key(KeyCode::Char('c'), KeyModifiers::NONE), &board));
    for (code, modifiers) in [
        (KeyCode::Char('q'), KeyModifiers::NONE),
        (KeyCode::Esc, KeyModifiers::NONE),
        (KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert!(view.handle(&key(code, modifiers), &board));
    }
}
