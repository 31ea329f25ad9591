//! `bench`: what leasehold costs beside a floor of bare requests; prints its progress and a table.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use leasehold_sandbox::bench::{self, Plan, Polling, Report, Section};

use super::{CommandError, duration};

/// As many contenders as the quick run has.
const FEW: usize = 10;
/// As many as this machine's descriptors surely serve, six a contender.
const MOST_CONTENDERS: usize = 2_000;

/// Measure what leasehold costs: requests, time, memory, contention.
#[derive(Debug, Args)]
#[command(after_help = "\
Builds the extension and the bench's function first, as this program was built: run it with --release. Everything is \
measured beside a floor, one bare conditional UpdateItem to take a row and one to free it, through the same proxy, which \
adds 5 ms to every request. Takes about four minutes. Progress goes to standard error, the table to standard output. \
Exits with 0 also where a goal is missed, for machines are busy at times; with --check, with 1 where one is that no \
machine's slowness excuses: the counts of requests without contention.

Sections: invocation, own, endings, vanished, renewals, leases, contention, sandbox

Examples:
  cargo run --release -p leasehold-sandbox -- bench
  cargo run --release -p leasehold-sandbox -- bench --only contention --contenders 2,10,50,200,500
  cargo run --release -p leasehold-sandbox -- bench --only invocation,renewals --json --check")]
pub(super) struct Bench {
    /// Measure these sections only.
    #[arg(long, value_name = "SECTIONS", value_delimiter = ',')]
    only: Vec<Section>,

    /// Few repetitions and short leases: to see that it works, not to be believed.
    #[arg(long)]
    quick: bool,

    /// How many contend for one key, a run each; 50 unless set, 10 with --quick.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = contenders)]
    contenders: Vec<usize>,

    /// How contenders wait for a key that is held.
    #[arg(long, value_name = "HOW", value_enum, default_value = "tickets")]
    polling: How,

    /// How much later each request reaches DynamoDB.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = duration::parse)]
    latency: Duration,

    /// Draw starts, victims and jitter from this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print the figures as JSON; docs/bench.md describes it.
    #[arg(long)]
    json: bool,

    /// Exit with 1 if a goal is missed that does not depend on the machine.
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    /// A delay that doubles, with jitter.
    Backoff,
    /// By a ticket's place in the queue.
    Tickets,
}

impl Bench {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// When the programs can't be built, something can't be measured, or an output can't be written to.
    pub(super) async fn run(self) -> Result<ExitCode, CommandError> {
        let plan = self.plan();
        if cfg!(debug_assertions) && !self.quick {
            eprint("This is a debug build; what it measures says little. Run it with `cargo run --release`.\n")?;
        }
        eprint("Building the extension and the bench's function ...\n")?;
        let programs = bench::build().await.map_err(|failed| CommandError::Usage(failed.to_string()))?;
        let began = Instant::now();
        let mut tell = |what: &str| {
            // Progress that can't be shown does not end a bench.
            let _ = eprint(&format!("{:>5} s  {what} ...\n", began.elapsed().as_secs()));
        };
        let report = bench::run(&plan, &programs, &mut tell).await?;
        let text = if self.json { format!("{:#}\n", report.to_json()) } else { report.to_string() };
        io::stdout().lock().write_all(text.as_bytes())?;
        self.verdict(&report)
    }

    fn verdict(&self, report: &Report) -> Result<ExitCode, CommandError> {
        let broken = report.broken();
        if !self.check || broken.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let names: Vec<_> = broken.iter().map(|row| row.id.as_str()).collect();
        eprint(&format!("Missed, on any machine: {}. See their notes in the table.\n", names.join(", ")))?;
        Ok(ExitCode::from(super::FAILED))
    }

    fn plan(&self) -> Plan {
        let or = |given: &[usize], usual: usize| if given.is_empty() { vec![usual] } else { given.to_vec() };
        Plan {
            sections: if self.only.is_empty() { Section::ALL.to_vec() } else { self.only.clone() },
            seed: self.seed,
            quick: self.quick,
            latency: self.latency,
            contenders: or(&self.contenders, if self.quick { FEW } else { 50 }),
            polling: match self.polling {
                How::Backoff => Polling::Backoff,
                How::Tickets => Polling::Tickets,
            },
        }
    }
}

fn contenders(text: &str) -> Result<usize, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=MOST_CONTENDERS).contains(number));
    number.ok_or_else(|| format!("{text:?} is no number from 1 to {MOST_CONTENDERS}"))
}

fn eprint(text: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(text.as_bytes())?;
    err.flush()
}
