//! From a handler's end by force to the next holder's grant: two environments, real processes.

use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use super::{
    BenchPrograms, INIT_TIMEOUT, Plan, Row, Section,
    answer::{Answer, work_began},
    floor::Floor,
    ground::{Ground, KEYS, client, machine_ns},
    report::Unit,
    statistics::{Times, millis},
};
use crate::{Error, Invocation, Process, Sandbox};

/// From the process's end to the next holder's grant.
const GOAL_MILLIS: f64 = 20.0;
/// How often the next holder looks, beyond what a look takes: as often as the setting allows.
const EAGER: &str = "1ms";
/// The function's timeout where it is what ends the handler.
const TIMEOUT: Duration = Duration::from_millis(1_500);
/// After how long a handler aborts.
const UNTIL_ABORT: Duration = Duration::from_millis(700);

#[derive(Debug, Clone, Copy)]
enum Ending {
    Kill,
    Abort,
    Timeout,
}

impl Ending {
    const ALL: [(Self, &str, &str); 3] =
        [(Self::Kill, "sigkill", "SIGKILL"), (Self::Abort, "abort", "abort"), (Self::Timeout, "timeout", "timeout")];

    fn holder(self, id: &str) -> Invocation {
        let event = |then: &str, work: Duration| -> Value {
            json!({ "id": id, "tell": true, "then": then, "work_ms": u64::try_from(work.as_millis()).unwrap_or(0) })
        };
        match self {
            Self::Kill => Invocation::from(event("hang", Duration::ZERO)),
            Self::Abort => Invocation::from(event("abort", UNTIL_ABORT)),
            Self::Timeout => Invocation::from(event("hang", Duration::ZERO)).timeout(TIMEOUT),
        }
    }
}

pub(super) async fn measure(plan: &Plan, programs: &BenchPrograms) -> Result<(Floor, Vec<Row>), Error> {
    let ground = Ground::start(plan.latency).await?;
    let client = client(ground.url(false)).await?;
    let floor = Floor::measure(&ground, &client, plan.times(100, 20)).await?;
    let mut dice = Rng::with_seed(plan.seed);
    let mut rows = Vec::new();
    for (eager, suffix) in [(true, ""), (false, ".default_polling")] {
        let mut builder = ground.sandbox(programs).environments(2).timeout(Duration::from_secs(60));
        builder = builder.env("LEASEHOLD_MAX_WAIT", "10s");
        if eager {
            builder = builder.env("LEASEHOLD_POLL_FIRST", EAGER).env("LEASEHOLD_POLL_MAX", EAGER);
        }
        let sandbox = builder.start().await?;
        for (ending, id, name) in Ending::ALL {
            let mut took = Vec::new();
            for number in 0..plan.times(15, 2) {
                let key = format!("{id}-{number}{suffix}");
                took.push(one(&ground, &sandbox, ending, &key, &mut dice).await?);
            }
            let took: Times = took.into_iter().collect();
            let what = if eager { "to the next holder, p50" } else { "with polling as by default, p50" };
            let what = format!("{name}: {what}");
            let note = format!("longest {:.1} ms of {}", millis(took.longest()), took.len());
            let row = Row::new(Section::Endings, format!("{id}{suffix}"), what, millis(took.median()), Unit::Millis);
            rows.push(row.maybe_at_most(eager.then_some(GOAL_MILLIS)).beside(&floor, took.median()).note(note));
        }
        sandbox.shutdown().await;
    }
    Ok((floor, rows))
}

/// From the end of the holder's process, as the sandbox noticed it, to the next handler's beginning.
async fn one(ground: &Ground, sandbox: &Sandbox, ending: Ending, id: &str, dice: &mut Rng) -> Result<Duration, Error> {
    let (first, second) = (sandbox.environment(0), sandbox.environment(1));
    // Initialized again after each end: that is not to be waited for.
    first.start().await?;
    second.start().await?;
    let (log, key) = (sandbox.log(), format!("{KEYS}{id}"));
    let mark = log.len();
    let requests = ground.mark();
    let holder = first.start_invocation(ending.holder(id));
    work_began(sandbox, holder.request_id()).await?;
    let next = second.start_invocation(json!({ "id": id }));
    let looked = async {
        // The holder's one, and what the next has sent so far.
        while ground.since(requests, |of| of == key).all() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let in_vain = || Error::io("measure")(std::io::Error::other(format!("nobody looked at {key}")));
    tokio::time::timeout(INIT_TIMEOUT, looked).await.map_err(|_| in_vain())?;
    if matches!(ending, Ending::Kill) {
        // At any point of the other's waiting.
        tokio::time::sleep(Duration::from_millis(dice.u64(50..600))).await;
        first.kill_runtime().await?;
    }
    let exited = |event: &crate::Event| event.environment == Some(first.id()) && event.is_exit(&Process::Runtime);
    let exited = log.wait_for_after(mark, exited, INIT_TIMEOUT).await?;
    let ended = machine_ns(log, exited.at);
    let answer = Answer::of(&next.outcome().await)?;
    holder.outcome().await;
    second.wait_until_idle().await?;
    Ok(Duration::from_nanos(answer.began_ns.saturating_sub(ended)))
}
