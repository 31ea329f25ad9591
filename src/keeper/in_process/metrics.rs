//! The metrics of a keeper on a thread of the handler's process: written to its standard output only where they are asked
//! for, for it is the handler's.

use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::keeper::handle::Keeper;
use crate::keeper::meter::{Meter, Occasion};
use crate::settings::MetricLines;

/// How often it is looked whether a line is due.
const LOOK: Duration = Duration::from_secs(1);
/// How many lines may wait for somebody who reads them.
const WAITING: usize = 256;

/// Writes a keeper's metrics.
#[derive(Debug)]
pub(super) struct Metrics {
    meter: Meter,
    lines: SyncSender<Vec<u8>>,
    looks: Interval,
}

impl Metrics {
    /// Those that `LEASEHOLD_METRICS` asks for; `None` where it does not. A value that is none was told by the layer.
    pub(super) fn asked_for(keeper: &Keeper) -> Option<Self> {
        let asked = std::env::var("LEASEHOLD_METRICS").ok()?;
        let which = MetricLines::read(&asked).ok().filter(|which| *which != MetricLines::Off)?;
        let meter = keeper.meter(which, std::env::var("AWS_LAMBDA_FUNCTION_NAME").ok(), "in-process");
        let (lines, waiting) = sync_channel(WAITING);
        // A pipe that nobody empties blocks its writer, and a renewal must not wait for that.
        let written = thread::Builder::new().name("leasehold-metrics".to_owned()).spawn(move || write(&waiting));
        if let Err(error) = written {
            tracing::warn!(%error, "no metrics are written: their thread can't be had");
            return None;
        }
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Self { meter, lines, looks })
    }

    /// Waits until it is to be looked again.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn due(&mut self) {
        self.looks.tick().await;
    }

    /// Writes the lines that are due.
    pub(super) fn write(&self, occasion: Occasion) {
        self.meter.write(occasion, |line| self.lines.try_send(line).is_ok());
    }
}

fn write(lines: &Receiver<Vec<u8>>) {
    for line in lines {
        let mut out = io::stdout().lock();
        // Nobody can be told that the output can't be written.
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
