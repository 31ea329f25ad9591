//! A process that can be told from a later one with the same id.

use std::{fs, io};

use serde::{Deserialize, Serialize};

/// A process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: u32,
    /// When it started, in clock ticks after the boot.
    start: u64,
    /// Its pid namespace; empty where that can't be read (a process may forbid it).
    namespace: String,
}

impl Process {
    /// The process that bears this id now.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is none, or only its remains.
    pub fn read(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| {
            // The file is opened and then its process dies: ESRCH.
            let vanished = error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
            if vanished { io::ErrorKind::NotFound.into() } else { error }
        })?;
        let stat = Stat::parse(&stat).ok_or_else(|| io::Error::other("/proc/PID/stat is not as expected"))?;
        if stat.is_dead {
            return Err(io::ErrorKind::NotFound.into());
        }
        let namespace = fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap_or_default();
        Ok(Self { pid, start: stat.start, namespace: namespace.to_string_lossy().into_owned() })
    }

    /// Whether it is sure that this process lives no more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match Self::read(self.pid) {
            Ok(now) => {
                let known = !now.namespace.is_empty() && !self.namespace.is_empty();
                now.start != self.start || known && now.namespace != self.namespace
            }
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// Killed and not yet waited for, with no thread left.
    is_dead: bool,
    start: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The second field is the program's name in parentheses and may hold anything, parentheses and spaces too.
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        // The third field was the state; the 20th counts threads, the 22nd is the start.
        let threads: u64 = fields.nth(16)?.parse().ok()?;
        let start = fields.nth(1)?.parse().ok()?;
        Some(Self { is_dead: matches!(state, "Z" | "X") && threads <= 1, start })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_known_by_more_than_its_id() {
        let me = Process::read(std::process::id()).unwrap();
        assert!(!me.is_gone());
        assert!(Process { start: me.start + 1, ..me.clone() }.is_gone(), "a later process with this id");
        assert!(Process { namespace: "pid:[1]".to_owned(), ..me.clone() }.is_gone(), "another namespace's");
        assert!(!Process { namespace: String::new(), ..me }.is_gone(), "its namespace was not readable");
    }

    #[test]
    fn a_killed_process_is_gone_before_anyone_waits_for_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::read(child.id()).unwrap();
        assert!(!process.is_gone());
        child.kill().unwrap();
        while !process.is_gone() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(process.is_gone());
    }

    #[test]
    fn a_program_may_be_called_anything() {
        let text = "77 (a) R 1 (b) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 5 0 12345 2 3\n";
        assert_eq!(Stat::parse(text), Some(Stat { is_dead: false, start: 12345 }));
        assert_eq!(Stat::parse(&text.replace(" S ", " Z ")), Some(Stat { is_dead: false, start: 12345 }));
        let alone = text.replace(" S ", " Z ").replace(" 20 0 5 ", " 20 0 1 ");
        assert_eq!(Stat::parse(&alone), Some(Stat { is_dead: true, start: 12345 }));
        for text in ["", "77", "77 (a", "77 (a) S 1 2", "77 (a) S 1 77 77 0 -1 1 1 0 0 0 0 0 0 0 20 0 x 0 y"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
    }
}
