//! An `acquire` line, checked and turned into what the machines want to know.

use std::sync::Arc;
use std::time::Duration;

use super::subject::{check_key, check_table, subject};
use super::wording::cut_holder;
use crate::clock::{Mono, Now, Wall};
use crate::protocol::{Backoff, Budget, Epoch, LossReason, Polling, Renewals, Rules, Settings, Subject};
use crate::session::{Acquire, OnCrash, PollingMs};
use crate::store::{Lock, STATE_SUFFIX};

/// Lambda knows no function that runs longer; polling any slower would be no polling.
const MAX_POLLING_MS: u64 = 15 * 60 * 1000;
/// Lambda kills a handler within this after its deadline.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// 2020-01-01. Local emulators tell deadlines in 1970, which are none.
const EARLIEST_DEADLINE_MS: u64 = 1_577_836_800_000;

/// What a session knows about its invocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invocation {
    /// When it began, among all sessions of this keeper.
    pub(super) epoch: Epoch,
    /// When its handler is killed at the latest; `None` where that is unknown or nobody kills.
    pub(super) end_of_work: Option<Mono>,
}

impl Invocation {
    /// Reads wall time once: from here on the deadline is a monotonic moment.
    pub(super) fn new(epoch: Epoch, deadline_ms: Option<u64>, managed_instances: bool, now: Now) -> Self {
        let deadline = deadline_ms.filter(|ms| *ms >= EARLIEST_DEADLINE_MS && !managed_instances);
        let end_of_work = deadline.map(|ms| now.mono + Wall::from_millis(ms).since(now.wall) + SHUTDOWN_GRACE);
        Self { epoch, end_of_work }
    }
}

/// What one lease was asked for with.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) lock: Arc<Lock>,
    pub(super) subject: Subject,
    pub(super) settings: Settings,
    pub(super) budget: Budget,
    pub(super) renewals: Renewals,
    /// For how long the lease is renewed without a word of progress.
    pub(super) max_silence: Option<Duration>,
    pub(super) epoch: Epoch,
    pub(super) on_crash: OnCrash,
    pub(super) state_retention: Option<Duration>,
}

impl Terms {
    /// Checks an `acquire` line.
    ///
    /// # Errors
    ///
    /// When a field can't be served; the message names it.
    pub(super) fn read(acquire: Acquire, invocation: &Invocation, now: Now) -> Result<Self, String> {
        check_key(&acquire.key)?;
        let format = check_table(&acquire.table)?;
        if format.abilities().state && acquire.key.ends_with(STATE_SUFFIX) {
            return Err(format!("`key` must not end with `{STATE_SUFFIX}`: another lock's state is kept there"));
        }
        let longest = Settings::MAX_LEASE.as_millis();
        let shortest = Settings::MIN_LEASE.as_millis();
        let asked = u128::from(acquire.lease_ms);
        if asked < shortest || asked > longest {
            return Err(format!("`lease_ms` must be {shortest} to {longest}, not {asked}"));
        }
        if acquire.max_hold_ms == 0 {
            return Err("`max_hold_ms` must be at least 1".to_owned());
        }
        if acquire.max_silence_ms == Some(0) {
            return Err("`max_silence_ms` must be at least 1".to_owned());
        }
        if acquire.state_retention_ms == Some(0) {
            return Err("`state_retention_ms` must be at least 1".to_owned());
        }
        let notes = format.abilities().notes || (acquire.attributes.is_empty() && acquire.holder.note.is_empty());
        if !notes {
            return Err(format!("`attributes`: rows of the format `{format}` have no place for any, nor for a note"));
        }
        if let Some(problem) = acquire.table.misplaced(&acquire.attributes) {
            return Err(format!("`attributes`: {problem}"));
        }
        let polling = acquire.polling.map_or(Ok(Polling::Tickets), backoff)?;

        let latest = acquire.answer_within_ms.map(|ms| now.mono + Duration::from_millis(ms));
        let stop = now.mono + Duration::from_millis(acquire.wait_ms);
        let settings = Settings {
            lease: lease(acquire.lease_ms, invocation.end_of_work, now),
            format,
            polling,
            server_time: acquire.server_time,
            rules: Rules::default(),
        };
        Ok(Self {
            subject: subject(&acquire.table, &acquire.key),
            settings,
            budget: Budget { stop: latest.map_or(stop, |latest| stop.min(latest)), latest },
            renewals: renewals(invocation.end_of_work, Duration::from_millis(acquire.max_hold_ms), now),
            max_silence: acquire.max_silence_ms.map(Duration::from_millis),
            epoch: invocation.epoch,
            on_crash: acquire.on_crash,
            state_retention: acquire.state_retention_ms.map(Duration::from_millis),
            lock: Arc::new(Lock {
                table: acquire.table,
                key: acquire.key,
                holder: cut_holder(acquire.holder),
                attributes: acquire.attributes,
            }),
        })
    }
}

impl Terms {
    /// When renewals end for a handler that told of its progress at this moment last.
    pub(super) fn renewals_after(&self, progress: Mono) -> Renewals {
        match self.max_silence.map(|limit| progress + limit) {
            Some(until) if until < self.renewals.until => {
                Renewals { until, then: LossReason::MaxSilence, ..self.renewals }
            }
            _ => self.renewals,
        }
    }
}

fn backoff(PollingMs { first, max }: PollingMs) -> Result<Polling, String> {
    if first == 0 || max < first || max > MAX_POLLING_MS {
        return Err(format!("`polling` must have 1 <= `first` <= `max` <= {MAX_POLLING_MS}, not {first} and {max}"));
    }
    Ok(Polling::Backoff(Backoff { first: Duration::from_millis(first), max: Duration::from_millis(max) }))
}

/// A handler that can't outlive its deadline needs no lease that does: what is believed of it, 90 %, is to cover the
/// rest of the work and no more. In whole milliseconds, for so it is written to the row.
fn lease(asked_ms: u64, end_of_work: Option<Mono>, now: Now) -> Duration {
    let needed_ms = end_of_work.map_or(u64::MAX, |end| {
        let tenfold = end.since(now.mono).as_micros().saturating_mul(10);
        u64::try_from(tenfold.div_ceil(9 * 1000)).unwrap_or(u64::MAX)
    });
    Duration::from_millis(asked_ms.min(needed_ms)).max(Settings::MIN_LEASE)
}

fn renewals(end_of_work: Option<Mono>, max_hold: Duration, now: Now) -> Renewals {
    match end_of_work {
        Some(end) => Renewals { until: end, then: LossReason::Expired, covered_by: Some(end) },
        None => Renewals { until: now.mono + max_hold, then: LossReason::MaxHold, covered_by: None },
    }
}

#[cfg(test)]
mod tests;
