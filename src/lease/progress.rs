//! Telling the keeper of progress, no more often than it needs to hear of it.

use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use super::Lease;
use crate::clock::Mono;

/// The keeper is told once in this part of the longest silence.
const PARTS: u32 = 10;

/// When the keeper was told last.
#[derive(Debug)]
pub(super) struct Progress {
    every: Duration,
    told: Mutex<Option<Mono>>,
}

impl Progress {
    pub(super) fn new(max_silence: Duration) -> Self {
        Self { every: max_silence / PARTS, told: Mutex::new(None) }
    }

    /// Whether the keeper is to be told now; it counts as told then.
    pub(super) fn is_due(&self, now: Mono) -> bool {
        let mut told = match self.told.try_lock() {
            Ok(told) => told,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else tells it at this very moment.
            Err(TryLockError::WouldBlock) => return false,
        };
        let due = told.is_none_or(|told| now.since(told) >= self.every);
        if due {
            *told = Some(now);
        }
        due
    }
}

/// How long the keeper waits for a word: what was not told for being too soon after another is made up for, so that no
/// handler is silent sooner than its settings say.
pub(crate) fn heard_within(max_silence: Duration) -> Duration {
    max_silence.saturating_add(max_silence / PARTS)
}

impl Lease {
    /// Says that the work gets on, for a lease with [`max_silence`](crate::LeaseLayerBuilder::max_silence): one whose
    /// handler has been silent for that long is renewed no more.
    ///
    /// Call it wherever the work has made a step, as often as you like, from any thread and from code that blocks: a line is
    /// written at most ten times in a `max_silence`, and nothing waits. It does not tell whether the lease is held; ask
    /// [`ensure_held`](Self::ensure_held) for that. Without a `max_silence` it does nothing.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # fn import(_: &str) {}
    /// # fn f(lines: &[&str]) -> Result<(), Error> {
    /// let lease = Lease::current()?;
    /// for line in lines {
    ///     import(line);
    ///     lease.progress();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn progress(&self) {
        if let (Some(link), Some(progress)) = (&self.0.link, &self.0.progress)
            && progress.is_due(link.clock.now().mono)
        {
            link.session.progress();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock, Wall};

    #[test]
    fn a_tight_loop_is_told_of_ten_times_in_the_longest_silence() {
        let clock = ManualClock::at(Wall::from_millis(1));
        let progress = Progress::new(Duration::from_secs(1));
        let mut told = 0;
        for _ in 0..1_000 {
            told += u32::from(progress.is_due(clock.now().mono));
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(told, 10);
        // The last word of a loop that ran on untold counts from up to a tenth before.
        assert_eq!(heard_within(Duration::from_secs(1)), Duration::from_millis(1_100));
    }
}
