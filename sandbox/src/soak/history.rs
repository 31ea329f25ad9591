//! What the functions told the witness, put together: a claim for each owner.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader},
    path::Path,
};

use serde::Deserialize;

/// A line of the witness's file; `sandbox/soak-function/src/claim.rs` says what it means.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Told {
    pub(super) request: String,
    pub(super) key: String,
    pub(super) owner: Option<String>,
    pub(super) token: Option<u64>,
    pub(super) at: u64,
    pub(super) until: Option<u64>,
    pub(super) refused: Option<String>,
    #[serde(default)]
    pub(super) end: bool,
}

/// What one invocation was entitled to believe of a key.
///
/// It believed from its first look that was answered `held` until the validity that the answers gave it was over, but no
/// longer than it is known to have run: its last line. A handler that was killed believed at most that long, and a
/// frozen one that goes on believed all along, up to the end of what it had been told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// What was locked.
    pub(super) key: String,
    /// The invocation.
    pub(super) request: String,
    /// The owner on the row, where there was one.
    pub(super) owner: Option<String>,
    /// The fencing token.
    pub(super) token: Option<u64>,
    /// When it was first told that it holds the key, in nanoseconds of the machine's monotonic clock: before it asked.
    pub(super) start: u64,
    /// Until when it was told to hold it.
    pub(super) until: u64,
    /// When it last said anything.
    pub(super) last: u64,
    /// Whether its last look was answered with `held`.
    pub(super) looked: bool,
    /// Whether it said that its work was over.
    pub(super) ended: bool,
}

impl Claim {
    /// When it stopped to believe.
    pub(super) fn end(&self) -> u64 {
        self.until.min(self.last)
    }
}

/// Every claim of a soak; grows as the witness's file does.
#[derive(Debug, Default)]
pub(super) struct History {
    claims: Vec<Claim>,
    by_request: BTreeMap<String, usize>,
    unreadable: Vec<String>,
}

impl History {
    pub(super) fn claims(&self) -> &[Claim] {
        &self.claims
    }

    pub(super) fn of_request(&self, request: &str) -> Option<&Claim> {
        self.by_request.get(request).map(|index| &self.claims[*index])
    }

    /// Lines that are none.
    pub(super) fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    pub(super) fn add(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(told) => self.tell(told),
            Err(error) => self.unreadable.push(format!("{line:?}: {error}")),
        }
    }

    fn tell(&mut self, told: Told) {
        let index = match (self.by_request.get(&told.request), told.until) {
            (Some(index), _) => *index,
            (None, Some(until)) => {
                self.by_request.insert(told.request.clone(), self.claims.len());
                self.claims.push(Claim {
                    key: told.key,
                    request: told.request,
                    owner: told.owner,
                    token: told.token,
                    start: told.at,
                    until,
                    last: told.at,
                    looked: true,
                    ended: false,
                });
                return;
            }
            // Told no from the beginning: it never believed.
            (None, None) => return,
        };
        let claim = &mut self.claims[index];
        claim.last = claim.last.max(told.at);
        claim.ended |= told.end;
        if let Some(until) = told.until {
            claim.until = claim.until.max(until);
        }
        if !told.end {
            claim.looked = told.until.is_some() && told.refused.is_none();
        }
    }
}

/// Follows the witness's file.
#[derive(Debug)]
pub(super) struct Tail {
    file: BufReader<std::fs::File>,
    part: String,
}

impl Tail {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = std::fs::OpenOptions::new().create(true).append(true).read(true).open(path)?;
        Ok(Self { file: BufReader::new(file), part: String::new() })
    }

    /// Takes what was added since.
    pub(super) fn read_into(&mut self, history: &mut History) -> io::Result<()> {
        loop {
            let read = self.file.read_line(&mut self.part)?;
            if read == 0 {
                return Ok(());
            }
            // The rest of a half line is on its way.
            if self.part.ends_with('\n') {
                history.add(self.part.trim_end());
                self.part.clear();
            }
        }
    }
}
