//! A log that may grow: what was added since it was last read.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use crate::ended::Stop;
use crate::report::{Event, LONGEST_LINE, read_line};

/// A file of log lines.
#[derive(Debug)]
pub(super) struct Log {
    file: BufReader<File>,
    name: String,
    /// The beginning of a line whose end is not written yet.
    part: Vec<u8>,
    /// That line is longer than any of ours: what is left of it is passed over.
    is_too_long: bool,
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
        Ok(Self { file: BufReader::new(file), name, part: Vec::new(), is_too_long: false })
    }

    /// Tells the events of the lines that are whole by now.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub(super) fn read(&mut self, mut tell: impl FnMut(Event)) -> Result<(), Stop> {
        loop {
            let room = (LONGEST_LINE + 1).saturating_sub(self.part.len());
            let read = (&mut self.file).take(room as u64).read_until(b'\n', &mut self.part);
            let read = read.map_err(|error| Stop::Usage(format!("the log {} can't be read: {error}", self.name)))?;
            let is_whole = self.part.last() == Some(&b'\n');
            if !is_whole && self.part.len() > LONGEST_LINE {
                self.is_too_long = true;
            } else if !is_whole && read == 0 {
                return Ok(());
            } else if !is_whole {
                continue;
            } else if !std::mem::take(&mut self.is_too_long)
                && let Some(line) = read_line(&String::from_utf8_lossy(&self.part))
            {
                tell(line.event);
            }
            self.part.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn lost(key: &str) -> String {
        format!(
            r#"{{"message":"lost","key":"{key}","request_id":"r","reason":"deleted","target":"leasehold::keeper"}}"#
        )
    }

    fn told(log: &mut Log) -> Vec<String> {
        let mut keys = Vec::new();
        log.read(|event| match event {
            Event::Lost { key, .. } => keys.push(key),
            other => panic!("{other:?}"),
        })
        .unwrap();
        keys
    }

    #[test]
    fn a_line_is_told_once_it_is_whole_and_one_without_an_end_takes_no_more_room_than_the_longest() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut log = Log::open(file.path()).unwrap();
        write!(file, "{}\n{}", lost("a"), &lost("b")[..20]).unwrap();
        assert_eq!(told(&mut log), ["a"]);
        write!(file, "{}", &lost("b")[20..]).unwrap();
        assert_eq!(told(&mut log), [""; 0]);
        writeln!(file).unwrap();
        assert_eq!(told(&mut log), ["b"]);
        for _ in 0..3 {
            write!(file, "{}", "x".repeat(LONGEST_LINE)).unwrap();
            assert_eq!(told(&mut log), [""; 0]);
            assert!(log.part.capacity() < 4 * LONGEST_LINE, "{}", log.part.capacity());
        }
        // What ends it belongs to it.
        write!(file, "{}\n{}\n", lost("c"), lost("d")).unwrap();
        assert_eq!(told(&mut log), ["d"]);
    }
}
