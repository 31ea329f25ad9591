//! Explores the protocol's model exhaustively, with `stateright`.
//!
//! `cargo run --release --features simulation --example check_model -- --help`
//!
//! A tool, not an example of use: `.ci/examples` leaves it out, and the test `model` explores the same.

#[path = "../tests/model/checker.rs"]
mod checker;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use checker::{Checked, told};
use leasehold::protocol::Mutant;
use leasehold::protocol::simulation::model::{Bounds, Fact, Model, Scenario, scenarios};
use stateright::report::{ReportData, ReportDiscovery, Reporter};
use stateright::{Checker, HasDiscoveries, Model as _};

const HELP: &str = "\
Explores every course of events within some bounds, over the very machines that the keeper pumps.

Usage: check_model [OPTIONS]

Options:
      --scenario <NAME>   The bounds to explore (see --list); may be given more than once [default: all]
      --contenders <N>    This many places for contenders, each like the scenario's last
      --sessions <N>      This many sessions at each place, one after another
      --faults <N>        This many faults
      --grain <MS>        Let things happen at every multiple of this too, not only when something is due
      --mutant <NAME>     Switch one rule of the protocol off (`simulate --help` lists them); the counterexample is printed
      --mutants           Switch off each rule that the scenario must notice, one after another
      --show <WORDS>      Print a shortest course in which this happens (part of a line under `shown`)
      --depth <N>         No more than N steps from the beginning, breadth first
      --breadth           Breadth first: the shortest counterexample, but every state on the frontier is in memory
      --time <SECONDS>    Stop after this long, and say that not everything was explored
      --threads <N>       Threads [default: all cores]
      --list              Print the scenarios with their bounds
  -h, --help              Print this help

Memory: about 16 bytes a state depth first, twice that while its table grows, so that 24 GB hold about 700 million; about 200
bytes a state breadth first (with --breadth, --depth, --show or a mutant), about 100 million. As they are, the scenarios
have up to 1.2 million states and take seconds each; each fault or contender more makes them 2 to 60 times as many. Run
one scenario at a time then, and give it a --time.

Exit status: 0 when every state was explored and all invariants hold (or each mutant was noticed), 1 when not, 2 when the
options make no sense.
";

#[derive(Default)]
struct Options {
    scenarios: Vec<String>,
    contenders: Option<usize>,
    sessions: Option<u8>,
    faults: Option<u8>,
    grain: Option<u64>,
    mutant: Option<Mutant>,
    mutants: bool,
    show: Option<Fact>,
    depth: Option<usize>,
    breadth: bool,
    time: Option<u64>,
    threads: Option<usize>,
    list: bool,
}

impl Options {
    /// `None` when help is asked for.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            let (name, inline) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let mut value = || inline.clone().or_else(|| args.next()).ok_or_else(|| format!("`{name}` needs a value"));
            match name.as_str() {
                "--scenario" => options.scenarios.push(value()?),
                "--contenders" => options.contenders = Some(number(&name, &value()?)?),
                "--sessions" => options.sessions = Some(number(&name, &value()?)?),
                "--faults" => options.faults = Some(number(&name, &value()?)?),
                "--grain" => options.grain = Some(number(&name, &value()?)?),
                "--mutant" => options.mutant = Some(value()?.parse().map_err(|error| format!("{error}"))?),
                "--mutants" => options.mutants = true,
                "--show" => options.show = Some(fact(&value()?)?),
                "--depth" => options.depth = Some(number(&name, &value()?)?),
                "--breadth" => options.breadth = true,
                "--time" => options.time = Some(number(&name, &value()?)?),
                "--threads" => options.threads = Some(number(&name, &value()?)?),
                "--list" => options.list = true,
                "-h" | "--help" => return Ok(None),
                _ => return Err(format!("there is no option `{name}`")),
            }
        }
        Ok(Some(options))
    }

    /// The scenarios that are asked for, with the bounds that are asked for.
    fn chosen(&self) -> Result<Vec<Scenario>, String> {
        let mut all = scenarios();
        if let Some(unknown) = self.scenarios.iter().find(|name| all.iter().all(|known| known.name != **name)) {
            return Err(format!("there is no scenario `{unknown}` (see --list)"));
        }
        all.retain(|scenario| self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario.name));
        for scenario in &mut all {
            self.widen(&mut scenario.bounds);
        }
        Ok(all)
    }

    fn widen(&self, bounds: &mut Bounds) {
        if let (Some(contenders), Some(last)) = (self.contenders, bounds.places.last().cloned()) {
            bounds.places.resize(contenders, last);
        }
        for place in &mut bounds.places {
            place.sessions = self.sessions.unwrap_or(place.sessions);
        }
        bounds.faults = self.faults.unwrap_or(bounds.faults);
        bounds.grain = self.grain.map(|millis| millis * 1_000).or(bounds.grain);
    }
}

fn number<T: TryFrom<u64>>(name: &str, value: &str) -> Result<T, String> {
    let number: Option<u64> = value.replace('_', "").parse().ok();
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| format!("`{name}` can't be `{value}`"))
}

fn fact(words: &str) -> Result<Fact, String> {
    Fact::ALL
        .iter()
        .copied()
        .find(|fact| fact.words().contains(words))
        .ok_or_else(|| format!("nothing is called `{words}`"))
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            say(HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => return nonsense(&error),
    };
    let chosen = match options.chosen() {
        Ok(chosen) => chosen,
        Err(error) => return nonsense(&error),
    };
    if options.list {
        for scenario in &chosen {
            describe(scenario);
        }
        return ExitCode::SUCCESS;
    }
    let mut fine = true;
    for scenario in &chosen {
        describe(scenario);
        match options.mutant {
            Some(mutant) => fine &= hunt(&options, scenario, mutant),
            None if options.mutants => {
                for mutant in &scenario.notices {
                    fine &= hunt(&options, scenario, *mutant);
                }
            }
            None => fine &= explore(&options, scenario),
        }
    }
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn nonsense(error: &str) -> ExitCode {
    complain(&format!("{error}; see --help\n"));
    ExitCode::from(2)
}

fn describe(scenario: &Scenario) {
    say(&format!("== {}: {}\n   {}\n", scenario.name, scenario.about, scenario.bounds));
}

/// All of it, every invariant, and what it shows.
fn explore(options: &Options, scenario: &Scenario) -> bool {
    let outcome = check(options, scenario, None);
    let seen = |fact: Fact| outcome.found.iter().any(|(name, _)| *name == fact.words());
    for fact in Fact::ALL {
        let mark = if seen(*fact) { "shown    " } else { "not shown" };
        say(&format!("   {mark}  {fact}\n"));
    }
    if let Some(fact) = options.show
        && let Some((_, path)) = outcome.found.iter().find(|(name, _)| *name == fact.words())
    {
        say(&format!("{fact}:\n{path}"));
    }
    outcome.tell();
    outcome.complete && outcome.violation.is_none()
}

/// One rule less: that must be noticed.
fn hunt(options: &Options, scenario: &Scenario, mutant: Mutant) -> bool {
    let outcome = check(options, scenario, Some(mutant));
    let noticed = outcome.violation.is_some();
    let told = match (noticed, outcome.complete) {
        (true, _) => "noticed",
        (false, true) => "NOT noticed",
        (false, false) => "not noticed so far, but not everything was explored: give it more time or depth",
    };
    say(&format!("   without the rule behind {mutant}: {told}\n"));
    if options.mutant.is_some() || !noticed {
        outcome.tell();
    }
    noticed
}

struct Outcome {
    states: usize,
    steps: usize,
    depth: usize,
    took: Duration,
    complete: bool,
    violation: Option<(&'static str, String)>,
    found: Vec<(&'static str, String)>,
}

impl Outcome {
    fn tell(&self) {
        say(&format!(
            "   {} states, {} steps between them, depth {}, {:.1} s ({:.0} states/s)\n",
            self.states,
            self.steps,
            self.depth,
            self.took.as_secs_f64(),
            self.states as f64 / self.took.as_secs_f64(),
        ));
        match &self.violation {
            Some((name, path)) => say(&format!("   BROKEN: {name}\n{path}")),
            None if self.complete => say("   all invariants hold in every state\n"),
            None => say("   all invariants hold in the states that were explored; there are more\n"),
        }
    }
}

fn check(options: &Options, scenario: &Scenario, mutant: Option<Mutant>) -> Outcome {
    let model = || Model::new(scenario.bounds.clone(), mutant);
    let threads = options.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut builder = Checked(model()).checker().threads(threads);
    builder = match options.show {
        Some(fact) => builder.finish_when(HasDiscoveries::AnyOf([fact.words()].into())),
        None => builder.finish_when(HasDiscoveries::AnyFailures),
    };
    if let Some(seconds) = options.time {
        builder = builder.timeout(Duration::from_secs(seconds));
    }
    if let Some(depth) = options.depth {
        builder = builder.target_max_depth(depth);
    }
    let breadth = options.breadth || options.depth.is_some() || options.show.is_some() || mutant.is_some();
    if breadth { run(builder.spawn_bfs(), &model(), options) } else { run(builder.spawn_dfs(), &model(), options) }
}

fn run(checker: impl Checker<Checked> + Send + Sync, model: &Model, options: &Options) -> Outcome {
    let began = Instant::now();
    let checker = checker.join_and_report(&mut Progress { told: Instant::now() });
    let paths: Vec<_> = checker.discoveries().into_iter().map(|(name, path)| (name, told(model, &path))).collect();
    let facts = |name: &str| Fact::ALL.iter().any(|fact| fact.words() == name);
    let (found, broken): (Vec<_>, Vec<_>) = paths.into_iter().partition(|(name, _)| facts(name));
    let out_of_time = options.time.is_some_and(|seconds| began.elapsed() >= Duration::from_secs(seconds));
    Outcome {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: began.elapsed(),
        complete: !out_of_time
            && options.depth.is_none_or(|depth| checker.max_depth() < depth)
            && options.show.is_none(),
        violation: broken.into_iter().next(),
        found,
    }
}

struct Progress {
    told: Instant,
}

impl Reporter<Checked> for Progress {
    fn report_checking(&mut self, data: ReportData) {
        let terminal = stderr().is_terminal();
        if data.done || self.told.elapsed() < Duration::from_secs(if terminal { 1 } else { 15 }) {
            return;
        }
        self.told = Instant::now();
        let end = if terminal { '\r' } else { '\n' };
        complain(&format!(
            "   {} states, depth {}, {:.0} states/s{end}",
            data.unique_states,
            data.max_depth,
            data.unique_states as f64 / data.duration.as_secs_f64().max(0.001),
        ));
    }

    fn report_discoveries(
        &mut self,
        _model: &Checked,
        _found: std::collections::BTreeMap<&'static str, ReportDiscovery<Checked>>,
    ) {
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// To standard output; a closed pipe is not worth a word.
fn say(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}

fn complain(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}
