//! The report for people.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::spread::Spread;
use super::summary::{Read, Summary, first, last};
use super::tally::Tally;
use crate::output;
use crate::prices::{Item, usd};
use crate::text::{count, cut, safe, span};

/// Prints it, with so many keys and templates.
///
/// # Errors
///
/// When standard output can't be written to.
pub(super) fn tell(read: &Read, items: &[Item; 3], most: usize) -> io::Result<()> {
    let summary = read.summary();
    head(read)?;
    counts(read, &summary)?;
    observed(&read.events)?;
    templates(read, most)?;
    keys(&read.events, most)?;
    output::line("cost, as far as lines tell")?;
    for item in items {
        output::line(&item.line())?;
    }
    output::line(&format!("  total   {}", usd(items.iter().map(|item| item.usd).sum())))?;
    notes(read)
}

fn line(name: &str, told: &str) -> io::Result<()> {
    output::line(&format!("  {name:<14} {told}"))
}

fn head(read: &Read) -> io::Result<()> {
    let mut what = Vec::new();
    if read.metrics.lines > 0 {
        let (lines, keepers) = (read.metrics.lines, read.metrics.keepers());
        what.push(format!(
            "{} by {}",
            plural(lines, "line of metrics", "lines of metrics"),
            plural(keepers, "keeper", "keepers")
        ));
    }
    if read.events.events > 0 {
        what.push(plural(read.events.events, "event", "events"));
    }
    let told = |moment: Option<String>| moment.map_or_else(|| "?".to_owned(), |moment| safe(&moment));
    output::line(&format!(
        "{} in {} lines, {} to {}",
        what.join(" and "),
        count(read.lines),
        told(first(read)),
        told(last(read))
    ))
}

fn counts(read: &Read, summary: &Summary<'_>) -> io::Result<()> {
    let events = &read.events;
    line("asked for", &format!("{} leases", count(summary.asked())))?;
    let (acquired, took_over) = (count(summary.acquired), count(summary.took_over));
    line("granted", &format!("{acquired}, {took_over} of them taken over"))?;
    let share = percent(summary.contended, summary.asked());
    line("contended", &format!("{} found their key held, {share}", count(summary.contended)))?;
    line("waited", &spread(summary.waits))?;
    line("busy", &format!("{} refused, {}", count(summary.busy), percent(summary.busy, summary.asked())))?;
    line("failed", &counted(summary.failed, &events.failed))?;
    line("held", &spread(summary.holds))?;
    let (released, crashed) = (count(summary.released), count(summary.crash_releases));
    line("given back", &format!("{released} in good order, {crashed} by a crash"))?;
    let rest = [
        (Some(summary.left_to_expire), "left to expire"),
        (summary.expired, "ran out after the deadline"),
        (summary.still_held, "still held"),
        (Some(summary.not_freed), "not freed"),
    ];
    let rest: Vec<_> = rest
        .into_iter()
        .filter_map(|(number, what)| Some(format!("{} {what}", count(number.filter(|number| *number > 0)?))))
        .collect();
    if !rest.is_empty() {
        line("not given back", &rest.join(", "))?;
    }
    line("lost", &counted(summary.lost, &events.lost))?;
    if let Some((answered, failed)) = summary.renewals {
        line("renewals", &format!("{}, and {} that failed", count(answered), count(failed)))?;
    }
    if let Some((requests, errors, throttles)) = summary.requests {
        let (errors, throttles) = (count(errors), count(throttles));
        line("requests", &format!("{}, {errors} of them not served, {throttles} throttled", count(requests)))?;
    }
    Ok(())
}

fn observed(events: &Tally) -> io::Result<()> {
    let refused = events.would_have_refused.total();
    let (waited, unlocked, lost) = (events.would_have_waited, events.would_have_run_unlocked, events.would_have_lost);
    if waited + refused + unlocked + lost == 0 {
        return Ok(());
    }
    let (waited, refused, unlocked, lost) = (count(waited), count(refused), count(unlocked), count(lost));
    line("observe", &format!("would have let {waited} wait, refused {refused}, run {unlocked} unlocked, lost {lost}"))?;
    for (kind, of) in events.would_have_refused.by_number() {
        line("", &format!("{:>7}  {}", count(of.times), cut(kind, 120)))?;
        for (at, example) in of.examples.iter().enumerate() {
            line("", &format!("{:>7}  {} {}", "", if at == 0 { "as" } else { "  " }, cut(example, 160)))?;
        }
    }
    Ok(())
}

fn templates(read: &Read, most: usize) -> io::Result<()> {
    let templates = read.metrics.templates(most);
    if templates.is_empty() {
        return Ok(());
    }
    output::line("templates that were waited for longest")?;
    for ((function, template), of) in templates {
        output::line(&format!(
            "  {:>8}  {} of {}  ({} granted, {} contended, {} busy, {} lost; 99 of 100 waited up to {})",
            ms(of.waits.sum_ms()),
            cut(template, 80),
            cut(function, 64),
            count(of.acquired),
            count(of.contended),
            count(of.busy),
            count(of.lost),
            ms(of.waits.percentile(99)),
        ))?;
    }
    Ok(())
}

fn keys(events: &Tally, most: usize) -> io::Result<()> {
    let keys = events.contended(most);
    if keys.is_empty() {
        return Ok(());
    }
    output::line("keys that were waited for longest")?;
    for (key, of) in keys {
        output::line(&format!(
            "  {:>8}  {}  ({} granted, {} of them after a wait, {} busy)",
            ms(of.waited_ms),
            cut(key, 120),
            count(of.acquired),
            count(of.waited),
            count(of.busy)
        ))?;
    }
    Ok(())
}

/// What makes the counts less than whole.
fn notes(read: &Read) -> io::Result<()> {
    if read.broken > 0 {
        let lines = plural(read.broken, "line", "lines");
        output::line(&format!(
            "{lines} of leasehold's could not be read and are not counted: cut off, or of another form"
        ))?;
    }
    if read.metrics.missing() > 0 {
        let lines = plural(read.metrics.missing(), "line", "lines");
        output::line(&format!(
            "{lines} of metrics are missing between others of the same keepers: the counts are too low"
        ))?;
    }
    if read.metrics.not_told_apart > 0 {
        let lines = plural(read.metrics.not_told_apart, "line", "lines");
        output::line(&format!("{lines} of more keepers than are told apart: what is still held is too low"))?;
    }
    for (total, is, parts) in read.metrics.off_balance() {
        output::line(&format!(
            "{total} {}, but its parts come to {}: lines are missing, or these begin in the middle",
            count(is),
            count(parts)
        ))?;
    }
    Ok(())
}

fn spread(of: &Spread) -> String {
    if of.count() == 0 {
        return "none".to_owned();
    }
    let (p50, p99, most) = (ms(of.percentile(50)), ms(of.percentile(99)), ms(of.max()));
    format!("{} times, half of them up to {p50}, 99 of 100 up to {p99}, at most {most}", count(of.count()))
}

fn ms(ms: u64) -> String {
    span(Duration::from_millis(ms))
}

/// How many, and why as far as events tell.
fn counted(number: u64, reasons: &BTreeMap<String, u64>) -> String {
    if number == 0 && reasons.is_empty() {
        return "none".to_owned();
    }
    let told: Vec<_> = reasons.iter().map(|(reason, times)| format!("{} {}", count(*times), cut(reason, 80))).collect();
    let colon = if told.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", count(number), told.join(", "))
}

fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[allow(clippy::cast_precision_loss, reason = "a share for people")]
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "0 %".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}
