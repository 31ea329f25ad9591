//! Runs the protocol's simulation, seed after seed, on all cores.
//!
//! `cargo run --release --features simulation --example simulate -- --help`
//!
//! A tool, not an example of use: `.ci/examples` leaves it out, and the test `simulation` runs the same.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leasehold::protocol::simulation::{self, Report};
use leasehold::protocol::{Format, Mutant};

const HELP: &str = "\
Runs the lease protocol against a simulated, hostile world, and checks its invariants.

Usage: simulate [OPTIONS]

Options:
      --seeds <N>      How many seeds to run [default: 100000]
      --from <N>       The first of them [default: 0]
      --seed <N>       Run this one seed and print what happened, a line an event
      --format <NAME>  The table's row format, leasehold/1 or pydynox/1 [default: leasehold/1]
      --mutant <NAME>  Switch one rule of the protocol off; ends at the first seed that notices
      --mutants        Try every mutant that the format has a place for, and tell which seed notices it
      --jobs <N>       Threads [default: all cores]
  -h, --help           Print this help

Exit status: 0 when the run is as it should be (no seed fails, or each mutant is noticed), 1 when it is not,
2 when the options make no sense.

Mutants:
";

struct Options {
    seeds: u64,
    from: u64,
    seed: Option<u64>,
    format: Format,
    mutant: Option<Mutant>,
    all_mutants: bool,
    jobs: usize,
}

impl Options {
    /// `None` when help is asked for.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Self {
            seeds: 100_000,
            from: 0,
            seed: None,
            format: Format::default(),
            mutant: None,
            all_mutants: false,
            jobs,
        };
        while let Some(arg) = args.next() {
            let (name, inline) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let mut value = || inline.clone().or_else(|| args.next()).ok_or_else(|| format!("`{name}` needs a value"));
            match name.as_str() {
                "--seeds" => options.seeds = number(&name, &value()?)?,
                "--from" => options.from = number(&name, &value()?)?,
                "--seed" => options.seed = Some(number(&name, &value()?)?),
                "--jobs" => options.jobs = usize::try_from(number(&name, &value()?)?.max(1)).unwrap_or(1),
                "--format" => options.format = value()?.parse().map_err(|error| format!("{error}"))?,
                "--mutant" => options.mutant = Some(value()?.parse().map_err(|error| format!("{error}"))?),
                "--mutants" => options.all_mutants = true,
                "-h" | "--help" => return Ok(None),
                _ => return Err(format!("there is no option `{name}`")),
            }
        }
        if options.seeds == 0 {
            return Err("`--seeds 0` would show nothing: run one at least".to_owned());
        }
        Ok(Some(options))
    }
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.replace('_', "").parse().map_err(|_| format!("`{name}` needs a number, not `{value}`"))
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            let names: String = Mutant::ALL.iter().map(|mutant| format!("  {mutant}\n")).collect();
            say(&format!("{HELP}{names}"));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            complain(&format!("{error}; see --help\n"));
            return ExitCode::from(2);
        }
    };
    let as_it_should_be = match options.seed {
        Some(seed) => replay(seed, options.format, options.mutant),
        None if options.all_mutants => {
            let mutants = Mutant::ALL.into_iter().filter(|mutant| mutant.applies_to(options.format));
            mutants.filter(|mutant| !hunt(&options, *mutant)).count() == 0
        }
        None => match options.mutant {
            Some(mutant) => hunt(&options, mutant),
            None => search(&options, None).is_none(),
        },
    };
    if as_it_should_be { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64, format: Format, mutant: Option<Mutant>) -> bool {
    let (report, trace) = simulation::replay(seed, format, mutant);
    say(&trace);
    say(&format!("seed {seed} ({}): {}\n", report.profile, verdict(&report)));
    report.violation.is_none()
}

fn verdict(report: &Report) -> String {
    report.violation.map_or_else(|| "all invariants hold".to_owned(), |violation| violation.to_string())
}

fn hunt(options: &Options, mutant: Mutant) -> bool {
    match search(options, Some(mutant)) {
        Some((seed, report)) => {
            say(&format!("{mutant}: noticed at seed {seed} ({}): {}\n", report.profile, verdict(&report)));
            true
        }
        None => {
            say(&format!("{mutant}: NOT noticed\n"));
            false
        }
    }
}

/// Runs the seeds, and returns the lowest that fails.
fn search(options: &Options, mutant: Option<Mutant>) -> Option<(u64, Report)> {
    let next = AtomicU64::new(0);
    let lowest = AtomicU64::new(u64::MAX);
    let found: Mutex<Option<(u64, Report)>> = Mutex::new(None);
    let total = Mutex::new(Report::default());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                let mut sum = Report::default();
                loop {
                    let seed = options.from + next.fetch_add(1, Ordering::Relaxed);
                    if seed >= options.from + options.seeds || seed > lowest.load(Ordering::Relaxed) {
                        break;
                    }
                    let report = simulation::run(seed, options.format, mutant);
                    sum.add(&report);
                    if report.violation.is_some() && lowest.fetch_min(seed, Ordering::Relaxed) > seed {
                        let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                            *found = Some((seed, report));
                        }
                    }
                }
                total.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(&sum);
            });
        }
        if mutant.is_none() {
            show_progress(options, &next, &lowest, began);
        }
    });
    let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if mutant.is_none() {
        let total = total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        summarise(options, next.load(Ordering::Relaxed).min(options.seeds), &total, began.elapsed(), found.as_ref());
    }
    found
}

fn show_progress(options: &Options, next: &AtomicU64, lowest: &AtomicU64, began: Instant) {
    let terminal = stderr().is_terminal();
    let mut told = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let done = next.load(Ordering::Relaxed).min(options.seeds);
        if done >= options.seeds || lowest.load(Ordering::Relaxed) != u64::MAX {
            break;
        }
        if told.elapsed() >= Duration::from_secs(if terminal { 1 } else { 15 }) {
            told = Instant::now();
            let rate = done as f64 / began.elapsed().as_secs_f64();
            let end = if terminal { '\r' } else { '\n' };
            complain(&format!("{done} of {} seeds, {rate:.0}/s{end}", options.seeds));
        }
    }
}

fn summarise(options: &Options, done: u64, total: &Report, elapsed: Duration, found: Option<&(u64, Report)>) {
    let Report { events, requests, sessions, grants, refusals, takeovers, losses, freezes, vanished, sweeps, .. } =
        total;
    say(&format!(
        "{done} seeds from {} in {:.1} s ({:.0}/s on {} threads): {events} events, {requests} requests,\n\
         {sessions} acquisitions: {grants} granted ({takeovers} rows taken over), {refusals} refused, {losses} leases lost,\n\
         {freezes} freezes, {vanished} environments vanished, {sweeps} rows swept.\n",
        options.from,
        elapsed.as_secs_f64(),
        done as f64 / elapsed.as_secs_f64(),
        options.jobs,
    ));
    match found {
        None => say("All invariants hold.\n"),
        Some((seed, report)) => {
            say(&format!("Seed {seed} ({}) FAILS: {}. `--seed {seed}` tells how.\n", report.profile, verdict(report)))
        }
    }
}

/// To standard output; a closed pipe is not worth a word.
fn say(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}

fn complain(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}
