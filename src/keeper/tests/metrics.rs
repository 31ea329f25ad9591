//! The lines of metrics: when they come, what they say, that they add up, and that CloudWatch can read them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::memory_store::Fate;
use super::support::{SECOND, World, acquire};
use crate::keeper::{Meter, MetricLines, Occasion};
use crate::protocol::{FailureKind, HolderInfo, Request};
use crate::session::{Acquire, FromKeeper, OnCrash, ReleaseReason};

const SCHEMA: &str = include_str!("../../../tests/metrics/emf.schema.json");
const FEW: [&str; 5] = ["Wait", "Busy", "Lost", "CrashReleases", "Errors"];

/// A keeper, and what was written about it.
struct Metered {
    world: World,
    meter: Meter,
    lines: Vec<Value>,
}

impl Metered {
    fn new(which: MetricLines) -> Self {
        let world = World::new();
        let meter = world.keeper.meter(which, Some("orders".to_owned()), "extension");
        Self { world, meter, lines: Vec::new() }
    }

    /// The lines that are due; each is one that CloudWatch can read.
    fn write(&mut self, occasion: Occasion) -> Vec<Value> {
        let mut new = Vec::new();
        self.meter.write(occasion, |line| {
            assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
            new.push(serde_json::from_slice(&line).unwrap());
            true
        });
        new.iter().for_each(check);
        self.lines.extend_from_slice(&new);
        new
    }

    fn sum(&self, member: &str) -> u64 {
        self.lines.iter().filter_map(|line| line[member].as_u64()).sum()
    }

    /// What the last line of each template says.
    fn at_last(&self, member: &str) -> u64 {
        let last: BTreeMap<_, _> = self.lines.iter().map(|line| (line["Template"].as_str(), line)).collect();
        last.values().filter_map(|line| line[member].as_u64()).sum()
    }

    /// The two sums, from the lines alone.
    fn adds_up(&self) {
        let sums = |members: &[&str]| members.iter().map(|member| self.sum(member)).sum::<u64>();
        let ends = sums(&["Acquired", "GrantsUndone", "AttemptsRefused", "AttemptsUnknown"]);
        assert_eq!(self.sum("Attempts"), ends + self.at_last("AttemptsPending"), "{:#?}", self.lines);
        let ends = sums(&["Released", "Lost", "CrashReleases", "LeftToExpire", "Expired"]);
        assert_eq!(self.sum("Acquired"), ends + self.at_last("StillHeld"), "{:#?}", self.lines);
    }
}

/// The format's rules: those of the schema, and those that it can't say.
fn check(line: &Value) {
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let errors: Vec<_> = schema.iter_errors(line).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0], "{line:#}");
    for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
        for name in directive["Dimensions"][0].as_array().unwrap() {
            assert!(line[name.as_str().unwrap()].is_string(), "{name} of {line:#}");
        }
        for metric in directive["Metrics"].as_array().unwrap() {
            let value = &line[metric["Name"].as_str().unwrap()];
            assert!(value.is_number() || value.is_array(), "{metric} of {line:#}");
        }
    }
}

/// The names of a line's metrics.
fn metrics(line: &Value) -> Vec<&str> {
    let directives = line["_aws"]["CloudWatchMetrics"].as_array().unwrap();
    let metrics = directives.iter().flat_map(|directive| directive["Metrics"].as_array().unwrap());
    metrics.map(|metric| metric["Name"].as_str().unwrap()).collect()
}

fn of_template(id: u64, key: &str, template: &str) -> Acquire {
    let holder = HolderInfo { template: template.to_owned(), ..acquire(id, key).holder };
    Acquire { holder, ..acquire(id, key) }
}

#[test]
fn the_schema_tells_bad_lines_from_good_ones() {
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let line = |change: &dyn Fn(&mut Value)| {
        let metric = json!({ "Name": "Wait", "Unit": "Milliseconds" });
        let directive = json!({ "Namespace": "Leasehold", "Dimensions": [["F"]], "Metrics": [metric] });
        let aws = json!({ "Timestamp": 1_800_000_000_000_u64, "CloudWatchMetrics": [directive] });
        let mut line = json!({ "_aws": aws, "F": "orders", "Wait": [1, 2.5] });
        change(&mut line);
        schema.is_valid(&line)
    };
    assert!(line(&|_| {}));
    let directive = "/_aws/CloudWatchMetrics/0";
    let changes: [&dyn Fn(&mut Value); 10] = [
        &|line| drop(line.as_object_mut().unwrap().remove("_aws")),
        &|line| line["_aws"]["Timestamp"] = json!("now"),
        &|line| line["_aws"]["Timestamp"] = json!(1_800_000_000),
        &|line| line["_aws"]["More"] = json!(1),
        &|line| line.pointer_mut(directive).unwrap()["Namespace"] = json!("AWS/Lambda"),
        &|line| line.pointer_mut(directive).unwrap()["Dimensions"] = json!(["F"]),
        &|line| line.pointer_mut(directive).unwrap()["Metrics"][0]["Unit"] = json!("ms"),
        &|line| line["Wait"] = json!(vec![1; 101]),
        &|line| line["Wait"] = json!(["1"]),
        &|line| line["F"] = json!("größe"),
    ];
    for (n, change) in changes.iter().enumerate() {
        assert!(!line(change), "change {n}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_keeper_sums_up_once_a_minute_and_at_its_end() {
    let mut it = Metered::new(MetricLines::On);
    assert_eq!(it.write(Occasion::Pause), [Value::Null; 0], "nothing happened");
    let mut client = it.world.begin().await;
    for n in 0..90 {
        client.acquire(of_template(n, "a", "orders:{id}")).await;
        client.granted(n).await;
        client.release(n, ReleaseReason::Finished, true).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id: n });
        it.write(Occasion::Pause);
        tokio::time::sleep(SECOND).await;
    }
    let lines = it.lines.clone();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert_eq!(lines[0]["Acquired"], 1, "the first is told at once");
    assert_eq!(lines[0]["Released"], 1);
    assert_eq!(metrics(&lines[1]), ["Wait"]);
    assert_eq!(lines[1]["Wait"].as_array().unwrap().len(), 60);
    let summary = ["FunctionName", "Template", "Keeper", "Line"].map(|name| lines[1][name].to_string());
    assert_eq!(summary, [r#""orders""#, r#""orders:{id}""#, r#""extension""#, "2"]);
    assert!(!lines[1].to_string().contains(r#""a""#), "never the key");

    let end = it.write(Occasion::End);
    assert_eq!((end.len(), &end[0]["Last"], &end[0]["Acquired"]), (1, &json!(true), &json!(29)));
    assert_eq!(end[0]["Requests"], 58);
    it.adds_up();
    assert_eq!(it.sum("Acquired"), 90);
}

#[tokio::test(start_paused = true)]
async fn what_is_worth_knowing_is_told_at_the_next_pause() {
    let mut it = Metered::new(MetricLines::On);
    let mut client = it.world.begin().await;
    client.acquire(of_template(1, "a", "t")).await;
    client.granted(1).await;
    it.write(Occasion::Pause);
    let mut second = it.world.begin().await;
    second.acquire(Acquire { wait_ms: 300, ..of_template(1, "a", "t") }).await;
    assert!(matches!(second.receive().await, FromKeeper::Busy { .. }));
    let busy = it.write(Occasion::Pause);
    assert_eq!((&busy[0]["Busy"], &busy[0]["Contended"], &busy[0]["StillHeld"]), (&json!(1), &json!(1), &json!(1)));
    assert!(busy[0]["Wait"][0].as_u64().unwrap() >= 250, "{busy:#?}");
    assert_eq!(metrics(&busy[0]), ["Wait", "Busy"]);
    assert_eq!(it.write(Occasion::Pause), [Value::Null; 0], "once");
    client.vanish().await;
    it.world.all_ended().await;
    let crash = it.write(Occasion::Pause);
    assert_eq!(metrics(&crash[0]), ["CrashReleases"]);
    it.adds_up();
}

#[tokio::test(start_paused = true)]
async fn the_lines_of_a_wild_time_add_up_at_every_moment() {
    let mut it = Metered::new(MetricLines::Full);
    let mut n = 0_u64;
    it.world.store.decide(move |_, request| {
        n += 1;
        match (n % 7, request) {
            (1, Request::Acquire { .. } | Request::TakeOver { .. }) => Fate::UNANSWERED,
            (2, Request::Acquire { .. } | Request::TakeOver { .. }) => Fate::failed(FailureKind::Throttled),
            (3, Request::Acquire { .. } | Request::Release { .. }) => Fate::slow(SECOND),
            (4, Request::Renew { .. }) => Fate::failed(FailureKind::Server),
            _ => Fate::USUAL,
        }
    });
    for round in 0..30_u64 {
        let mut client = it.world.begin().await;
        let on_crash = if round % 3 == 0 { OnCrash::Expire } else { OnCrash::Release };
        let acquire = Acquire { lease_ms: 2_000, on_crash, ..of_template(1, ["a", "b"][round as usize % 2], "t") };
        client.acquire(Acquire { wait_ms: (round % 4) * 1_500, ..acquire }).await;
        it.write(Occasion::Pause);
        it.adds_up();
        let granted = matches!(client.receive().await, FromKeeper::Granted { .. });
        it.write(Occasion::Pause);
        it.adds_up();
        match round % 5 {
            0 if granted => client.release(1, ReleaseReason::Finished, false).await,
            1 if granted => {
                it.world.clock.freeze(5 * SECOND);
                tokio::time::sleep(SECOND).await;
            }
            2 => client.vanish().await,
            _ => tokio::time::sleep(3 * SECOND).await,
        }
        it.write(Occasion::Pause);
        it.adds_up();
    }
    it.world.all_ended().await;
    it.write(Occasion::End);
    it.adds_up();
    assert_eq!((it.at_last("StillHeld"), it.at_last("AttemptsPending")), (0, 0));
    for member in ["Acquired", "Lost", "CrashReleases", "LeftToExpire", "AttemptsUnknown", "Throttles", "Renewals"] {
        assert!(it.sum(member) > 0, "{member} never happened");
    }
    let counts = it.world.keeper.counts();
    let told = ["Acquired", "Attempts", "Requests", "Errors"].map(|member| it.sum(member));
    assert_eq!(told, [counts.granted, counts.attempts, counts.requests, counts.errors]);
    let names: std::collections::BTreeSet<_> = it.lines.iter().flat_map(metrics).collect();
    assert!(FEW.iter().chain(&["Held", "Renewals", "Requests", "Throttles"]).all(|name| names.contains(name)));
}

#[tokio::test(start_paused = true)]
async fn many_waits_are_told_by_several_lines_and_counted_once() {
    let mut it = Metered::new(MetricLines::On);
    let mut client = it.world.begin().await;
    for n in 0..250 {
        client.acquire(of_template(n, &format!("k{n}"), "t")).await;
        client.granted(n).await;
    }
    let mut lines = it.write(Occasion::Pause);
    lines.extend(it.write(Occasion::End));
    let waits: Vec<_> = lines.iter().map(|line| line["Wait"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(waits, [100, 100, 50]);
    assert_eq!((it.sum("Acquired"), it.at_last("StillHeld")), (250, 250));
    it.adds_up();
}

#[tokio::test(start_paused = true)]
async fn what_the_log_does_not_take_is_told_later() {
    let mut it = Metered::new(MetricLines::On);
    let mut client = it.world.begin().await;
    client.acquire(of_template(1, "a", "t")).await;
    client.granted(1).await;
    it.meter.write(Occasion::Pause, |_| false);
    let lines = it.write(Occasion::Pause);
    assert_eq!((&lines[0]["Line"], &lines[0]["Acquired"]), (&json!(1), &json!(1)));
    it.adds_up();
}

#[tokio::test(start_paused = true)]
async fn a_line_is_dated_by_what_it_tells_and_not_by_the_thaw_that_let_it_out() {
    let mut it = Metered::new(MetricLines::On);
    let mut client = it.world.begin().await;
    client.take(1, "a").await;
    it.write(Occasion::Pause);
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    let before = it.world.clock_ms();
    assert_eq!(it.write(Occasion::Pause), [Value::Null; 0], "a minute is not over");
    it.world.clock.freeze(3_600 * SECOND);
    let lines = it.write(Occasion::Pause);
    assert_eq!(lines[0]["Released"], 1);
    assert_eq!(lines[0]["_aws"]["Timestamp"], before);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_runs_out_after_its_deadline_is_no_loss() {
    let mut it = Metered::new(MetricLines::On);
    it.world.store.decide(|_, request| match request {
        Request::Renew { .. } => Fate::failed(FailureKind::Server),
        _ => Fate::USUAL,
    });
    // The handler lives on, as under an emulator that kills nobody.
    let mut client = it.world.begin_until(Some(10 * SECOND)).await;
    client.take(1, "a").await;
    loop {
        if let FromKeeper::Lost { .. } = client.receive().await {
            break;
        }
    }
    it.write(Occasion::End);
    assert_eq!((it.sum("Expired"), it.sum("Lost")), (1, 0));
    it.adds_up();
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_no_lease_has_a_line_of_its_own_and_off_writes_none() {
    let mut it = Metered::new(MetricLines::Full);
    it.meter.held_next(SECOND / 50);
    let lines = it.write(Occasion::Pause);
    assert_eq!((&lines[0]["NextHold"], &lines[0]["Template"]), (&json!([20]), &Value::Null));
    assert_eq!(lines[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["FunctionName", "Keeper"]]));

    let mut off = Metered::new(MetricLines::Off);
    let mut client = off.world.begin().await;
    client.take(1, "a").await;
    off.meter.held_next(SECOND);
    assert_eq!(off.write(Occasion::End), [Value::Null; 0]);
}
