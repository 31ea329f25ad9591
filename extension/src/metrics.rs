//! The extension's metrics: which lines are due, at its pauses and once a second, and the way to the log's thread.

use std::sync::Arc;
use std::time::Duration;

use leasehold::keeper::{Keeper, Meter, MetricLines, Occasion};
use tokio::time::{MissedTickBehavior, interval};

use crate::logging::Lines;

/// How often it is looked whether a line is due while nothing else asks.
const LOOK: Duration = Duration::from_secs(1);
/// How long the lines of an invocation may take to leave: a pipe that nobody empties must not hold the environment.
const LINES_LEAVE: Duration = Duration::from_millis(20);
/// What this keeper calls its place.
const PLACE: &str = "extension";

/// Writes a keeper's metrics. Clones are handles on the same meter.
#[derive(Clone, Debug)]
pub struct Metrics {
    meter: Arc<Meter>,
    lines: Lines,
}

impl Metrics {
    /// Those of this keeper and the function of this name, by way of the log's thread.
    #[must_use]
    pub fn new(keeper: &Keeper, which: MetricLines, function: Option<String>, lines: Lines) -> Self {
        let meter = keeper.meter(which, function, PLACE);
        Self { meter: Arc::new(meter), lines }
    }

    /// The environment may freeze now; Next was held for so long, if it was held for an invocation. What was logged about it
    /// leaves before that, so that it stands beside the function's own lines.
    pub async fn pause(&self, held: Option<Duration>) {
        if let Some(held) = held {
            self.meter.held_next(held);
        }
        self.write(Occasion::Pause);
        self.lines.written(LINES_LEAVE).await;
    }

    /// The keeper is done.
    pub fn end(&self) {
        self.write(Occasion::End);
    }

    /// Looks once a second, without end: for invocations that take long, and where nothing ever freezes.
    pub async fn follow(&self) {
        let mut looks = interval(LOOK);
        // After a freeze one look is enough.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            self.write(Occasion::Pause);
        }
    }

    fn write(&self, occasion: Occasion) {
        self.meter.write(occasion, |line| self.lines.offer(line));
    }
}
