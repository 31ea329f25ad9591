//! Lines of metrics, and what they add up to: a keeper's line tells what it counted since its line before.
//!
//! Their members are told in `docs/metrics.md`; a count that is 0 is left out of a line. Every whole number is added up by its
//! name, so that what a later version counts is in the sums as well.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::spread::Spread;

/// How many names are told apart.
const NAMES: usize = 200;
/// How many functions' templates are told apart.
const TEMPLATES: usize = 1_000;
/// For how many keepers and templates is known what their last line said.
const LASTS: usize = 200_000;
/// What a line says of its own moment, and is no sum.
const AT_LAST: [&str; 2] = ["StillHeld", "AttemptsPending"];
/// The line's own place.
const NUMBER: &str = "Line";

/// How an attempt ends, and how a lease does: a total, and its parts.
pub(super) const EQUATIONS: [(&str, &[&str]); 2] = [
    ("Attempts", &["Acquired", "GrantsUndone", "AttemptsRefused", "AttemptsUnknown", "AttemptsPending"]),
    ("Acquired", &["Released", "Lost", "CrashReleases", "LeftToExpire", "Expired", "StillHeld"]),
];

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MetricLine {
    at_ms: u64,
    function: String,
    template: Option<String>,
    keeper: String,
    number: u64,
    counts: Vec<(String, u64)>,
    write_units: f64,
    read_units: f64,
    waits: Vec<u64>,
    holds: Vec<u64>,
    next_holds: Vec<u64>,
}

/// Why an object is no line of metrics of leasehold's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotRead {
    /// It is another program's.
    Other,
    /// It is one, and something in it is not as it is to be.
    Broken,
}

impl MetricLine {
    /// Reads an object that has `_aws`.
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub(super) fn read(members: &Map<String, Value>) -> Result<Self, NotRead> {
        let Some(keeper) = members.get("KeeperId") else { return Err(NotRead::Other) };
        Self::of(members, keeper).ok_or(NotRead::Broken)
    }

    fn of(members: &Map<String, Value>, keeper: &Value) -> Option<Self> {
        let mut line = Self {
            at_ms: members.get("_aws")?.get("Timestamp")?.as_u64()?,
            keeper: keeper.as_str()?.to_owned(),
            number: members.get(NUMBER)?.as_u64()?,
            ..Self::default()
        };
        for (name, value) in members {
            match (name.as_str(), value) {
                ("FunctionName", Value::String(text)) => line.function.clone_from(text),
                ("Template", Value::String(text)) => line.template = Some(text.clone()),
                ("Wait", value) => line.waits = times(value)?,
                ("Held", value) => line.holds = times(value)?,
                ("NextHold", value) => line.next_holds = times(value)?,
                ("WriteUnits", value) => line.write_units = units(value)?,
                ("ReadUnits", value) => line.read_units = units(value)?,
                (NUMBER, _) => {}
                (_, Value::Number(number)) => line.counts.push((name.clone(), number.as_u64()?)),
                _ => {}
            }
        }
        Some(line)
    }
}

/// CloudWatch takes one value as well as many.
fn times(value: &Value) -> Option<Vec<u64>> {
    match value {
        Value::Array(values) => values.iter().map(Value::as_u64).collect(),
        value => value.as_u64().map(|value| vec![value]),
    }
}

fn units(value: &Value) -> Option<f64> {
    value.as_f64().filter(|units| units.is_finite() && *units >= 0.0)
}

/// What lines add up to.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) lines: u64,
    /// The earliest and the latest moment, in milliseconds since the Unix epoch.
    pub(super) span: Option<(u64, u64)>,
    sums: BTreeMap<String, u64>,
    pub(super) write_units: f64,
    pub(super) read_units: f64,
    pub(super) waits: Spread,
    pub(super) holds: Spread,
    pub(super) next_holds: Spread,
    templates: HashMap<(String, String), OfTemplate>,
    /// By keeper and template: what the last line said of its moment.
    last: HashMap<(String, Option<String>), Last>,
    /// By keeper: the first and the last line's number, and how many there were.
    keepers: HashMap<String, (u64, u64, u64)>,
    /// Lines whose keeper or template is one too many to be told apart.
    pub(super) not_told_apart: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    number: u64,
    still_held: u64,
    pending: u64,
}

/// One function's template.
#[derive(Clone, Debug, Default)]
pub(super) struct OfTemplate {
    pub(super) acquired: u64,
    pub(super) contended: u64,
    pub(super) busy: u64,
    pub(super) lost: u64,
    pub(super) waits: Spread,
}

impl Metrics {
    pub(super) fn add(&mut self, line: MetricLine) {
        self.lines += 1;
        let (first, last) = self.span.unwrap_or((line.at_ms, line.at_ms));
        self.span = Some((first.min(line.at_ms), last.max(line.at_ms)));
        self.note_last(&line);
        for (name, count) in &line.counts {
            if !AT_LAST.contains(&name.as_str()) {
                add(&mut self.sums, name, *count);
            }
        }
        self.write_units = (self.write_units + line.write_units).min(f64::MAX);
        self.read_units = (self.read_units + line.read_units).min(f64::MAX);
        line.waits.iter().for_each(|ms| self.waits.add(*ms));
        line.holds.iter().for_each(|ms| self.holds.add(*ms));
        line.next_holds.iter().for_each(|ms| self.next_holds.add(*ms));
        if let Some(template) = line.template {
            let name = (line.function, template);
            if self.templates.len() >= TEMPLATES && !self.templates.contains_key(&name) {
                return;
            }
            let of = self.templates.entry(name).or_default();
            let count = |name| line.counts.iter().find(|(found, _)| found == name).map_or(0, |(_, count)| *count);
            let counts = [
                (&mut of.acquired, "Acquired"),
                (&mut of.contended, "Contended"),
                (&mut of.busy, "Busy"),
                (&mut of.lost, "Lost"),
            ];
            for (sum, name) in counts {
                *sum = sum.saturating_add(count(name));
            }
            line.waits.iter().for_each(|ms| of.waits.add(*ms));
        }
    }

    /// Lines may come in any order: which is a keeper's last one is told by its number.
    fn note_last(&mut self, line: &MetricLine) {
        let count = |name| line.counts.iter().find(|(found, _)| found == name).map_or(0, |(_, count)| *count);
        let name = (line.keeper.clone(), line.template.clone());
        if self.last.len() >= LASTS && !self.last.contains_key(&name) {
            self.not_told_apart += 1;
            return;
        }
        let last = self.last.entry(name).or_default();
        if line.number >= last.number {
            *last = Last { number: line.number, still_held: count("StillHeld"), pending: count("AttemptsPending") };
        }
        let numbers = self.keepers.entry(line.keeper.clone()).or_insert((line.number, line.number, 0));
        *numbers = (numbers.0.min(line.number), numbers.1.max(line.number), numbers.2 + 1);
    }

    pub(super) fn keepers(&self) -> u64 {
        self.keepers.len() as u64
    }

    /// How many lines are not there although later and earlier ones of the same keeper are.
    pub(super) fn missing(&self) -> u64 {
        sum(self.keepers.values().map(|(first, last, count)| (last - first).saturating_sub(*count - 1)))
    }

    /// A count's sum; of what stands at a moment, the sum of what the last lines said.
    pub(super) fn of(&self, name: &str) -> u64 {
        match name {
            "StillHeld" => sum(self.last.values().map(|last| last.still_held)),
            "AttemptsPending" => sum(self.last.values().map(|last| last.pending)),
            name => self.sums.get(name).copied().unwrap_or(0),
        }
    }

    /// All counts' sums.
    pub(super) fn sums(&self) -> BTreeMap<String, u64> {
        let at_last = AT_LAST.map(|name| (name.to_owned(), self.of(name)));
        self.sums.clone().into_iter().chain(at_last).collect()
    }

    /// The totals whose parts come to something else.
    pub(super) fn off_balance(&self) -> Vec<(&'static str, u64, u64)> {
        let of_parts = |parts: &[&str]| sum(parts.iter().map(|part| self.of(part)));
        let sides = EQUATIONS.iter().map(|(total, parts)| (*total, self.of(total), of_parts(parts)));
        sides.filter(|(_, total, parts)| total != parts).collect()
    }

    /// The templates that were waited for longest in all, each with its function.
    pub(super) fn templates(&self, most: usize) -> Vec<(&(String, String), &OfTemplate)> {
        let mut templates: Vec<_> = self.templates.iter().collect();
        templates.sort_by(|(a_name, a), (b_name, b)| {
            b.waits.sum_ms().cmp(&a.waits.sum_ms()).then_with(|| a_name.cmp(b_name))
        });
        templates.truncate(most);
        templates
    }
}

/// The highest number there is where the sum is higher: a log may say anything.
pub(super) fn sum(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}

fn add(sums: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    let known = sums.len();
    if let Some(sum) = sums.get_mut(name) {
        *sum = sum.saturating_add(count);
    } else if known < NAMES {
        sums.insert(name.to_owned(), count);
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
