//! One environment's share of the soak: a job after the other, and its mishaps.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::{
    Break, Plan, judge,
    ledger::Mishaps,
    mishap::{Job, Mishap, is_panic},
};
use crate::{Environment, InvocationHandle, Outcome, Sandbox};

/// What all workers share.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) sandbox: Sandbox,
    pub(super) plan: Plan,
    pub(super) mishaps: Arc<Mishaps>,
    end: Option<Instant>,
    begun: AtomicU64,
    stop: AtomicBool,
    next_environment: AtomicUsize,
    jobs: Semaphore,
    results: Mutex<Results>,
}

/// How the invocations ended.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) ended: u64,
    /// `ok`, or the error's type.
    pub(super) by_type: BTreeMap<String, u64>,
    pub(super) process_faults: BTreeMap<&'static str, u64>,
    pub(super) longest: Duration,
    pub(super) breaks: Vec<Break>,
    /// Successes that the witness has not been asked about yet, with the token that was answered.
    pub(super) successes: Vec<(String, Option<u64>)>,
}

impl Field {
    pub(super) fn new(sandbox: Sandbox, plan: Plan, mishaps: Arc<Mishaps>) -> Self {
        Self {
            sandbox,
            end: plan.duration.map(|duration| Instant::now() + duration),
            begun: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            next_environment: AtomicUsize::new(plan.environments),
            jobs: Semaphore::new(plan.jobs),
            results: Mutex::default(),
            plan,
            mishaps,
        }
    }

    pub(super) fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No further invocation begins.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn may_begin(&self) -> bool {
        let over = self.end.is_some_and(|end| Instant::now() >= end) || self.stop.load(Ordering::Relaxed);
        !over && self.begun.fetch_add(1, Ordering::Relaxed) < self.plan.invocations.unwrap_or(u64::MAX)
    }
}

/// Invokes one environment until the soak is over; where it vanishes, the next one takes its place.
pub(super) async fn work(field: Arc<Field>, number: usize) {
    let mut dice = Rng::with_seed(field.plan.seed.wrapping_add(1_000 + number as u64));
    let mut environment = field.sandbox.environment(number);
    let mut before = None;
    while field.may_begin() {
        let Ok(_permit) = field.jobs.acquire().await else { return };
        let job = Job::draw(&mut dice, &field.plan);
        let Some(outcome) = run(&field, &job, &mut environment).await else { return };
        let own = job.mishap;
        settle(&field, own, before, &outcome);
        before = own;
        if own == Some(Mishap::Vanish) && environment.wait_until_idle().await.is_err() {
            environment = field.sandbox.environment(field.next_environment.fetch_add(1, Ordering::Relaxed));
            before = None;
        }
    }
}

/// One invocation with its mishap; nothing where it hangs, which is noted.
async fn run(field: &Field, job: &Job, environment: &mut Environment) -> Option<Outcome> {
    let handle = environment.start_invocation(job.invocation());
    let request = handle.request_id().to_owned();
    if let Some(mishap) = job.mishap {
        field.mishaps.note(&request, mishap);
    }
    let environment = environment.clone();
    let ended = timeout(job.limit(), meet(field, job, &environment, handle)).await;
    if ended.is_err() {
        let what = format!("request {request} in {} had no outcome within {:?}", environment.id(), job.limit());
        field.results().breaks.push(Break::new("nothing hangs", Some(&job.key), what));
        field.stop();
    }
    ended.ok()
}

async fn meet(field: &Field, job: &Job, environment: &Environment, handle: InvocationHandle) -> Outcome {
    let mut outcome = pin!(handle.outcome());
    if job.mishap.is_some() {
        tokio::select! {
            outcome = &mut outcome => return outcome,
            () = sleep(job.after) => {}
        }
        // A process that has just ended by itself can't be struck any more.
        let struck = job.strike(environment).await.is_ok();
        if let Some(mishap) = job.mishap.filter(|mishap| struck && mishap.comes_from_outside()) {
            *field.results().process_faults.entry(mishap.name()).or_default() += 1;
        }
    }
    outcome.await
}

fn settle(field: &Field, own: Option<Mishap>, before: Option<Mishap>, outcome: &Outcome) {
    let mut results = field.results();
    results.ended += 1;
    results.longest = results.longest.max(outcome.took);
    let end = if is_panic(outcome) { "panic of the handler" } else { outcome.error_type().unwrap_or("ok") };
    *results.by_type.entry(end.to_owned()).or_default() += 1;
    if let Some(mishap) = own.filter(|mishap| mishap.was_met(outcome)) {
        *results.process_faults.entry(mishap.name()).or_default() += 1;
    }
    if outcome.is_success() {
        let token = outcome.json().and_then(|response| response["token"].as_u64());
        results.successes.push((outcome.request_id.clone(), token));
    }
    if let Err(broken) = judge::outcome(outcome, [own, before]) {
        results.breaks.push(broken);
        drop(results);
        field.stop();
    }
}
