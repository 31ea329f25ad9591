//! What was measured: a row a figure, with its goal; as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Plan, Section, floor::Floor, machine::Machine, statistics::millis};

/// The name and version of the JSON.
pub const FORMAT: &str = "leasehold-bench/1";

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests to DynamoDB.
    Requests,
    /// Multiples of the time that one request takes.
    RequestTimes,
    /// Multiples of something that the row names.
    Ratio,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Megabytes of 1,048,576 bytes.
    Megabytes,
    /// Percents of one processor.
    Percent,
    /// Things that the row names.
    Number,
}

impl Unit {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::RequestTimes => "request_times",
            Self::Ratio => "ratio",
            Self::Seconds => "s",
            Self::Millis => "ms",
            Self::Micros => "us",
            Self::Megabytes => "MiB",
            Self::Percent => "percent",
            Self::Number => "number",
        }
    }

    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Requests if value.fract() == 0.0 => format!("{value:.0}"),
            Self::Requests => format!("{value:.1}"),
            Self::RequestTimes => format!("{value:.2} requests"),
            Self::Ratio => format!("{value:.2}"),
            Self::Seconds => format!("{value:.1} s"),
            Self::Millis => format!("{value:.1} ms"),
            Self::Micros => format!("{value:.0} µs"),
            Self::Megabytes => format!("{value:.1} MiB"),
            Self::Percent => format!("{value:.1} %"),
            Self::Number => format!("{value:.0}"),
        }
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Where it belongs.
    pub section: Section,
    /// Its name, the same in every run.
    pub id: String,
    /// What it is, for people.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// It should be no more than this.
    pub goal: Option<f64>,
    /// Whether it is the same on every machine, a slow one too.
    pub deterministic: bool,
    /// Where it is a time: how many requests that is.
    pub in_requests: Option<f64>,
    /// What else is to be said.
    pub note: String,
}

impl Row {
    /// A figure without a goal.
    pub(super) fn new(
        section: Section,
        id: impl Into<String>,
        what: impl Into<String>,
        value: f64,
        unit: Unit,
    ) -> Self {
        let id = format!("{section}.{}", id.into());
        let (what, note) = (what.into(), String::new());
        Self { section, id, what, value, unit, goal: None, deterministic: false, in_requests: None, note }
    }

    /// That should be no more than this.
    pub(super) fn at_most(self, goal: f64) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// Like [`at_most`](Self::at_most), where there is such a goal.
    pub(super) fn maybe_at_most(self, goal: Option<f64>) -> Self {
        Self { goal, ..self }
    }

    /// That no machine's slowness changes.
    pub(super) fn deterministic(self) -> Self {
        Self { deterministic: true, ..self }
    }

    /// That is so many requests' time.
    pub(super) fn beside(self, floor: &Floor, time: Duration) -> Self {
        Self { in_requests: Some(floor.requests(time)), ..self }
    }

    /// With something to be said.
    pub(super) fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Whether the goal was met; nothing where there is none.
    pub fn met(&self) -> Option<bool> {
        // As the table shows it: a third decimal is no miss.
        self.goal.map(|goal| (self.value * 100.0).round() <= (goal * 100.0).round())
    }

    fn to_json(&self) -> Value {
        json!({
            "section": self.section.name(), "id": self.id, "what": self.what, "value": self.value,
            "unit": self.unit.name(), "goal_at_most": self.goal, "met": self.met(), "deterministic": self.deterministic,
            "in_requests": self.in_requests, "note": self.note,
        })
    }
}

/// All of it.
#[derive(Debug)]
pub struct Report {
    pub(super) plan: Plan,
    pub(super) machine: Machine,
    pub(super) floors: Vec<(Section, Floor)>,
    pub(super) took: Duration,
    /// The figures.
    pub rows: Vec<Row>,
}

impl Report {
    /// The figures that missed their goals.
    pub fn missed(&self) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.met() == Some(false)).collect()
    }

    /// Those among them for which no machine's slowness is an excuse.
    pub fn broken(&self) -> Vec<&Row> {
        self.missed().into_iter().filter(|row| row.deterministic).collect()
    }

    /// As JSON, for machines; `docs/bench.md` describes it.
    pub fn to_json(&self) -> Value {
        let floors = self.floors.iter().map(|(section, floor)| {
            let [take, free] = floor.told().map(|(_, times)| millis(times.median()));
            json!({ "section": section.name(), "request_ms": millis(floor.request()), "take_ms": take, "free_ms": free })
        });
        let missed = self.missed();
        json!({
            "format": FORMAT,
            "machine": self.machine.to_json(),
            "settings": {
                "seed": self.plan.seed, "quick": self.plan.quick, "latency_ms": millis(self.plan.latency),
                "contenders": self.plan.contenders, "polling": self.plan.polling.name(),
                "sections": self.plan.sections.iter().map(|section| section.name()).collect::<Vec<_>>(),
            },
            "took_s": self.took.as_secs_f64(),
            "floors": floors.collect::<Vec<_>>(),
            "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "missed": missed.iter().map(|row| row.id.clone()).collect::<Vec<_>>(),
        })
    }
}
