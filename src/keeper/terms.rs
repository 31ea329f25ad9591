//! An `acquire` line, checked and turned into what the machines want to know.

use std::sync::Arc;
use std::time::Duration;

use super::wording::cut_holder;
use crate::clock::{Mono, Now, Wall};
use crate::protocol::{Backoff, Budget, Epoch, Format, LossReason, Polling, Renewals, Rules, Settings, Subject};
use crate::session::{Acquire, OnCrash, PollingMs, Table};
use crate::store::{Lock, STATE_SUFFIX};

/// The longest key, in bytes: what DynamoDB takes for a partition key.
pub(super) const MAX_KEY: usize = 2048;
/// What DynamoDB takes for a sort key.
const MAX_SORT_KEY: usize = 1024;
/// DynamoDB's longest attribute name for a key; longer than any table name or ARN.
const MAX_NAME: usize = 255;
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

/// Checks what is to be locked.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    check_length("key", key, MAX_KEY)
}

/// One name for each row that can be locked: each part is framed by its length, so that no two rows share one.
pub(super) fn subject(table: &Table, key: &str) -> Subject {
    let (sort_name, sort_value) = table.sort_key.as_ref().map_or(("", ""), |(name, value)| (name, value));
    let mut subject = String::new();
    for part in [&table.name, &table.key_attribute, sort_name, sort_value] {
        subject.push_str(&part.len().to_string());
        subject.push(':');
        subject.push_str(part);
    }
    subject.push_str(key);
    subject.into()
}

/// Checks a table's description; answers its row format.
pub(super) fn check_table(table: &Table) -> Result<Format, String> {
    // A table's ARN names the account and the Region as well.
    check_length("table.name", &table.name, MAX_SORT_KEY)?;
    check_length("table.key_attribute", &table.key_attribute, MAX_NAME)?;
    if let Some((name, value)) = &table.sort_key {
        check_length("table.sort_key", name, MAX_NAME)?;
        check_length("table.sort_key", value, MAX_SORT_KEY)?;
    }
    let format: Format = table.format.parse().map_err(|unknown| format!("`table.format`: {unknown}"))?;
    table.misfit(format).map_or(Ok(format), |misfit| Err(format!("`table.format`: {misfit}")))
}

fn check_length(field: &str, value: &str, most: usize) -> Result<(), String> {
    match value.len() {
        1.. if value.len() <= most => Ok(()),
        length => Err(format!("`{field}` must have 1 to {most} bytes, not {length}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};
    use crate::protocol::{HolderInfo, ServerTime};

    fn now() -> Now {
        ManualClock::at(Wall::from_millis(1_800_000_000_000)).now()
    }

    fn invocation(deadline_ms: Option<u64>, managed: bool) -> Invocation {
        Invocation::new(ServerTime::new().begin(), deadline_ms, managed, now())
    }

    fn acquire() -> Acquire {
        Acquire {
            id: 1,
            key: "k".to_owned(),
            table: Table::new("locks"),
            lease_ms: 30_000,
            wait_ms: 2_000,
            answer_within_ms: None,
            polling: None,
            on_crash: OnCrash::Release,
            server_time: true,
            max_hold_ms: 900_000,
            max_silence_ms: None,
            state_retention_ms: None,
            attributes: Default::default(),
            holder: HolderInfo::default(),
        }
    }

    #[test]
    fn a_known_deadline_caps_the_lease_and_ends_renewal() {
        let invocation = invocation(Some(1_800_000_007_000), false);
        let terms = Terms::read(acquire(), &invocation, now()).unwrap();
        assert_eq!(terms.settings.lease, Duration::from_secs(10));
        assert_eq!(terms.renewals.until, now().mono + Duration::from_secs(9));
        assert_eq!(terms.renewals.covered_by, Some(now().mono + Duration::from_secs(9)));
        assert_eq!(terms.renewals.then, LossReason::Expired);
    }

    #[test]
    fn the_capped_lease_is_believed_until_the_work_is_over() {
        for remaining_ms in [0, 1, 7, 999, 1_234, 12_345] {
            let invocation = invocation(Some(1_800_000_000_000 + remaining_ms), false);
            let terms = Terms::read(acquire(), &invocation, now()).unwrap();
            let believed = terms.settings.lease * 90 / 100;
            assert!(believed >= Duration::from_millis(remaining_ms) + SHUTDOWN_GRACE, "{remaining_ms}");
            assert!(believed <= Duration::from_millis(remaining_ms + 1) + SHUTDOWN_GRACE, "{remaining_ms}");
        }
    }

    #[test]
    fn no_deadline_an_emulators_deadline_and_managed_instances_hold_until_max_hold() {
        for (deadline, managed) in
            [(None, false), (Some(0), false), (Some(4_000), false), (Some(1_800_000_007_000), true)]
        {
            let terms = Terms::read(acquire(), &invocation(deadline, managed), now()).unwrap();
            assert_eq!(terms.settings.lease, Duration::from_secs(30));
            assert_eq!(terms.renewals.until, now().mono + Duration::from_secs(900));
            assert_eq!((terms.renewals.then, terms.renewals.covered_by), (LossReason::MaxHold, None));
        }
    }

    #[test]
    fn silence_ends_renewals_before_whatever_else_does() {
        let seconds = Duration::from_secs;
        let asked = Acquire { max_silence_ms: Some(10_000), ..acquire() };
        for (deadline_ms, other) in [(None, LossReason::MaxHold), (Some(1_800_000_060_000), LossReason::Expired)] {
            let terms = Terms::read(asked.clone(), &invocation(deadline_ms, false), now()).unwrap();
            let silent = terms.renewals_after(now().mono + seconds(3));
            assert_eq!((silent.until, silent.then), (now().mono + seconds(13), LossReason::MaxSilence));
            assert_eq!(silent.covered_by, terms.renewals.covered_by);
            let late = terms.renewals_after(terms.renewals.until - seconds(9));
            assert_eq!((late.until, late.then), (terms.renewals.until, other));
        }
        let without = Terms::read(acquire(), &invocation(None, false), now()).unwrap();
        assert_eq!(without.renewals_after(now().mono), without.renewals);
    }

    #[test]
    fn the_budget_never_waits_past_the_latest_answer() {
        let asked = Acquire { answer_within_ms: Some(500), ..acquire() };
        let terms = Terms::read(asked, &invocation(None, false), now()).unwrap();
        assert_eq!(terms.budget.stop, now().mono + Duration::from_millis(500));
        assert_eq!(terms.budget.latest, Some(now().mono + Duration::from_millis(500)));
    }

    #[test]
    fn a_setting_that_cannot_be_served_is_named() {
        let sorted = |name: &str, value: &str| Table {
            sort_key: Some((name.to_owned(), value.to_owned())),
            ..Table::new("locks")
        };
        let bad = [
            ("key", Acquire { key: String::new(), ..acquire() }),
            ("key", Acquire { key: "k".repeat(2049), ..acquire() }),
            ("key", Acquire { key: "k#state".to_owned(), ..acquire() }),
            ("table.name", Acquire { table: Table::new(""), ..acquire() }),
            (
                "table.key_attribute",
                Acquire { table: Table { key_attribute: String::new(), ..Table::new("locks") }, ..acquire() },
            ),
            ("table.sort_key", Acquire { table: sorted("", "x"), ..acquire() }),
            ("table.sort_key", Acquire { table: sorted("sk", ""), ..acquire() }),
            (
                "table.format",
                Acquire { table: Table { format: "java/1".to_owned(), ..Table::new("locks") }, ..acquire() },
            ),
            ("table.format", Acquire { table: sorted("sk", "x").speaking(Format::PydynoxV1), ..acquire() }),
            ("state_retention_ms", Acquire { state_retention_ms: Some(0), ..acquire() }),
            ("attributes", Acquire { attributes: [("owner".to_owned(), "me".to_owned())].into(), ..acquire() }),
            (
                "attributes",
                Acquire {
                    attributes: [("team".to_owned(), "a".to_owned())].into(),
                    table: Table::new("locks").speaking(Format::PydynoxV1),
                    ..acquire()
                },
            ),
            ("lease_ms", Acquire { lease_ms: 499, ..acquire() }),
            ("lease_ms", Acquire { lease_ms: u64::MAX, ..acquire() }),
            ("max_hold_ms", Acquire { max_hold_ms: 0, ..acquire() }),
            ("max_silence_ms", Acquire { max_silence_ms: Some(0), ..acquire() }),
            ("polling", Acquire { polling: Some(PollingMs { first: 0, max: 10 }), ..acquire() }),
            ("polling", Acquire { polling: Some(PollingMs { first: 20, max: 10 }), ..acquire() }),
            ("polling", Acquire { polling: Some(PollingMs { first: 20, max: u64::MAX }), ..acquire() }),
        ];
        for (field, acquire) in bad {
            let message = Terms::read(acquire, &invocation(None, false), now()).unwrap_err();
            assert!(message.contains(&format!("`{field}`")), "{message}");
        }
    }

    #[test]
    fn the_largest_numbers_are_served_without_overflow() {
        let most = u64::MAX;
        let asked = Acquire {
            wait_ms: most,
            answer_within_ms: Some(most),
            max_hold_ms: most,
            max_silence_ms: Some(most),
            lease_ms: 86_400_000,
            ..acquire()
        };
        let terms = Terms::read(asked, &invocation(Some(most), false), now()).unwrap();
        assert_eq!(terms.settings.lease, Settings::MAX_LEASE);
    }

    #[test]
    fn two_rows_never_share_a_subject() {
        let a = subject(&Table::new("locks"), "a");
        let b = subject(&Table { sort_key: Some(("a".to_owned(), String::new())), ..Table::new("locks") }, "");
        assert_ne!(a, b);
        assert_ne!(a, subject(&Table::new("lock"), "sa"));
        assert_eq!(a, subject(&Table::new("locks"), "a"));
    }
}
