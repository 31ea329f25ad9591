//! An invocation that nobody is in the way of: real processes, each call beside a pair of the floor's.

use std::time::Duration;

use serde_json::json;

use super::{
    BenchPrograms, Plan, Row, Section,
    answer::Answer,
    floor::Floor,
    ground::{Ground, KEYS, client},
    report::Unit,
    statistics::{Times, micros, millis},
};
use crate::{Error, faults::Step};

/// How many times a handler asks whether it holds its lease.
const CHECKS: usize = 1_000;

pub(super) async fn measure(plan: &Plan, programs: &BenchPrograms) -> Result<(Floor, Vec<Row>), Error> {
    let ground = Ground::start(plan.latency).await?;
    let sandbox = ground.sandbox(programs).start().await?;
    let client = client(ground.url(false)).await?;
    let environment = sandbox.environment(0);
    environment.start().await?;
    let ours = |key: &str| key.starts_with(KEYS);

    // The first one makes the function's own connections, and whatever else is done once.
    Answer::of(&environment.invoke(json!({ "id": "first" })).await)?;
    environment.wait_until_idle().await?;

    let calls = plan.times(200, 20);
    let (mut before, mut after, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let mark = ground.mark();
    let mut floors = Vec::new();
    for number in 0..calls {
        floors.push(super::floor::pair(&client).await?);
        // A row that is new, and one that was freed before.
        let id = if number % 2 == 0 { format!("new-{number}") } else { "again".to_owned() };
        let outcome = environment.invoke(json!({ "id": id })).await;
        let answer = Answer::of(&outcome)?;
        whole.push(outcome.took);
        before.push(answer.before());
        after.push(answer.after());
        // The row is freed behind the response.
        environment.wait_until_idle().await?;
    }
    let counts = ground.since(mark, ours);
    let floor = Floor::of(&floors, &ground.since(mark, |key| key == super::floor::KEY))?;

    let checked = Answer::of(&environment.invoke(json!({ "id": "checked", "checks": plan.times(CHECKS, 100) })).await)?;
    let checks: Times = checked.checks().collect();
    sandbox.shutdown().await;

    let per_call = |count: usize| count as f64 / calls as f64;
    let row = |id: &str, what: &str, value: f64, unit: Unit| Row::new(Section::Invocation, id, what, value, unit);
    let mut rows = vec![
        row("writes", "writes an invocation", per_call(counts.writes()), Unit::Requests)
            .at_most(2.0)
            .deterministic()
            .note(format!("{counts} in {calls} invocations, as the proxy before the emulator counted")),
        row("reads", "reads an invocation", per_call(counts.reads()), Unit::Requests).at_most(0.0).deterministic(),
    ];
    for (step, id) in [(Step::Acquire, "acquire"), (Step::Renew, "renew"), (Step::Release, "release")] {
        rows.push(row(id, &format!("of these, `{step:?}`"), per_call(counts.of(step)), Unit::Requests));
    }
    let added = |id, what, times: Vec<Duration>, goal: f64| {
        let times: Times = times.into_iter().collect();
        let note =
            format!("p50 {:.2} ms, p90 {:.2} requests", millis(times.median()), floor.requests(times.percentile(0.9)));
        row(id, what, floor.requests(times.median()), Unit::RequestTimes)
            .at_most(goal)
            .beside(&floor, times.median())
            .note(note)
    };
    rows.push(added("before", "added before the handler, p50", before, 1.1));
    rows.push(added("after", "added after the handler, p50", after, 0.1));
    let whole: Times = whole.into_iter().collect();
    let waits = "what a caller waits for an answer, p50";
    rows.push(
        row("whole", waits, millis(whole.median()), Unit::Millis)
            .beside(&floor, whole.median())
            .note(format!("p90 {:.1} ms", millis(whole.percentile(0.9)))),
    );
    let note = format!("p99 {:.0} µs; {} calls in one handler", micros(checks.percentile(0.99)), checks.len());
    rows.push(
        row("ensure_held", "`ensure_held`, p50", micros(checks.median()), Unit::Micros).at_most(100.0).note(note),
    );
    Ok((floor, rows))
}
