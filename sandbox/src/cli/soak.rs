//! `soak`: many environments, few keys, every fault there is; prints its progress and its figures.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args, ValueEnum};
use leasehold_sandbox::soak::{self, Broken, Figures, Plan, Progress};

use super::{CommandError, duration};

/// How often a line of progress is printed where standard error is no terminal.
const LINE_EVERY: u64 = 5;
/// How many lines of a key's history are shown.
const SHOWN: usize = 40;
/// How many breaks are told one by one.
const TOLD: usize = 10;

/// What `--json` prints, member by member.
const JSON: &str = "\
--json prints one object. Members are only added, within a major version:
  seed, environments, keys, lease_ms       the settings
  took_ms                                  without the quiet at the end
  invocations                              how many ended, by `ok` or the error's type; `ended`: all of them
  request_faults, process_faults           how many, by kind; `faults`: all of them
  requests                                 to DynamoDB, by their step
  granted, takeovers                       locks granted, and those of them that were taken over
  released                                 rows freed, by why
  lost                                     locks lost, as [why, beside which faults, how many]; `losses`: all of them
  metrics                                  the counts of the keepers' lines, added up by their names in docs/metrics.md;
                                           StillHeld and AttemptsPending as the last lines say
  metric_lines, metric_keepers             how many lines, by how many keepers
  claims                                   times that an invocation was witnessed to hold its key
  longest_wait_ms, longest_invocation_ms   until a grant; until an answer
  breaks                                   each broken promise: invariant, key (or null), what

Files in --logs: metrics.jsonl has the keepers' lines of metrics, as `leaseholdctl report` reads them; witness.jsonl what the
functions were told to believe.";

/// Let many environments contend for a few keys while requests and processes fail, and count broken promises.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Builds the extension and the soak's function first. An independent witness sees for how long each handler was told to hold \
its key: no two may believe it at the same time, tokens must rise, every invocation must have a known outcome, and in the \
end every key must be free to have. Ctrl-C ends it early, with the figures so far. Exits with 0 if nothing was broken, else with 1; then the key's history, the seed and \
the logs are shown. Progress goes to standard error, the table to standard output.

Examples:
  leasehold-sandbox soak
  leasehold-sandbox soak --invocations 100000 --seed 7
  leasehold-sandbox soak --duration 10m --faults 10 --process-faults 3 --json

{JSON}"))]
pub(super) struct Soak {
    /// How many environments contend, each with a function and an extension.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    environments: usize,

    /// How many invocations run at the same time; all environments are busy unless set.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,

    /// How many keys they contend for.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    keys: usize,

    /// How long a lease lasts, at least 500ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = lease)]
    lease: Duration,

    /// Begin no invocation after this time; 60s where no number of invocations is given.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,

    /// Begin so many invocations and no more.
    #[arg(long, value_name = "N")]
    invocations: Option<u64>,

    /// Draw jobs and faults from this number; a fresh one is drawn and printed unless set.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// How many of a hundred requests to DynamoDB meet a fault of their own.
    #[arg(long, value_name = "PERCENT", default_value_t = 4.0, value_parser = percent)]
    faults: f64,

    /// How many of a hundred invocations meet a fault of their processes.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.7, value_parser = percent)]
    process_faults: f64,

    /// How many periods of bad weather come in a minute: black holes, throttling, cut connections.
    #[arg(long, value_name = "N", default_value_t = 6.0, value_parser = not_negative)]
    fronts: f64,

    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,

    /// Keep the logs in this folder; otherwise they are kept only when something was broken.
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,

    /// Break the lock on purpose, to see that the witness notices.
    #[arg(long, value_name = "HOW", hide = true, value_enum)]
    broken: Option<How>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    Unlocked,
    Overstay,
}

impl Soak {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// When the programs can't be built, the sandbox can't be used, or an output can't be written to.
    pub(super) async fn run(self) -> Result<ExitCode, CommandError> {
        let plan = self.plan()?;
        eprint(&format!("Building the extension and the soak's function ...\nSeed {}.\n", plan.seed))?;
        eprint(&format!("Logs in {}.\n", plan.logs.display()))?;
        let programs = soak::build().await.map_err(|failed| CommandError::Usage(failed.to_string()))?;
        let mut shown = Shown { terminal: io::stderr().is_terminal(), plan: plan.clone(), next: 0 };
        let figures = soak::run(&plan, &programs, &mut |progress| shown.show(progress)).await?;
        shown.end()?;
        let text = if self.json { format!("{}\n", figures.to_json()) } else { figures.to_string() };
        io::stdout().lock().write_all(text.as_bytes())?;
        if figures.breaks.is_empty() {
            if self.logs.is_none() {
                std::fs::remove_dir_all(&plan.logs)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        tell_breaks(&plan, &figures)?;
        Ok(ExitCode::from(super::FAILED))
    }

    fn plan(&self) -> Result<Plan, CommandError> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
        let logs = match &self.logs {
            Some(logs) => std::path::absolute(logs)?,
            None => std::env::temp_dir().join(format!("leasehold-soak-{seed}-{}", std::process::id())),
        };
        if logs.exists() {
            return Err(CommandError::Usage(format!("{} exists; the logs need a folder of their own", logs.display())));
        }
        let minute = self.invocations.is_none().then_some(Duration::from_secs(60));
        Ok(Plan {
            environments: self.environments,
            jobs: self.jobs.unwrap_or(self.environments),
            keys: self.keys,
            lease: self.lease,
            duration: self.duration.or(minute),
            invocations: self.invocations,
            seed,
            request_faults: self.faults,
            process_faults: self.process_faults,
            fronts: self.fronts,
            broken: self.broken.map(|how| match how {
                How::Unlocked => Broken::Unlocked,
                How::Overstay => Broken::Overstay,
            }),
            logs,
        })
    }
}

/// What was broken, what happened to the key, and how to see more.
fn tell_breaks(plan: &Plan, figures: &Figures) -> Result<(), CommandError> {
    let mut text = String::from("\nBroken:\n");
    for broken in figures.breaks.iter().take(TOLD) {
        let key = broken.key.as_deref().map_or_else(String::new, |key| format!(" {key}:"));
        text.push_str(&format!("  {}:{key} {}\n", broken.invariant, broken.what));
    }
    if let Some(broken) = figures.breaks.iter().find(|broken| broken.key.is_some())
        && let Some(key) = &broken.key
    {
        let story = soak::story(&plan.logs, key)?;
        // Around the first of them, where it names a request.
        let at = story
            .iter()
            .position(|line| line.split_whitespace().any(|word| word.len() > 30 && broken.what.contains(word)));
        let from = at.unwrap_or(story.len()).saturating_sub(SHOWN / 2);
        text.push_str(&format!("\nWho believed to hold {key}, and when:\n"));
        for line in story.iter().skip(from).take(SHOWN) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text.push_str(&format!("\nSeed {}; logs in {}\n", plan.seed, plan.logs.display()));
    Ok(eprint(&text)?)
}

/// Progress on standard error: one line that changes on a terminal, plain lines elsewhere.
struct Shown {
    terminal: bool,
    plan: Plan,
    /// When the next plain line is due, in seconds.
    next: u64,
}

impl Shown {
    fn show(&mut self, progress: &Progress) {
        let seconds = progress.elapsed.as_secs();
        if !self.terminal && !progress.settling && seconds < self.next {
            return;
        }
        self.next = seconds + LINE_EVERY;
        let Progress { elapsed, invocations, faults, lost, settling } = *progress;
        let rate = invocations as f64 / elapsed.as_secs_f64().max(0.001);
        let left = if settling { "waiting until all is quiet".to_owned() } else { self.left(progress, rate) };
        let line = format!(
            "{seconds:>5} s  {invocations} invocations, {rate:.0}/s, {faults} faults, {lost} locks lost, {left}"
        );
        // Progress that can't be shown does not end a soak.
        let _ = if self.terminal { eprint(&format!("\r\u{1b}[K{line}")) } else { eprint(&format!("{line}\n")) };
    }

    fn left(&self, progress: &Progress, rate: f64) -> String {
        let by_time = self.plan.duration.map(|duration| duration.saturating_sub(progress.elapsed).as_secs_f64());
        let by_count =
            self.plan.invocations.map(|count| count.saturating_sub(progress.invocations) as f64 / rate.max(0.001));
        let left = match (by_time, by_count) {
            (Some(time), Some(count)) => time.min(count),
            (time, count) => time.or(count).unwrap_or(0.0),
        };
        format!("{left:.0} s left")
    }

    fn end(&self) -> io::Result<()> {
        eprint(if self.terminal { "\r\u{1b}[K" } else { "" })
    }
}

fn eprint(text: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(text.as_bytes())?;
    err.flush()
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("{text:?} is no number above 0"))
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("{text:?} is no number from 0 on"))
}

fn percent(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|number| *number <= 100.0).ok_or_else(|| format!("{text:?} is no percentage"))
}

fn lease(text: &str) -> Result<Duration, String> {
    let lease = duration::parse(text)?;
    if lease < Duration::from_millis(500) { Err("a lease lasts at least 500ms".to_owned()) } else { Ok(lease) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_the_figures_is_described() {
        let figures = Figures::default().to_json();
        let described: Vec<_> = JSON.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for member in figures.as_object().into_iter().flat_map(serde_json::Map::keys) {
            assert!(described.contains(&member.as_str()), "{member}");
        }
    }
}
