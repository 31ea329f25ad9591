//! Standard output and the progress on standard error, as far as anybody reads them.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

/// Prints one line.
///
/// # Errors
///
/// When standard output can't be written to.
pub(crate) fn line(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Prints a JSON document, indented for people; programs don't mind.
///
/// # Errors
///
/// When standard output can't be written to.
pub(crate) fn document(value: &Value) -> io::Result<()> {
    line(&format!("{value:#}"))
}

/// A line on standard error that is written over and over, where that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: bool,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { shown: false, terminal: io::stderr().is_terminal() }
    }

    /// Tells how far it is. What can't be told does no harm.
    pub(crate) fn tell(&mut self, text: &str) {
        if self.terminal {
            let _ = write!(io::stderr(), "\r\u{1b}[K{text}");
            let _ = io::stderr().flush();
            self.shown = true;
        }
    }

    /// Tells what begins now: on a terminal as a line that is written over, elsewhere as one that stays.
    pub(crate) fn step(&mut self, text: &str) {
        if self.terminal {
            self.tell(&format!("{text} …"));
        } else {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Takes the line away, so that something else can be printed.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
            let _ = io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
