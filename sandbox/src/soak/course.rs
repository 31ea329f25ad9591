//! One soak: the sandbox, its storm, the quiet at the end, and what came of it.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{
    Break, Broken, Figures, INIT_TIMEOUT, METRICS, Plan, Progress, SoakPrograms, WITNESS, check, fronts,
    history::{History, Tail},
    judge, key_of,
    ledger::{Ledger, Mishaps},
    metrics::Metrics,
    mishap::Job,
    rows,
    weather::Weather,
    worker::{self, Field},
};
use crate::{Error, Sandbox, faults::Step};

const TABLE: &str = "locks";
/// How often the witness is asked for breaks; it looks at everything.
const CHECK_EVERY: u32 = 10;
/// How long a lease that was abandoned may block its key, beyond its length: what server time needs, and some more.
const RECOVERY: Duration = Duration::from_secs(10);
/// How many events stay in memory.
const KEPT: usize = 20_000;

/// A soak under way.
pub(super) struct Soak {
    pub(super) field: Arc<Field>,
    weather: Weather,
    ledger: Ledger,
    metrics: Metrics,
    read: usize,
    tail: Tail,
    history: History,
    began: Instant,
}

impl Soak {
    pub(super) async fn begin(plan: &Plan, programs: &SoakPrograms) -> Result<Self, Error> {
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
            .env("LEASEHOLD_LOG", "info")
            .env("LEASEHOLD_METRICS", "full")
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
        let path = plan.logs.join(METRICS);
        let metrics = Metrics::new(&path).map_err(Error::io(format!("create {}", path.display())))?;
        let field = Arc::new(Field::new(sandbox, plan.clone(), mishaps));
        Ok(Self { field, weather, ledger, metrics, read: 0, tail, history: History::default(), began: Instant::now() })
    }

    /// The invocations, until the plan ends them or something is broken.
    pub(super) async fn storm(&mut self, progress: &mut (dyn FnMut(&Progress) + Send)) -> Result<Duration, Error> {
        let field = Arc::clone(&self.field);
        let Some(proxy) = field.sandbox.faults() else { return Ok(Duration::ZERO) };
        self.weather.begin(proxy, field.sandbox.log());
        let mut workers = JoinSet::new();
        for number in 0..field.plan.environments {
            workers.spawn(worker::work(Arc::clone(&field), number));
        }
        let weather = self.weather.clone();
        let mut fronts = std::pin::pin!(fronts::blow(&field.plan, &weather, proxy));
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut since_check = 0;
        let mut interrupted = false;
        loop {
            tokio::select! {
                signal = tokio::signal::ctrl_c() => {
                    let again = std::mem::replace(&mut interrupted, true);
                    if again || signal.is_err() {
                        return Err(Error::io("go on with the soak")(std::io::ErrorKind::Interrupted.into()));
                    }
                    // What has begun comes to its end, and what was seen by then is told.
                    field.stop();
                }
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
    pub(super) async fn quiet(&mut self, progress: &mut (dyn FnMut(&Progress) + Send)) -> Result<Vec<Break>, Error> {
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
    pub(super) async fn read(&mut self) -> Result<(), Error> {
        // What was answered before the witness is read was told to it before.
        let successes = std::mem::take(&mut self.field.results().successes);
        let log = self.field.sandbox.log();
        while self.read < log.len() {
            let event = log.next_after(self.read).await;
            self.read = event.index + 1;
            self.ledger.read(&event).map_err(Error::io("write the log"))?;
            self.metrics.read(&event).map_err(Error::io("write the metrics"))?;
        }
        self.metrics.flush().map_err(Error::io("write the metrics"))?;
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
    pub(super) fn broken(&self) -> Vec<Break> {
        let mut breaks = std::mem::take(&mut self.field.results().breaks);
        let found = check::exclusion(self.history.claims());
        breaks.splice(0..0, found);
        let unreadable = self.history.unreadable().iter();
        breaks.extend(unreadable.map(|line| Break::new("the witness can be read", None, line.clone())));
        breaks
    }

    /// What the keepers' metrics tell otherwise than each other, or than the proxy.
    pub(super) fn miscounted(&self) -> Vec<Break> {
        self.metrics.check(&self.field.plan, &self.weather.requests_for_locks())
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

    pub(super) fn figures(&self, took: Duration, breaks: Vec<Break>) -> Figures {
        let results = self.field.results();
        let (plan, deeds) = (&self.field.plan, self.ledger.deeds());
        let named = |map: &BTreeMap<&'static str, u64>| {
            map.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<BTreeMap<_, _>>()
        };
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
            invocations: results.by_type.clone(),
            request_faults: named(&self.weather.faults()),
            process_faults: named(&results.process_faults),
            requests: self.weather.requests().into_iter().map(|(step, n)| (step_name(step).to_owned(), n)).collect(),
            granted: deeds.granted,
            takeovers: deeds.takeovers,
            released,
            lost,
            metrics: self.metrics.sums(),
            longest_wait: deeds.longest_wait,
            longest_invocation: results.longest,
            claims: self.history.claims().len() as u64,
            breaks,
        }
    }
}

const fn step_name(step: Step) -> &'static str {
    match step {
        Step::Acquire => "acquire",
        Step::TakeOver => "take over",
        Step::Renew => "renew",
        Step::Release => "release",
        Step::Park => "park",
        Step::Ticket => "ticket",
        Step::Read => "read",
        Step::ReadState => "read state",
        Step::SaveState => "save state",
        Step::ReleaseWithState => "release with state",
        Step::Other => "other",
    }
}
