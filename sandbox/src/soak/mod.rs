//! The soak: many environments that contend for a few keys while everything goes wrong, and a witness beside them.
//!
//! Real functions and extensions reach an embedded DynamoDB through the fault proxy. What is drawn from the seed: the
//! jobs, the faults of requests, periods of bad weather, and what happens to processes. The witness does not take the
//! product's word for the outcome: each function writes down, around every piece of work, until when it was told to hold
//! its key, by a clock that all processes share; no two of these claims may overlap.
//!
//! | file | what it is for |
//! |---|---|
//! | `plan` | the settings |
//! | `worker`, `mishap` | the jobs, and what happens to the processes that do them |
//! | `weather`, `fronts` | what happens to requests |
//! | `history`, `check` | the witness: claims, and whether they overlap |
//! | `judge`, `rows` | how invocations may end, and what may be left on the table |
//! | `ledger` | what the keepers said |
//! | `figures` | the table in the end |

mod check;
mod figures;
mod fronts;
mod history;
mod judge;
mod ledger;
mod mishap;
mod plan;
mod rows;
mod weather;
mod worker;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

pub use self::{
    check::Break,
    figures::Figures,
    history::Claim,
    plan::{Broken, Plan},
};
use self::{
    history::{History, Tail},
    ledger::{Ledger, Mishaps},
    mishap::Job,
    weather::Weather,
    worker::Field,
};
use crate::{
    Error, Sandbox,
    demo::{Failed, cargo_build},
    faults::Step,
};

const TABLE: &str = "locks";
/// What every key begins with; the function's template puts it there.
const KEY_PREFIX: &str = "soak:";
/// How long an initialization may take: as long as a busy machine needs.
const INIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the witness is asked for breaks; it looks at everything.
const CHECK_EVERY: u32 = 10;
/// How long a lease that was abandoned may block its key, beyond its length: what server time needs, and some more.
const RECOVERY: Duration = Duration::from_secs(8);
/// How many events stay in memory.
const KEPT: usize = 20_000;

/// The programs that a soak runs.
#[derive(Debug, Clone)]
pub struct SoakPrograms {
    /// The extension.
    pub extension: PathBuf,
    /// The soak's function.
    pub function: PathBuf,
}

/// How far a soak is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// How long it runs.
    pub elapsed: Duration,
    /// How many invocations have ended.
    pub invocations: u64,
    /// How many faults were injected.
    pub faults: u64,
    /// How many locks were lost.
    pub lost: u64,
    /// Whether it waits for the quiet at the end.
    pub settling: bool,
}

/// Builds the programs; Cargo's progress goes to standard error.
///
/// # Errors
///
/// When the source tree is gone, or Cargo can't be run or fails.
///
/// # Cancellation
///
/// Dropping the future ends Cargo.
pub async fn build() -> Result<SoakPrograms, Failed> {
    let mut built = cargo_build(&["leasehold-extension", "leasehold-soak-function"]).await?;
    let mut program =
        |name: &str| built.remove(name).ok_or_else(|| Failed::because(format!("Cargo built no program `{name}`")));
    Ok(SoakPrograms { extension: program("leasehold")?, function: program("leasehold-soak-function")? })
}

/// Runs a soak to its end; `progress` is called about once a second.
///
/// # Errors
///
/// When the sandbox or the logs can't be used; a broken promise is no error but one of the figures.
///
/// # Cancellation
///
/// Dropping the future ends every process.
pub async fn run(
    plan: &Plan,
    programs: &SoakPrograms,
    progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Figures, Error> {
    let mut soak = Soak::begin(plan, programs).await?;
    let took = soak.storm(progress).await?;
    let mut breaks = std::mem::take(&mut soak.field.results().breaks);
    // With a promise broken, what is left on the table proves nothing more.
    if breaks.is_empty() && plan.broken.is_none() {
        breaks.extend(soak.quiet(progress).await?);
    }
    soak.field.sandbox.shutdown().await;
    soak.read().await?;
    breaks.extend(soak.broken());
    Ok(soak.figures(took, breaks))
}

/// The claims on a key of a soak that was run, for people; from the logs of its plan.
///
/// # Errors
///
/// When the witness's file can't be read.
pub fn story(plan: &Plan, key: &str) -> Result<Vec<String>, Error> {
    let mut history = History::default();
    let read = Tail::open(&plan.logs.join(WITNESS)).and_then(|mut tail| tail.read_into(&mut history));
    read.map_err(Error::io("read what the witness was told"))?;
    Ok(check::story(history.claims(), key))
}

const WITNESS: &str = "witness.jsonl";

/// A soak under way.
struct Soak {
    field: Arc<Field>,
    weather: Weather,
    ledger: Ledger,
    read: usize,
    tail: Tail,
    history: History,
    began: Instant,
}

impl Soak {
    async fn begin(plan: &Plan, programs: &SoakPrograms) -> Result<Self, Error> {
        std::fs::create_dir_all(&plan.logs).map_err(Error::io(format!("create {}", plan.logs.display())))?;
        let witness = plan.logs.join(WITNESS);
        let tail = Tail::open(&witness).map_err(Error::io(format!("open {}", witness.display())))?;
        let mut builder = Sandbox::builder()
            .function(&programs.function)
            .extension(&programs.extension)
            .name("soak")
            .init_timeout(INIT_TIMEOUT)
            // Some more for those that take the place of others before these have ended.
            .environments(plan.environments * 2)
            .fault_proxy(true)
            .env("SOAK_WITNESS", witness.display().to_string())
            .env("LEASEHOLD_TABLE", TABLE)
            .env("LEASEHOLD_LEASE_DURATION", format!("{}ms", plan.lease.as_millis()))
            .env("LEASEHOLD_POLL_FIRST", "10ms")
            .env("LEASEHOLD_POLL_MAX", "100ms")
            .env("LEASEHOLD_LOG", "info")
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .env("AWS_LAMBDA_LOG_LEVEL", "ERROR");
        builder = match plan.broken {
            None => builder,
            Some(Broken::Unlocked) => builder.env("LEASEHOLD_MODE", "off"),
            Some(Broken::Overstay) => builder.env("SOAK_OVERSTAY", "1"),
        };
        let sandbox = builder.start().await?;
        sandbox.tables().create_lock_table(TABLE).await?;
        let weather = Weather::new(plan);
        let mishaps = Arc::new(Mishaps::default());
        let log = plan.logs.join("sandbox.log");
        let ledger = Ledger::new(&log, weather.clone(), Arc::clone(&mishaps), plan.lease);
        let ledger = ledger.map_err(Error::io(format!("create {}", log.display())))?;
        let field = Arc::new(Field::new(sandbox, plan.clone(), mishaps));
        Ok(Self { field, weather, ledger, read: 0, tail, history: History::default(), began: Instant::now() })
    }

    /// The invocations, until the plan ends them or something is broken.
    async fn storm(&mut self, progress: &mut (dyn FnMut(&Progress) + Send)) -> Result<Duration, Error> {
        let field = Arc::clone(&self.field);
        let Some(proxy) = field.sandbox.faults() else { return Ok(Duration::ZERO) };
        self.weather.begin(proxy);
        let mut workers = JoinSet::new();
        for number in 0..field.plan.environments {
            workers.spawn(worker::work(Arc::clone(&field), number));
        }
        let weather = self.weather.clone();
        let mut fronts = std::pin::pin!(fronts::blow(&field.plan, &weather, proxy));
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut since_check = 0;
        loop {
            tokio::select! {
                ended = workers.join_next() => match ended {
                    None => break,
                    Some(Ok(())) => {}
                    Some(Err(error)) => return Err(Error::io("run a worker")(std::io::Error::other(error))),
                },
                () = &mut fronts => {}
                _ = ticks.tick() => {
                    self.read().await?;
                    progress(&self.progress(false));
                    since_check += 1;
                    if since_check >= CHECK_EVERY {
                        since_check = 0;
                        let breaks = check::exclusion(self.history.claims());
                        if !breaks.is_empty() {
                            field.stop();
                        }
                    }
                }
            }
        }
        self.weather.clear_up();
        Ok(self.began.elapsed())
    }

    /// Whatever was abandoned can be had again, once everything has been quiet for a lease and some seconds.
    async fn quiet(&mut self, progress: &mut (dyn FnMut(&Progress) + Send)) -> Result<Vec<Break>, Error> {
        let field = Arc::clone(&self.field);
        progress(&self.progress(true));
        sleep(field.plan.lease + RECOVERY).await;
        let mut breaks = Vec::new();
        for key in (0..field.plan.keys).map(key_of) {
            let job = Job::plain(key.clone());
            let environment = field.sandbox.environments().into_iter().next();
            let environment = environment.unwrap_or_else(|| field.sandbox.environment(0));
            let handle = environment.start_invocation(job.invocation());
            let problem = match timeout(job.limit(), handle.outcome()).await {
                Ok(outcome) => outcome.error().map(ToString::to_string),
                Err(_) => Some("it had no outcome".to_owned()),
            };
            if let Some(problem) = problem {
                breaks.push(Break::new("every key can be had again", Some(&key), problem));
            }
            // Freed behind the response.
            environment.wait_until_idle().await?;
        }
        let highest = self.highest_tokens().await?;
        breaks.extend(rows::check(&field.sandbox.tables().rows(TABLE).await?, &highest));
        Ok(breaks)
    }

    async fn highest_tokens(&mut self) -> Result<BTreeMap<String, u64>, Error> {
        self.read().await?;
        let mut highest = BTreeMap::new();
        for claim in self.history.claims() {
            let token = claim.token.unwrap_or(0);
            let known = highest.entry(claim.key.clone()).or_insert(token);
            *known = token.max(*known);
        }
        Ok(highest)
    }

    /// Takes what was written since to the log and to the witness.
    async fn read(&mut self) -> Result<(), Error> {
        // What was answered before the witness is read was told to it before.
        let successes = std::mem::take(&mut self.field.results().successes);
        let log = self.field.sandbox.log();
        while self.read < log.len() {
            let event = log.next_after(self.read).await;
            self.read = event.index + 1;
            self.ledger.read(&event).map_err(Error::io("write the log"))?;
        }
        self.ledger.flush().map_err(Error::io("write the log"))?;
        log.forget_before(self.read.saturating_sub(KEPT));
        self.tail.read_into(&mut self.history).map_err(Error::io("read what the witness was told"))?;
        for (request, token) in successes {
            if let Err(broken) = judge::success(&request, token, self.history.of_request(&request)) {
                self.field.results().breaks.push(broken);
                self.field.stop();
            }
        }
        Ok(())
    }

    /// What the witness and the last invocations tell.
    fn broken(&self) -> Vec<Break> {
        let mut breaks = std::mem::take(&mut self.field.results().breaks);
        breaks.extend(check::exclusion(self.history.claims()));
        let unreadable = self.history.unreadable().iter();
        breaks.extend(unreadable.map(|line| Break::new("the witness can be read", None, line.clone())));
        breaks
    }

    fn progress(&self, settling: bool) -> Progress {
        let results = self.field.results();
        let of_processes: u64 = results.process_faults.values().sum();
        let of_requests: u64 = self.weather.faults().values().sum();
        Progress {
            elapsed: self.began.elapsed(),
            invocations: results.ended,
            faults: of_processes + of_requests,
            lost: self.ledger.deeds().lost.values().sum(),
            settling,
        }
    }

    fn figures(&self, took: Duration, breaks: Vec<Break>) -> Figures {
        let results = self.field.results();
        let (plan, deeds) = (&self.field.plan, self.ledger.deeds());
        let named = |map: &BTreeMap<&'static str, u64>| {
            map.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<BTreeMap<_, _>>()
        };
        let by_type = results.by_type.iter();
        let invocations = by_type.map(|(name, count)| (if name.is_empty() { "ok" } else { name }.to_owned(), *count));
        let mut lost: Vec<_> =
            deeds.lost.iter().map(|((why, beside), count)| (why.clone(), beside.clone(), *count)).collect();
        lost.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
        let mut released = deeds.released.clone();
        if deeds.not_released > 0 {
            released.insert("not freed: left to its end".to_owned(), deeds.not_released);
        }
        Figures {
            seed: plan.seed,
            environments: plan.environments,
            keys: plan.keys,
            lease: plan.lease,
            took,
            invocations: invocations.collect(),
            request_faults: named(&self.weather.faults()),
            process_faults: named(&results.process_faults),
            requests: self.weather.requests().into_iter().map(|(step, n)| (step_name(step).to_owned(), n)).collect(),
            granted: deeds.granted,
            takeovers: deeds.takeovers,
            released,
            lost,
            longest_wait: deeds.longest_wait,
            longest_invocation: results.longest,
            claims: self.history.claims().len() as u64,
            breaks,
        }
    }
}

fn key_of(number: usize) -> String {
    format!("{KEY_PREFIX}k{number}")
}

const fn step_name(step: Step) -> &'static str {
    match step {
        Step::Acquire => "acquire",
        Step::TakeOver => "take over",
        Step::Renew => "renew",
        Step::Release => "release",
        Step::Read => "read",
        Step::Other => "other",
    }
}
