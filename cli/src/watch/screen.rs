//! The watch on a terminal: held locks above, who waits beside them, events below.

use std::time::Duration;

use crossterm::event::{Event as Input, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use futures_util::StreamExt as _;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Paragraph, Row, Table};
use tokio::time::{Instant, sleep_until};

use super::Watched;
use super::board::{Board, Held, Kind, holder};
use crate::arguments::interrupted;
use crate::ended::{Ended, Stop};
use crate::text::{count, cut, span};

pub(super) async fn run(
    watched: &mut Watched<'_>,
    board: &mut Board,
    every: Duration,
    looks: Option<u64>,
) -> Result<Ended, Stop> {
    // The first look fails before the terminal is taken over.
    watched.look(board).await?;
    let mut terminal = ratatui::try_init()?;
    let ended = view(watched, board, every, looks, &mut terminal).await;
    ratatui::try_restore()?;
    ended
}

async fn view(
    watched: &mut Watched<'_>,
    board: &mut Board,
    every: Duration,
    looks: Option<u64>,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<Ended, Stop> {
    let mut input = EventStream::new();
    let mut end = std::pin::pin!(interrupted());
    let mut view = View { table: watched.scan.table.name.clone(), every, scrolled: 0 };
    let mut next = Instant::now() + every;
    loop {
        let now = watched.begun.elapsed();
        terminal.draw(|frame| view.draw(frame, board, now))?;
        if looks.is_some_and(|looks| board.looks >= looks) {
            return Ok(Ended::Fine);
        }
        // Ages go on between two looks.
        let redraw = Instant::now() + Duration::from_millis(500);
        tokio::select! {
            () = &mut end => return Ok(Ended::Fine),
            event = input.next() => match event {
                Some(Ok(event)) => if view.handle(&event, board) { return Ok(Ended::Fine) },
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(Ended::Fine),
            },
            () = sleep_until(next.min(redraw)) => {
                if Instant::now() >= next {
                    watched.look(board).await?;
                    next = Instant::now() + every;
                }
            }
        }
    }
}

/// What is shown beside what is known.
struct View {
    table: String,
    every: Duration,
    scrolled: usize,
}

impl View {
    /// Whether it is the end.
    fn handle(&mut self, input: &Input, board: &Board) -> bool {
        let Input::Key(key) = input else { return false };
        if key.kind == KeyEventKind::Release {
            return false;
        }
        let last = board.held.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Down | KeyCode::Char('j') => self.scrolled = (self.scrolled + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scrolled = (self.scrolled + 10).min(last),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        false
    }

    fn draw(&mut self, frame: &mut Frame<'_>, board: &Board, now: Duration) {
        self.scrolled = self.scrolled.min(board.held.len().saturating_sub(1));
        let waiting = board.waiting.as_ref().is_some_and(|waiting| !waiting.is_empty());
        let [head, middle, events, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(if frame.area().height < 16 { 4 } else { 8 }),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let [held, waiters] =
            Layout::horizontal([Constraint::Min(40), Constraint::Length(if waiting { 34 } else { 0 })]).areas(middle);
        frame.render_widget(self.head(board), head);
        self.held(frame, held, board, now);
        if waiting {
            frame.render_widget(waiters_of(board, now), waiters);
        }
        frame.render_widget(events_of(board), events);
        let foot_line =
            format!(" q end   ↑↓ scroll   a look every {}, {} read units so far", span(self.every), board.read_units);
        frame.render_widget(Line::styled(foot_line, Style::new().add_modifier(Modifier::DIM)), foot);
    }

    fn head(&self, board: &Board) -> Line<'static> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut spans = vec![
            Span::styled(format!(" {} ", cut(&self.table, 48)), bold.bg(Color::Blue).fg(Color::White)),
            Span::styled(format!("  {} held", count(board.held.len() as u64 + board.more)), bold),
        ];
        spans.push(match &board.waiting {
            Some(waiting) => coloured(waiting.len() as u64, "waiting", Color::Yellow),
            None => Span::styled("  waiting: give --log", Style::new().add_modifier(Modifier::DIM)),
        });
        spans.push(coloured(board.overdue() as u64, "overdue", Color::Red));
        spans.push(coloured(board.taken_over, "taken over", Color::Magenta));
        if board.waiting.is_some() {
            spans.push(coloured(board.lost, "lost", Color::Red));
        }
        spans.push(coloured(board.unusable, "unusable", Color::Red));
        Line::from(spans)
    }

    fn held(&self, frame: &mut Frame<'_>, area: Rect, board: &Board, now: Duration) {
        let shown = usize::from(area.height.saturating_sub(3));
        let rows = board.held.iter().skip(self.scrolled).take(shown).map(|(key, held)| row(key, held, now));
        let widths = [
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Fill(2),
            Constraint::Length(9),
            Constraint::Length(19),
        ];
        let heading = Row::new(["key", "function", "request", "held for", "since renewal"]);
        let last = (self.scrolled + shown).min(board.held.len());
        let part = if board.held.is_empty() { String::new() } else { format!(" {}–{last} ", self.scrolled + 1) };
        let table = Table::new(rows, widths)
            .header(heading.style(Style::new().add_modifier(Modifier::DIM)))
            .block(block(" held ").title_bottom(Line::from(part).right_aligned()));
        frame.render_widget(table, area);
    }
}

fn row<'a>(key: &str, held: &Held, now: Duration) -> Row<'a> {
    let info = held.row.holder.as_deref();
    let text =
        |text: Option<&String>| text.filter(|text| !text.is_empty()).map_or("-".to_owned(), |text| cut(text, 64));
    let held_for = span(whole_seconds(now.saturating_sub(held.since)));
    let held_for = if held.from_start { format!("≥{held_for}") } else { held_for };
    Row::new([
        Cell::from(cut(key, 120)),
        Cell::from(info.map_or_else(|| cut(&holder(&held.row), 64), |info| text(Some(&info.function)))),
        Cell::from(text(info.map(|info| &info.request_id))),
        Cell::from(held_for),
        Cell::from(lease_left(held, now)),
    ])
}

/// A bar that fills while a lease stands unrenewed; full, it may be taken.
fn lease_left(held: &Held, now: Duration) -> Line<'static> {
    const WIDTH: usize = 9;
    let unchanged = now.saturating_sub(held.unchanged_since);
    let part = unchanged.as_secs_f64() / held.row.lease.as_secs_f64().max(0.001);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar of nine cells")]
    let filled = ((part * WIDTH as f64) as usize).min(WIDTH);
    let colour = if part >= 1.0 {
        Color::Red
    } else if part >= 0.5 {
        Color::Yellow
    } else {
        Color::Green
    };
    let least = if held.renewed { "" } else { "≥" };
    Line::from(vec![
        Span::styled("█".repeat(filled), Style::new().fg(colour)),
        Span::styled("░".repeat(WIDTH - filled), Style::new().add_modifier(Modifier::DIM)),
        Span::raw(format!(" {least}{}", span(whole_seconds(unchanged)))),
    ])
}

fn waiters_of(board: &Board, now: Duration) -> Paragraph<'static> {
    let waiting = board.waiting.iter().flatten().take(200);
    let lines: Vec<_> = waiting
        .map(|((key, request), waiter)| {
            let since = span(whole_seconds(now.saturating_sub(waiter.since)));
            Line::from(format!("{since:>5} {} {}", cut(key, 16), cut(request, 8)))
        })
        .collect();
    Paragraph::new(lines).block(block(" waiting, by the log "))
}

fn events_of(board: &Board) -> Paragraph<'static> {
    let lines: Vec<_> = board
        .events
        .iter()
        .take(32)
        .map(|event| {
            let colour = match event.kind {
                Kind::Acquired => Color::Green,
                Kind::Released => Color::Blue,
                Kind::HandedOn | Kind::Waiting => Color::Yellow,
                Kind::TakenOver => Color::Magenta,
                Kind::Overdue | Kind::Lost | Kind::Refused => Color::Red,
            };
            Line::from(vec![
                Span::styled(format!("{:>8}  ", span(event.at)), Style::new().add_modifier(Modifier::DIM)),
                Span::styled(format!("{:<10}  ", event.kind.word()), Style::new().fg(colour)),
                Span::raw(format!("{}  {}", cut(&event.key, 64), cut(&event.told, 160))),
            ])
        })
        .collect();
    Paragraph::new(lines).block(block(" between looks "))
}

fn block(title: &'static str) -> Block<'static> {
    Block::bordered().border_type(BorderType::Rounded).title(title)
}

fn coloured(number: u64, what: &str, colour: Color) -> Span<'static> {
    let style = if number == 0 { Style::new().add_modifier(Modifier::DIM) } else { Style::new().fg(colour) };
    Span::styled(format!("  {} {what}", count(number)), style)
}

fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}

#[cfg(test)]
mod tests;
