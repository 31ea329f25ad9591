//! Turns what a keeper counts into lines of metrics: soon after something happened, and else once a minute.
//!
//! Nothing of a lease waits for it. Whoever has the keeper asks it now and then, always when the environment may freeze and
//! once at the end, and hands the lines to a writer that never blocks. What the writer does not take is told by a later line.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::counts::KeeperCounts;
use super::handle::{Inner, Keeper};
use super::metric_line::{MOST_VALUES, Measured, MetricLine};
use super::tally::{Look, Tally, Values};
use crate::clock::{Now, Wall};
use crate::settings::MetricLines;

/// How long what is no news is saved up.
const SUMMARY: Duration = Duration::from_secs(60);
/// What a function without a name is called.
const UNKNOWN: &str = "unknown";

/// When lines are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Now and then, and before the environment may freeze: news is told, the rest once a minute.
    Pause,
    /// At the keeper's end: everything is told.
    End,
}

/// Makes lines of what one keeper counts.
#[derive(Debug)]
pub struct Meter {
    keeper: Arc<Inner>,
    which: MetricLines,
    measured: Measured,
    next_holds: Values,
    told: Mutex<Told>,
}

/// What the lines have told.
#[derive(Debug, Default)]
struct Told {
    lines: u64,
    by_template: BTreeMap<Option<String>, ToldOfTemplate>,
}

#[derive(Debug, Default)]
struct ToldOfTemplate {
    counts: KeeperCounts,
    /// When it was told last.
    at: Option<Now>,
    /// What was seen last, and when it had changed.
    seen: KeeperCounts,
    changed: Option<Wall>,
}

impl Keeper {
    /// A meter of this keeper, for the function of this name; `place` says where the keeper lives.
    #[must_use]
    pub fn meter(&self, which: MetricLines, function: Option<String>, place: &'static str) -> Meter {
        let function = function.filter(|name| !name.is_empty()).unwrap_or_else(|| UNKNOWN.to_owned());
        let measured = Measured { function, place, keeper_id: Uuid::new_v4().simple().to_string() };
        let (keeper, next_holds, told) = (self.inner.clone(), Values::default(), Mutex::default());
        Meter { keeper, which, measured, next_holds, told }
    }
}

impl Meter {
    /// Next was held for so long after the handler's side of the invocation was over.
    pub fn held_next(&self, hold: Duration) {
        self.next_holds.add(hold);
    }

    /// Hands the lines that are due to `write`, each with its end; `write` answers whether it took it, and never waits.
    ///
    /// It belongs on the keeper's own thread: there the counts fit together.
    pub fn write(&self, occasion: Occasion, mut write: impl FnMut(Vec<u8>) -> bool) {
        if self.which == MetricLines::Off {
            return;
        }
        let now = self.keeper.shared.now();
        let tallies = &self.keeper.shared.tallies;
        let mut told = self.told();
        for (template, tally) in tallies.all() {
            self.write_of(Some(template), &tally, &mut told, now, occasion, &mut write);
        }
        self.write_of(None, &tallies.of_no_lease, &mut told, now, occasion, &mut write);
    }

    fn write_of(
        &self,
        template: Option<String>,
        tally: &Tally,
        told: &mut Told,
        now: Now,
        occasion: Occasion,
        write: &mut impl FnMut(Vec<u8>) -> bool,
    ) {
        let Told { lines, by_template } = told;
        let of_template = by_template.entry(template.clone()).or_default();
        loop {
            let look = tally.look(MOST_VALUES);
            let next_holds = if template.is_none() { self.next_holds.first(MOST_VALUES) } else { Vec::new() };
            let has_values = !next_holds.is_empty() || !look.waits.is_empty() || !look.holds.is_empty();
            let since = of_template.look(&look, has_values, now);
            let is_full = tally.waiting().max(next_holds.len()) >= MOST_VALUES;
            let is_due = occasion == Occasion::End || since.is_news() || is_full || of_template.is_due(now);
            if !is_due || (since == KeeperCounts::default() && !has_values && !of_template.owes_the_last(occasion)) {
                return;
            }
            let fits = tally.waiting() <= MOST_VALUES && (template.is_some() || next_holds.len() < MOST_VALUES);
            let at = of_template.changed.unwrap_or(now.wall);
            let line = MetricLine {
                measured: &self.measured,
                template: template.as_deref(),
                number: *lines + 1,
                at_ms: at.as_millis(),
                since,
                now: &look,
                next_holds: &next_holds,
                last: occasion == Occasion::End && fits,
            };
            if !write(line.encode(self.which)) {
                // The queue is full: it will be told with what comes.
                return;
            }
            *lines += 1;
            tally.take(&look);
            self.next_holds.drop_first(next_holds.len());
            of_template.told(look.counts, now);
            if fits {
                return;
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToldOfTemplate {
    /// Notes what is seen; answers what was not told yet.
    fn look(&mut self, look: &Look, has_values: bool, now: Now) -> KeeperCounts {
        if look.counts != self.seen || (has_values && self.changed.is_none()) {
            self.seen = look.counts;
            self.changed = Some(now.wall);
        }
        look.counts.since(&self.counts)
    }

    fn is_due(&self, now: Now) -> bool {
        self.at.is_none_or(|at| now.larger_elapsed(at) >= SUMMARY)
    }

    /// Whether there is a line to come that says that it is the last: after others that did not.
    fn owes_the_last(&self, occasion: Occasion) -> bool {
        occasion == Occasion::End && self.at.is_some()
    }

    fn told(&mut self, counts: KeeperCounts, now: Now) {
        self.counts = counts;
        self.at = Some(now);
        self.changed = None;
    }
}
