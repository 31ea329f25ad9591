//! What is reported: the counts, from the lines of metrics where there are any, and else from the events.

use std::time::Duration;

use serde_json::{Value, json};

use super::metrics::{Metrics, sum};
use super::spread::Spread;
use super::tally::{Tally, total};
use crate::cost::{looks, renewals};
use crate::prices::{Item, Prices};

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) lines: u64,
    /// Lines of leasehold's that can't be read.
    pub(super) broken: u64,
    pub(super) metrics: Metrics,
    pub(super) events: Tally,
}

/// The counts, whichever lines they are from. What events don't tell is `None`.
#[derive(Debug)]
pub(super) struct Summary<'a> {
    pub(super) by_metrics: bool,
    pub(super) acquired: u64,
    pub(super) contended: u64,
    pub(super) took_over: u64,
    pub(super) busy: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) waits: &'a Spread,
    pub(super) holds: &'a Spread,
    pub(super) released: u64,
    pub(super) crash_releases: u64,
    pub(super) left_to_expire: u64,
    pub(super) not_freed: u64,
    pub(super) lost: u64,
    pub(super) expired: Option<u64>,
    pub(super) still_held: Option<u64>,
    pub(super) renewals: Option<(u64, u64)>,
    pub(super) requests: Option<(u64, u64, u64)>,
}

/// An event's reason for a release that no handler asked for.
const CRASH: [&str; 3] = ["crash", "dropped", "shutdown"];

impl Read {
    pub(super) fn summary(&self) -> Summary<'_> {
        if self.metrics.lines > 0 { self.by_metrics() } else { self.by_events() }
    }

    fn by_metrics(&self) -> Summary<'_> {
        let metrics = &self.metrics;
        let of = |name| metrics.of(name);
        Summary {
            by_metrics: true,
            acquired: of("Acquired"),
            contended: of("Contended"),
            took_over: of("Takeovers"),
            busy: of("Busy"),
            failed: of("Failed"),
            cancelled: self.events.cancelled,
            waits: &metrics.waits,
            holds: &metrics.holds,
            released: of("Released"),
            crash_releases: of("CrashReleases"),
            left_to_expire: of("LeftToExpire"),
            not_freed: of("RowsNotFreed"),
            lost: of("Lost"),
            expired: Some(of("Expired")),
            still_held: Some(of("StillHeld")),
            renewals: Some((of("Renewals"), of("RenewalFailures"))),
            requests: Some((of("Requests"), of("Errors"), of("Throttles"))),
        }
    }

    fn by_events(&self) -> Summary<'_> {
        let events = &self.events;
        let crashed = CRASH.iter().filter_map(|reason| events.released.get(*reason)).sum();
        Summary {
            by_metrics: false,
            acquired: events.acquired,
            contended: events.acquired - events.at_once + events.busy,
            took_over: events.took_over,
            busy: events.busy,
            failed: total(&events.failed),
            cancelled: events.cancelled,
            waits: &events.waits,
            holds: &events.held,
            released: total(&events.released) - crashed,
            crash_releases: crashed,
            left_to_expire: events.left_to_expire,
            not_freed: events.not_released,
            lost: total(&events.lost),
            expired: None,
            still_held: None,
            renewals: None,
            requests: None,
        }
    }

    /// What it cost. Metrics tell the capacity; what was refused or not answered is not in it, and counts a unit each.
    /// Events tell attempts and releases; reads and renewals are worked out from waits and holds, tickets from who found its key held.
    #[allow(clippy::cast_precision_loss, reason = "an estimate of money")]
    pub(super) fn costs(&self, prices: &Prices, lease: Duration) -> [Item; 3] {
        let summary = self.summary();
        let waited = summary.waits.sum_ms();
        let (writes, reads) = if summary.by_metrics {
            let of = |name| self.metrics.of(name);
            let not_told = sum(["AttemptsRefused", "AttemptsUnknown", "RenewalFailures"].map(of));
            (self.metrics.write_units + not_told as f64, self.metrics.read_units)
        } else {
            let events = &self.events;
            let releases = total(&events.released) + events.not_released;
            // By the mean: what the lines don't tell is estimated anyway.
            let mean = |spread: &Spread| spread.sum_ms().checked_div(spread.count()).unwrap_or(0);
            let (held, waited) =
                (Duration::from_millis(mean(&events.held)), Duration::from_millis(mean(&events.waits)));
            let renewed = events.held.count().saturating_mul(renewals(held, lease));
            let reads = events.waits.count().saturating_mul(looks(waited, held));
            // Who finds its key held writes a ticket.
            (sum([events.attempts, summary.contended, releases, renewed]) as f64, reads as f64)
        };
        [prices.writes(writes), prices.reads(reads), prices.waits(waited as f64 / 1_000.0)]
    }
}

impl Summary<'_> {
    /// How many leases were asked for.
    pub(super) fn asked(&self) -> u64 {
        sum([self.acquired, self.busy, self.failed, self.cancelled])
    }
}

/// The report as JSON.
pub(super) fn document(read: &Read, items: &[Item; 3], keys: usize) -> Value {
    let summary = read.summary();
    let (events, metrics) = (&read.events, &read.metrics);
    let contended: Vec<_> = events
        .contended(keys)
        .into_iter()
        .map(|(key, of)| {
            json!({
                "key": key, "acquired": of.acquired, "waited": of.waited, "busy": of.busy, "waited_ms": of.waited_ms,
            })
        })
        .collect();
    let templates: Vec<_> = metrics
        .templates(usize::MAX)
        .into_iter()
        .map(|((function, template), of)| {
            json!({
                "function": function, "template": template, "acquired": of.acquired, "contended": of.contended,
                "busy": of.busy, "lost": of.lost, "waits": spread(&of.waits),
            })
        })
        .collect();
    let off_balance: Vec<_> = metrics
        .off_balance()
        .into_iter()
        .map(|(name, total, parts)| json!({ "total": name, "is": total, "parts": parts }))
        .collect();
    json!({
        "lines": read.lines, "malformed": read.broken, "events": events.events,
        "counted_by": if summary.by_metrics { "metrics" } else { "events" },
        "first": first(read), "last": last(read),
        "asked": summary.asked(), "acquired": summary.acquired, "contended": summary.contended,
        "took_over": summary.took_over, "busy": summary.busy, "failed": summary.failed, "cancelled": summary.cancelled,
        "waits": spread(summary.waits), "holds": spread(summary.holds),
        "released": summary.released, "crash_releases": summary.crash_releases,
        "left_to_expire": summary.left_to_expire, "not_freed": summary.not_freed, "lost": summary.lost,
        "expired": summary.expired, "still_held": summary.still_held,
        "metrics": {
            "lines": metrics.lines, "keepers": metrics.keepers(), "missing": metrics.missing(),
            "not_told_apart": metrics.not_told_apart, "sums": metrics.sums(), "write_units": metrics.write_units,
            "read_units": metrics.read_units, "next_holds": spread(&metrics.next_holds), "off_balance": off_balance,
            "templates": templates,
        },
        "reasons": { "failed": events.failed, "released": events.released, "lost": events.lost },
        "observe": {
            "would_have_waited": events.would_have_waited, "would_have_refused": events.would_have_refused.times(),
            "refused_examples": events.would_have_refused.examples(),
            "would_have_run_unlocked": events.would_have_run_unlocked, "would_have_lost": events.would_have_lost,
        },
        "contended_keys": contended, "keys_left_out": events.keys_left_out,
        "cost": {
            "items": items.iter().map(Item::json).collect::<Vec<_>>(),
            "usd": items.iter().map(|item| item.usd).sum::<f64>(),
        },
    })
}

fn spread(of: &Spread) -> Value {
    json!({
        "count": of.count(), "p50_ms": of.percentile(50), "p90_ms": of.percentile(90), "p99_ms": of.percentile(99),
        "max_ms": of.max(), "sum_ms": of.sum_ms(),
    })
}

/// The earliest moment of the lines that are counted.
pub(super) fn first(read: &Read) -> Option<String> {
    let of_metrics = read.metrics.span.map(|(first, _)| crate::text::moment(first));
    of_metrics.or_else(|| read.events.first.clone())
}

/// The latest one.
pub(super) fn last(read: &Read) -> Option<String> {
    let of_metrics = read.metrics.span.map(|(_, last)| crate::text::moment(last));
    of_metrics.or_else(|| read.events.last.clone())
}
