//! A log that may grow: what was added since it was last read.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::ended::Stop;
use crate::report::{Event, read_line};

/// A file of log lines.
#[derive(Debug)]
pub(super) struct Log {
    file: BufReader<File>,
    name: String,
    /// The beginning of a line whose end is not written yet.
    part: Vec<u8>,
}

impl Log {
    /// Opens it. What is in it by now is read first: who waits since then still waits.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub(super) fn open(path: &Path) -> Result<Self, Stop> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Stop::Usage(format!("the log {name} can't be read: {error}")))?;
        Ok(Self { file: BufReader::new(file), name, part: Vec::new() })
    }

    /// The events of the lines that are whole by now.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub(super) fn read(&mut self) -> Result<Vec<Event>, Stop> {
        let mut events = Vec::new();
        loop {
            let read = self.file.read_until(b'\n', &mut self.part);
            let read = read.map_err(|error| Stop::Usage(format!("the log {} can't be read: {error}", self.name)))?;
            if read == 0 || self.part.last() != Some(&b'\n') {
                return Ok(events);
            }
            events.extend(read_line(&String::from_utf8_lossy(&self.part)).map(|line| line.event));
            self.part.clear();
        }
    }
}
