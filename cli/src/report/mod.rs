//! `report`: what log lines say of a table's use: contention, losses, what `observe` would have refused, and the cost.

mod line;
mod spread;
mod tally;

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

pub(crate) use self::line::{Event, read_line};
use self::spread::Spread;
use self::tally::{Tally, total};
use crate::cost::{looks, renewals};
use crate::ended::{Ended, STATUS, Stop};
use crate::output::{self, Progress};
use crate::prices::{Item, Prices, usd};
use crate::text::{count, cut, safe, span};

/// How many keys are told.
const KEYS: usize = 10;

/// Report on a log: how often was waited and refused, what was lost, what observe would have refused, what it cost.
///
/// Reads the log lines that the extension writes with AWS_LAMBDA_LOG_FORMAT=JSON (LoggingConfig: LogFormat JSON), and in mode
/// observe the function's own, from standard input. Other lines are passed over, and so is what a viewer writes before the
/// first brace of a line. The lines do not tell reads and renewals: those are worked out from waits and holds, by the default
/// polling and --lease.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  aws logs tail /aws/lambda/orders --since 1h --format short | leaseholdctl report
  leaseholdctl report --json --lease 10s --memory 512 < orders.log

{STATUS}
1 if leases were lost; 2 if no line was one of leasehold's."))]
pub(crate) struct Report {
    /// The lease's length, by which renewals are estimated.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::options::duration)]
    lease: Duration,

    #[command(flatten)]
    prices: Prices,
}

impl Report {
    pub(crate) fn run(&self, json: bool) -> Result<Ended, Stop> {
        let input = io::stdin().lock();
        if input.is_terminal() {
            return Err(Stop::Usage(
                "log lines are read from standard input: `aws logs tail … | leaseholdctl report`".to_owned(),
            ));
        }
        let tally = read(input)?;
        if tally.events == 0 {
            return Err(Stop::Usage(format!(
                "none of the {} lines is one of leasehold's: set the function's log format to JSON and the level to INFO",
                count(tally.lines)
            )));
        }
        let items = self.costs(&tally);
        if json {
            output::document(&document(&tally, &items))?
        } else {
            tell(&tally, &items)?
        }
        Ok(if tally.lost.is_empty() { Ended::Fine } else { Ended::Problem })
    }

    #[allow(clippy::cast_precision_loss, reason = "an estimate of money")]
    fn costs(&self, tally: &Tally) -> [Item; 3] {
        let releases = total(&tally.released) + tally.not_released;
        // By the mean: what the lines don't tell is estimated anyway.
        let held = tally.held.sum_ms().checked_div(tally.held.count()).unwrap_or(0);
        let renewals = tally.held.count() * renewals(Duration::from_millis(held), self.lease);
        let waited = tally.waits.sum_ms().checked_div(tally.waits.count()).unwrap_or(0);
        let reads = tally.waits.count() * looks(Duration::from_millis(waited));
        [
            self.prices.writes((tally.attempts + releases + renewals) as f64),
            self.prices.reads(reads as f64),
            self.prices.waits(tally.waits.sum_ms() as f64 / 1_000.0),
        ]
    }
}

fn read(mut input: impl BufRead) -> Result<Tally, Stop> {
    let (mut tally, mut progress, mut line) = (Tally::default(), Progress::new(), Vec::new());
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|error| Stop::Usage(format!("standard input can't be read: {error}")))? == 0 {
            return Ok(tally);
        }
        tally.lines += 1;
        if let Some(line) = read_line(&String::from_utf8_lossy(&line)) {
            tally.add(line);
        }
        if tally.lines.is_multiple_of(10_000) {
            progress.tell(&format!("{} lines, {} of them leasehold's", count(tally.lines), count(tally.events)));
        }
    }
}

fn document(tally: &Tally, items: &[Item; 3]) -> Value {
    let spread = |of: &Spread| {
        json!({
            "count": of.count(), "p50_ms": of.percentile(50), "p90_ms": of.percentile(90), "p99_ms": of.percentile(99),
            "max_ms": of.max(), "sum_ms": of.sum_ms(),
        })
    };
    let keys: Vec<_> = tally
        .contended(KEYS)
        .into_iter()
        .map(|(key, of)| {
            json!({
                "key": key, "acquired": of.acquired, "waited": of.waited, "busy": of.busy, "waited_ms": of.waited_ms,
            })
        })
        .collect();
    json!({
        "lines": tally.lines, "events": tally.events, "first": tally.first, "last": tally.last,
        "acquired": tally.acquired, "acquired_at_once": tally.at_once, "took_over": tally.took_over,
        "attempts": tally.attempts, "busy": tally.busy, "failed": tally.failed, "cancelled": tally.cancelled,
        "waits": spread(&tally.waits), "holds": spread(&tally.held),
        "released": tally.released, "not_released": tally.not_released, "left_to_expire": tally.left_to_expire,
        "lost": tally.lost,
        "observe": {
            "would_have_waited": tally.would_have_waited, "would_have_refused": tally.would_have_refused,
            "would_have_run_unlocked": tally.would_have_run_unlocked, "would_have_lost": tally.would_have_lost,
        },
        "contended_keys": keys, "keys_left_out": tally.keys_left_out,
        "cost": {
            "items": items.iter().map(Item::json).collect::<Vec<_>>(),
            "usd": items.iter().map(|item| item.usd).sum::<f64>(),
        },
    })
}

fn tell(tally: &Tally, items: &[Item; 3]) -> io::Result<()> {
    let line = |name: &str, told: &str| output::line(&format!("  {name:<14} {told}"));
    let (first, last) = (tally.first.as_deref().unwrap_or("?"), tally.last.as_deref().unwrap_or("?"));
    output::line(&format!(
        "{} events in {} lines, {} to {}",
        count(tally.events),
        count(tally.lines),
        safe(first),
        safe(last)
    ))?;
    let asked = tally.acquired + tally.busy + total(&tally.failed) + tally.cancelled;
    line("asked for", &format!("{} leases", count(asked)))?;
    line(
        "granted",
        &format!(
            "{}, {} of them at once, {} taken over",
            count(tally.acquired),
            count(tally.at_once),
            count(tally.took_over)
        ),
    )?;
    line("waited", &spread(&tally.waits))?;
    line("busy", &format!("{} refused, {}", count(tally.busy), percent(tally.busy, asked)))?;
    line("failed", &reasons(&tally.failed))?;
    line("held", &spread(&tally.held))?;
    line("given back", &reasons(&tally.released))?;
    if tally.not_released + tally.left_to_expire > 0 {
        let (not, left) = (count(tally.not_released), count(tally.left_to_expire));
        line("not given back", &format!("{not} not released, {left} left to expire"))?;
    }
    line("lost", &reasons(&tally.lost))?;
    let refused = total(&tally.would_have_refused);
    let (waited, unlocked, lost) = (tally.would_have_waited, tally.would_have_run_unlocked, tally.would_have_lost);
    if waited + refused + unlocked + lost > 0 {
        let (waited, refused, unlocked, lost) = (count(waited), count(refused), count(unlocked), count(lost));
        let told = format!("would have let {waited} wait, refused {refused}, run {unlocked} unlocked, lost {lost}");
        line("observe", &told)?;
        for (reason, times) in &tally.would_have_refused {
            line("", &format!("{:>7}  {}", count(*times), cut(reason, 120)))?;
        }
    }
    let keys = tally.contended(KEYS);
    if !keys.is_empty() {
        output::line("keys that were waited for longest")?;
    }
    for (key, of) in keys {
        let waited = span(Duration::from_millis(of.waited_ms));
        output::line(&format!(
            "  {waited:>8}  {}  ({} granted, {} of them after a wait, {} busy)",
            cut(key, 120),
            count(of.acquired),
            count(of.waited),
            count(of.busy)
        ))?;
    }
    output::line("cost, as far as lines tell")?;
    for item in items {
        output::line(&item.line())?;
    }
    output::line(&format!("  total   {}", usd(items.iter().map(|item| item.usd).sum())))
}

fn spread(of: &Spread) -> String {
    if of.count() == 0 {
        return "none".to_owned();
    }
    let ms = |ms: u64| span(Duration::from_millis(ms));
    let (p50, p99) = (ms(of.percentile(50)), ms(of.percentile(99)));
    format!("{} times, half of them up to {p50}, 99 of 100 up to {p99}, at most {}", count(of.count()), ms(of.max()))
}

fn reasons(of: &BTreeMap<String, u64>) -> String {
    if of.is_empty() {
        return "none".to_owned();
    }
    let told: Vec<_> = of.iter().map(|(reason, times)| format!("{} {}", count(*times), cut(reason, 80))).collect();
    told.join(", ")
}

#[allow(clippy::cast_precision_loss, reason = "a share for people")]
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "0 %".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}
