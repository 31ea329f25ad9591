//! `cost`: what a million invocations cost, with the arithmetic.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::ended::{Ended, STATUS, Stop};
use crate::output;
use crate::prices::{Prices, number, usd};
use crate::text::{count, span};

/// Work out what locking costs: requests for each invocation, for a million of them, and for the waits.
///
/// An invocation that finds its key free writes twice, to take and to free; its lease is renewed every third of its length,
/// but only while the work lasts. One that waits has its first write refused, writes a ticket, looks (a read) the more seldom the
/// longer the key is held, in the end ten times a second, and writes once more: as who is next in line does. Who is far from its
/// turn looks less often, and by `LEASEHOLD_POLLING=backoff` nobody writes a ticket or looks more than twice a second. Each of
/// them counts whole units: 1 KB for a write, 4 KB for a consistent read. Not counted: storage, data transfer, and one read
/// whenever an environment starts.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl cost
  leaseholdctl cost --invocations 30000000 --waiting 0.05 --wait 300ms --memory 512
  leaseholdctl cost --work 2m --write-price 0.7125 --read-price 0.1425

{STATUS}"))]
pub(crate) struct Cost {
    /// How many invocations.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = whole, allow_negative_numbers = true)]
    invocations: u64,

    /// Locks for each of them: more than one with per_record or stacked layers.
    #[arg(long, value_name = "N", default_value = "1", value_parser = crate::prices::amount, allow_negative_numbers = true)]
    locks: f64,

    /// How long the work under a lock takes.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::options::duration)]
    work: Duration,

    /// The lease's length.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::options::lease)]
    lease: Duration,

    /// The part of the locks that are waited for, from 0 to 1.
    #[arg(long, value_name = "PART", default_value = "0", value_parser = part, allow_negative_numbers = true)]
    waiting: f64,

    /// How long such a wait takes.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = crate::options::duration)]
    wait: Duration,

    /// A row's size in bytes: key, holder and template. 500 unless yours are long.
    #[arg(long, value_name = "BYTES", default_value = "500", value_parser = clap::value_parser!(u32).range(1..=409_600))]
    row_bytes: u32,

    #[command(flatten)]
    prices: Prices,
}

/// So many invocations are some thousand years of all of AWS.
const MOST: u64 = 1_000_000_000_000_000;

fn whole(text: &str) -> Result<u64, String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let number = digits.parse().map_err(|_| format!("{text:?} is no whole number: write one such as 1000000"))?;
    if number <= MOST { Ok(number) } else { Err(format!("{text} is more than {} invocations", count(MOST))) }
}

fn part(text: &str) -> Result<f64, String> {
    crate::prices::amount(text).ok().filter(|part| *part <= 1.0).ok_or_else(|| format!("{text:?} is not from 0 to 1"))
}

/// What a request takes, about.
const REQUEST: Duration = Duration::from_millis(5);
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How many looks a wait takes for a key that is usually held for `hold`, as the default polling goes where nobody else waits:
/// a pause is an eighth of that hold while it lasts, and of the time for which the key was seen held afterwards.
pub(crate) fn looks(wait: Duration, hold: Duration) -> u64 {
    // A write is refused, and a ticket is written.
    let (mut at, mut looks) = (REQUEST * 2, 0);
    if wait <= at {
        return 0;
    }
    loop {
        let seen = at - REQUEST;
        let usual = if seen < hold { hold / 8 } else { Duration::ZERO };
        let pause = usual.max(seen / 8).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        if pause == LONGEST_PAUSE && seen / 8 >= LONGEST_PAUSE {
            let left = wait.saturating_sub(at).as_millis() / (LONGEST_PAUSE + REQUEST).as_millis();
            return looks + u64::try_from(left).unwrap_or(u64::MAX - 10_000) + 1;
        }
        // The last one finds it free, or is the last before giving up.
        looks += 1;
        if at + pause >= wait {
            return looks;
        }
        at += pause + REQUEST;
    }
}

/// How many renewals work of this length takes.
pub(crate) fn renewals(work: Duration, lease: Duration) -> u64 {
    let third = (lease.as_millis() / 3).max(1);
    u64::try_from(work.as_millis().saturating_sub(1) / third).unwrap_or(u64::MAX)
}

impl Cost {
    #[allow(clippy::cast_precision_loss, reason = "an estimate of money")]
    pub(crate) fn run(&self, json: bool) -> Result<Ended, Stop> {
        let (renewals, looks) = (renewals(self.work, self.lease), looks(self.wait, self.work));
        let write_units = f64::from(self.row_bytes.div_ceil(1_024));
        let read_units = f64::from(self.row_bytes.div_ceil(4_096));
        let writes = 2.0 + renewals as f64 + self.waiting * 2.0;
        let reads = self.waiting * looks as f64;
        let locks = self.invocations as f64 * self.locks;
        let items = [
            self.prices.writes(locks * writes * write_units),
            self.prices.reads(locks * reads * read_units),
            self.prices.waits(locks * self.waiting * self.wait.as_secs_f64()),
        ];
        let total: f64 = items.iter().map(|item| item.usd).sum();
        if json {
            let items: Vec<_> = items.iter().map(|item| item.json()).collect();
            output::document(&json!({
                "invocations": self.invocations, "locks": locks, "writes_per_lock": writes, "reads_per_lock": reads,
                "units_per_write": write_units, "units_per_read": read_units, "items": items, "usd": total,
            }))?;
            return Ok(Ended::Fine);
        }
        let (work, lease, waiting) = (span(self.work), span(self.lease), self.waiting);
        output::line("for each lock")?;
        output::line(&format!(
            "  writes  1 to take + 1 to free + {} renewals (work of {work}, lease of {lease}) + {waiting} × (1 refused + 1 ticket) = {}",
            count(renewals),
            number(writes)
        ))?;
        output::line(&format!(
            "  reads   {waiting} × {} looks (wait of {}) = {}",
            count(looks),
            span(self.wait),
            number(reads)
        ))?;
        output::line(&format!(
            "  units   {write_units} a write and {read_units} a read, for a row of {} bytes",
            count(self.row_bytes.into())
        ))?;
        output::line(&format!("for {} invocations, {} locks", count(self.invocations), number(locks)))?;
        for item in &items {
            output::line(&item.line())?;
        }
        output::line(&format!("  total   {}", usd(total)))?;
        Ok(Ended::Fine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_follow_the_default_polling() {
        for (wait_ms, hold_ms, expected) in [
            (0, 1_000, 0),
            (10, 1_000, 0),
            (50, 1_000, 1),
            (300, 1_000, 3),
            (500, 1_000, 5),
            (2_000, 1_000, 19),
            (500, 25, 21),
        ] {
            let (wait, hold) = (Duration::from_millis(wait_ms), Duration::from_millis(hold_ms));
            assert_eq!(looks(wait, hold), expected, "{wait_ms} ms, holds of {hold_ms} ms");
        }
        assert_eq!(looks(Duration::from_secs(60), Duration::from_secs(1)), 572);
        assert!(looks(Duration::MAX, Duration::MAX) > 1 << 60);
    }

    #[test]
    fn a_renewal_is_due_every_third_of_the_lease() {
        let lease = Duration::from_secs(30);
        for (work, expected) in [(0, 0), (10, 0), (11, 1), (20, 1), (31, 3), (60, 5)] {
            assert_eq!(renewals(Duration::from_secs(work), lease), expected, "{work} s");
        }
    }
}
