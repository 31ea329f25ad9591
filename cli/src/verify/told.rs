//! How all of it is told: colours, the table, what was used, how to be rid of it.

use std::io::{self, IsTerminal};

use super::played::{Played, Used};
use crate::output;
use crate::prices::{GB_SECOND_PRICE, READ_PRICE, WRITE_PRICE, number, usd};

/// A million of Lambda's requests, in us-east-1.
const REQUESTS_PRICE: f64 = 0.20;

/// Colours, where a terminal shows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(bool);

impl Paint {
    pub(super) fn for_standard_output() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        Self(wanted && io::stdout().is_terminal())
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn result(self, good: bool, text: &str) -> String {
        self.paint(if good { "32" } else { "31" }, text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A word of the table as JSON has it.
pub(super) fn fitted(word: &str) -> String {
    word.replace(' ', "_")
}

/// The table of all scenes.
pub(super) fn table(played: &[Played], paint: Paint) -> io::Result<()> {
    const HEAD: [&str; 7] = ["scene", "result", "freed ms", "next ms", "write units", "read units", "billed ms"];
    let rows: Vec<_> = played.iter().map(Played::cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.chain([HEAD[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |cells: &[&str], good: Option<bool>| {
        let mut told = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let space = " ".repeat(widths[column].saturating_sub(cell.len()));
            let cell = match good {
                Some(good) if column == 1 => paint.result(good, cell),
                _ => (*cell).to_owned(),
            };
            // Words to the left, numbers to the right.
            told.push_str(&if column < 2 { format!("  {cell}{space}") } else { format!("  {space}{cell}") });
        }
        output::line(told.trim_end())
    };
    output::line("")?;
    line(&HEAD, None)?;
    for (row, played) in rows.iter().zip(played) {
        let cells: Vec<_> = row.iter().map(String::as_str).collect();
        line(&cells, Some(played.result.is_ok()))?;
    }
    Ok(())
}

/// What it costs, with the arithmetic, at the prices of us-east-1 that `leaseholdctl cost` has.
pub(super) fn cost(used: &Used) -> (Vec<String>, f64) {
    let reads = used.read_units + used.looking_units;
    let requests = f64::from(used.invocations);
    let items = [
        (
            "writes",
            format!("{} units × ${WRITE_PRICE} / 1,000,000", number(used.write_units)),
            WRITE_PRICE / 1e6 * used.write_units,
        ),
        ("reads", format!("{} units × ${READ_PRICE} / 1,000,000", number(reads)), READ_PRICE / 1e6 * reads),
        ("lambda", format!("{} GB-s × ${GB_SECOND_PRICE}", number(used.gb_seconds)), GB_SECOND_PRICE * used.gb_seconds),
        (
            "requests",
            format!("{} × ${REQUESTS_PRICE:.2} / 1,000,000", number(requests)),
            REQUESTS_PRICE / 1e6 * requests,
        ),
    ];
    let total = items.iter().map(|(_, _, usd)| usd).sum();
    let mut lines: Vec<_> =
        items.iter().map(|(what, arithmetic, amount)| format!("  {what:<8} {arithmetic} = {}", usd(*amount))).collect();
    lines.push(format!("  {:<8} {}", "total", usd(total)));
    (lines, total)
}
