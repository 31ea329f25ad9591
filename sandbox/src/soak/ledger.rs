//! What the keepers said in the log: grants, takeovers, losses and why, releases; and the log itself, to a file.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{mishap::Mishap, weather::Weather};
use crate::{Event, Line, demo::Said};

/// How many invocations' mishaps are remembered.
const REMEMBERED: usize = 4_096;

/// The mishaps of the invocations of late, by request id.
#[derive(Debug, Default)]
pub(super) struct Mishaps(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    mishaps: HashMap<String, Mishap>,
    order: Vec<String>,
}

impl Mishaps {
    pub(super) fn note(&self, request: &str, mishap: Mishap) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.mishaps.insert(request.to_owned(), mishap);
        noted.order.push(request.to_owned());
        if noted.order.len() > REMEMBERED {
            let old: Vec<_> = noted.order.drain(..REMEMBERED / 2).collect();
            for request in old {
                noted.mishaps.remove(&request);
            }
        }
    }

    fn of(&self, request: &str) -> Option<Mishap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).mishaps.get(request).copied()
    }
}

/// What the keepers did, by their own words.
#[derive(Debug, Default, Clone)]
pub(super) struct Deeds {
    pub(super) granted: u64,
    pub(super) takeovers: u64,
    pub(super) longest_wait: Duration,
    pub(super) released: BTreeMap<String, u64>,
    pub(super) not_released: u64,
    /// Why, and beside which faults.
    pub(super) lost: BTreeMap<(String, String), u64>,
}

/// Reads the log as it grows.
#[derive(Debug)]
pub(super) struct Ledger {
    deeds: Deeds,
    file: BufWriter<File>,
    weather: Weather,
    mishaps: Arc<Mishaps>,
    /// How far back the faults lie that may have cost a lock.
    back: Duration,
}

impl Ledger {
    pub(super) fn new(path: &Path, weather: Weather, mishaps: Arc<Mishaps>, lease: Duration) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        // A lease is lost when the renewals of one lease failed; some time more for a loss that is told late.
        let back = lease * 4;
        Ok(Self { deeds: Deeds::default(), file, weather, mishaps, back })
    }

    pub(super) fn deeds(&self) -> &Deeds {
        &self.deeds
    }

    /// Whatever was written so far can be read.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    pub(super) fn read(&mut self, event: &Event) -> io::Result<()> {
        writeln!(self.file, "{}", Line { event, colour: false })?;
        let Some(said) = Said::in_event(event) else { return Ok(()) };
        let field = |name: &str| said.field(name).unwrap_or_default();
        match said.message.as_str() {
            "acquired" => {
                self.deeds.granted += 1;
                self.deeds.takeovers += u64::from(said.took_over());
                let waited = Duration::from_millis(field("waited_ms").parse().unwrap_or(0));
                self.deeds.longest_wait = self.deeds.longest_wait.max(waited);
            }
            "released" => *self.deeds.released.entry(field("reason")).or_default() += 1,
            "lost" => {
                let beside = self.faults_beside(&field("key"), &field("owner"), &field("request_id"));
                *self.deeds.lost.entry((reason(&field("reason")), beside)).or_default() += 1;
            }
            message if message.starts_with("not released") => self.deeds.not_released += 1,
            _ => {}
        }
        Ok(())
    }

    /// What this owner met before it lost its lock: a stop that is longer than a lease, which is enough by itself, or
    /// else the faults of its requests.
    fn faults_beside(&self, key: &str, owner: &str, request: &str) -> String {
        let stop = self.mishaps.of(request).filter(|mishap| mishap.stops_keeper());
        if let Some(mishap) = stop {
            return mishap.name().to_owned();
        }
        let faults = self.weather.met(key, owner, self.back);
        if faults.is_empty() { "none of ours: the machine was too slow".to_owned() } else { faults.join(" + ") }
    }
}

/// The loss's reason without the names in it, and without what the last renewal met: the faults beside it tell that.
fn reason(text: &str) -> String {
    let text = text.split(", the last one").next().unwrap_or(text);
    text.split(" owner ").next().unwrap_or(text).replace("the row now belongs to", "the row belongs to somebody else")
}
