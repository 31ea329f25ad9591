//! What the keepers' lines of metrics say, added up: whether they agree with each other, and with the proxy's own count.
//!
//! A keeper that is killed takes along what it has not told yet, up to a second of it. So the sums of its lines hold by
//! themselves (what it held last, it holds in them for ever), and only a soak that kills nothing knows of every request.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::Value;

use super::{Break, Plan};
use crate::{Event, EventKind, faults::Step};

/// What is promised.
const ADDS_UP: &str = "the metrics add up";
/// How an attempt may end.
const ATTEMPTS_END: [&str; 4] = ["Acquired", "GrantsUndone", "AttemptsRefused", "AttemptsUnknown"];
/// How a lease may end.
const LEASES_END: [&str; 5] = ["Released", "Lost", "CrashReleases", "LeftToExpire", "Expired"];

/// Every line so far.
#[derive(Debug)]
pub(super) struct Metrics {
    file: BufWriter<File>,
    /// How many lines came, by keeper.
    lines: BTreeMap<String, u64>,
    /// The members that are counts, added up.
    sums: BTreeMap<String, u64>,
    /// What the last line said of each keeper and template: how many leases are held, and attempts without an end.
    at_last: BTreeMap<(String, String), (u64, u64)>,
    breaks: Vec<Break>,
}

/// What the lines add up to.
#[derive(Debug, Default, Clone)]
pub struct MetricSums {
    /// How many lines there were.
    pub lines: u64,
    /// By how many keepers.
    pub keepers: u64,
    /// Every count's sum, and under `StillHeld` and `AttemptsPending` what the last lines said.
    pub sums: BTreeMap<String, u64>,
}

impl MetricSums {
    /// A count's sum.
    pub fn of(&self, name: &str) -> u64 {
        self.sums.get(name).copied().unwrap_or(0)
    }

    /// The two sums: a name, its total, and its parts.
    pub(super) fn equations(&self) -> [(&'static str, Vec<&'static str>); 2] {
        let with = |ends: &[&'static str], rest| ends.iter().copied().chain([rest]).collect();
        [("Attempts", with(&ATTEMPTS_END, "AttemptsPending")), ("Acquired", with(&LEASES_END, "StillHeld"))]
    }
}

impl Metrics {
    /// The lines go to this file as well.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(Self { file, lines: BTreeMap::new(), sums: BTreeMap::new(), at_last: BTreeMap::new(), breaks: Vec::new() })
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    pub(super) fn read(&mut self, event: &Event) -> io::Result<()> {
        let EventKind::Output { line, .. } = &event.kind else { return Ok(()) };
        if !line.contains(r#""_aws""#) {
            return Ok(());
        }
        writeln!(self.file, "{line}")?;
        let Ok(Value::Object(members)) = serde_json::from_str(line) else {
            self.broken(format!("{line:?} is no line of metrics"));
            return Ok(());
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name: &str| members.get(name).and_then(Value::as_u64).unwrap_or(0);
        let keeper = text("KeeperId");
        let lines = self.lines.entry(keeper.clone()).or_default();
        *lines += 1;
        let (expected, found) = (*lines, number("Line"));
        if found != expected {
            self.broken(format!("line {expected} of keeper {keeper} says that it is line {found}"));
        }
        self.at_last.insert((keeper, text("Template")), (number("StillHeld"), number("AttemptsPending")));
        for (name, value) in &members {
            if let Some(count) = value.as_u64().filter(|_| !["Line", "StillHeld", "AttemptsPending"].contains(&&**name))
            {
                *self.sums.entry(name.clone()).or_default() += count;
            }
        }
        Ok(())
    }

    pub(super) fn sums(&self) -> MetricSums {
        let mut sums = self.sums.clone();
        sums.insert("StillHeld".to_owned(), self.at_last.values().map(|(held, _)| held).sum());
        sums.insert("AttemptsPending".to_owned(), self.at_last.values().map(|(_, pending)| pending).sum());
        MetricSums { lines: self.lines.values().sum(), keepers: self.lines.len() as u64, sums }
    }

    /// What does not add up: among the lines, and with the requests that the proxy saw.
    pub(super) fn check(&self, plan: &Plan, seen: &BTreeMap<Step, u64>) -> Vec<Break> {
        let mut breaks = self.breaks.clone();
        let sums = self.sums();
        for (total, parts) in sums.equations() {
            let of_parts: u64 = parts.iter().map(|part| sums.of(part)).sum();
            if sums.of(total) != of_parts {
                let parts: Vec<_> = parts.iter().map(|part| format!("{part} {}", sums.of(part))).collect();
                breaks.push(Break::new(
                    ADDS_UP,
                    None,
                    format!("{total} {}, but {}", sums.of(total), parts.join(" + ")),
                ));
            }
        }
        let seen = |steps: &[Step]| steps.iter().filter_map(|step| seen.get(step)).sum::<u64>();
        let all = [Step::Acquire, Step::TakeOver, Step::Renew, Step::Park, Step::Release, Step::Ticket, Step::Read];
        // Who is killed can't tell; and a connection that is cut may have taken its request along.
        let exactly = plan.fronts == 0.0 && plan.process_faults == 0.0;
        for (name, seen, unanswered) in
            [("Attempts", seen(&all[..2]), "AttemptsUnknown"), ("Requests", seen(&all), "Errors")]
        {
            let told = sums.of(name);
            // What was given up before it came so far has no answer.
            let most = seen + sums.of(unanswered);
            if told > most || (exactly && told < seen) {
                breaks.push(Break::new(ADDS_UP, None, format!("{name} {told}, but the proxy saw {seen}")));
            }
        }
        breaks
    }

    fn broken(&mut self, what: String) {
        self.breaks.push(Break::new(ADDS_UP, None, what));
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
