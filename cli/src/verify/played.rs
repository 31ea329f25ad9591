//! A scene that was played: what came of it, what it took, and how it is told.

use std::io;

use serde_json::{Value, json};

use super::invoke::Invocation;
use super::row::{self, Holder};
use super::scenes::{Scene, Shown};
use super::stage::{Clients, Failed, Stage};
use super::told::{Paint, fitted};
use crate::output;
use crate::text::safe;

/// How often a scene is played that could not be seen, each time with more time to come in.
const ATTEMPTS: u32 = 3;

/// What came of a scene.
pub(super) struct Played {
    pub(super) scene: &'static Scene,
    pub(super) result: Result<Shown, Failed>,
    pub(super) used: Used,
    story: Vec<(u64, String)>,
    invocations: Vec<Invocation>,
}

/// What was used, as far as AWS told it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Used {
    /// By functions and keepers. What a holder used that did not come to its end is counted by its row.
    pub(super) write_units: f64,
    pub(super) read_units: f64,
    /// By this program's own looks at the row.
    pub(super) looking_units: f64,
    pub(super) invocations: u32,
    pub(super) billed_ms: f64,
    pub(super) gb_seconds: f64,
}

impl Used {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            write_units: self.write_units + other.write_units,
            read_units: self.read_units + other.read_units,
            looking_units: self.looking_units + other.looking_units,
            invocations: self.invocations + other.invocations,
            billed_ms: self.billed_ms + other.billed_ms,
            gb_seconds: self.gb_seconds + other.gb_seconds,
        }
    }

    /// Of one invocation; of one that did not come to its end only what Lambda says.
    pub(super) fn by(invocation: &Invocation) -> Self {
        let mut used = Self { invocations: 1, ..Self::default() };
        if let Some(report) = &invocation.report {
            used.billed_ms = report.billed_ms;
            used.gb_seconds = report.billed_ms / 1_000.0 * report.memory_mb / 1_024.0;
        }
        if let Ok(answer) = &invocation.result {
            // A refused write is billed and not told; the release comes after the answer.
            used.write_units = answer.write_units + to_f64(answer.writes_refused) + 1.0;
            used.read_units = answer.read_units;
        }
        used
    }

    fn on(stage: &Stage<'_>) -> Self {
        let invocations = stage.invocations();
        let mut used = invocations.iter().map(Self::by).fold(Self::default(), Self::and);
        used.looking_units = stage.watch.read_units();
        let seen = stage.watch.seen();
        let died = invocations.first().is_some_and(|first| first.result.is_err());
        if let Some(holder) = Holder::first(&seen).filter(|_| died) {
            let freed = f64::from(u8::from(row::given_back(&seen, holder.owner).is_some()));
            used.write_units += 1.0 + to_f64(holder.renewals) + freed;
        }
        used
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "write_units": self.write_units, "read_units": self.read_units, "looking_read_units": self.looking_units,
            "invocations": self.invocations, "billed_ms": self.billed_ms, "gb_seconds": self.gb_seconds,
        })
    }
}

#[allow(clippy::cast_precision_loss, reason = "a handful of requests")]
fn to_f64(count: u64) -> f64 {
    count as f64
}

impl Played {
    /// Plays the scene, again where nothing was to be seen. `under_way` is told each key.
    pub(super) async fn of(
        scene: &'static Scene,
        clients: &Clients,
        run: &str,
        thaw_after: std::time::Duration,
        under_way: impl Fn(&str),
    ) -> Self {
        let (mut used, mut attempt) = (Used::default(), 1);
        loop {
            let again = if attempt == 1 { String::new() } else { format!("-{attempt}") };
            let key = format!("{}-{run}{again}", scene.name);
            under_way(&key);
            let stage = Stage::new(clients, key, 1 << (attempt - 1), thaw_after);
            let result = stage.watched((scene.play)(&stage)).await;
            used = used.and(Used::on(&stage));
            if attempt == ATTEMPTS || !matches!(result, Err(Failed::NotShown(_))) {
                return Self { scene, result, used, story: stage.story(), invocations: stage.invocations() };
            }
            attempt += 1;
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match &self.result {
            Ok(_) => "passed",
            Err(Failed::Broken(_)) => "failed",
            Err(Failed::NotShown(_)) => "not shown",
            Err(Failed::Refused(_)) => "not played",
        }
    }

    fn told(&self) -> &str {
        match &self.result {
            Ok(shown) => &shown.told,
            Err(Failed::Broken(told) | Failed::NotShown(told) | Failed::Refused(told)) => told,
        }
    }

    /// The scene, as the demo tells its own.
    pub(super) fn print(&self, number: usize, paint: Paint) -> io::Result<()> {
        output::line(&format!("\n{}", paint.bold(&format!("{number}. {}: {}", self.scene.name, self.scene.title))))?;
        for (at, told) in &self.story {
            output::line(&format!("  {:>9.3} s  {}", std::time::Duration::from_millis(*at).as_secs_f64(), safe(told)))?;
        }
        output::line(&format!("  expected: {}", self.scene.expected))?;
        output::line(&format!("  {}: {}", paint.result(self.result.is_ok(), self.word()), safe(self.told())))
    }

    /// Its line of the table.
    pub(super) fn cells(&self) -> [String; 7] {
        let ms =
            |of: fn(&Shown) -> u64| self.result.as_ref().map_or_else(|_| "-".to_owned(), |shown| of(shown).to_string());
        let number = crate::prices::number;
        [
            self.scene.name.to_owned(),
            self.word().to_owned(),
            ms(|shown| shown.freed_ms),
            ms(|shown| shown.next_ms),
            number(self.used.write_units),
            number(self.used.read_units),
            number(self.used.billed_ms),
        ]
    }

    pub(super) fn json(&self) -> Value {
        let story: Vec<_> = self.story.iter().map(|(at, told)| json!({ "at_ms": at, "told": told })).collect();
        let invocations: Vec<_> = self.invocations.iter().map(Invocation::json).collect();
        let shown = self.result.as_ref().ok();
        json!({
            "scene": self.scene.name, "title": self.scene.title, "expected": self.scene.expected,
            "result": fitted(self.word()), "told": self.told(), "freed_ms": shown.map(|shown| shown.freed_ms), "next_ms": shown.map(|shown| shown.next_ms),
            "story": story, "invocations": invocations, "used": self.used.json(),
        })
    }
}
