//! The lines of metrics as they come out of real processes.

use leasehold_sandbox::{EventKind, Sandbox};
use serde_json::{Value, json};

use crate::stage::{SOON, function, said, start, without_extension};

const SCHEMA: &str = include_str!("../metrics/emf.schema.json");

/// The lines so far.
pub(crate) fn lines(sandbox: &Sandbox) -> Vec<Value> {
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let events = sandbox.log().events();
    let lines = events.iter().filter_map(|event| match &event.kind {
        EventKind::Output { line, .. } if line.contains("CloudWatchMetrics") => Some(line),
        _ => None,
    });
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(schema.is_valid(line), "{line:#}");
    }
    lines
}

pub(crate) fn sum(lines: &[Value], name: &str) -> u64 {
    lines.iter().filter_map(|line| line[name].as_u64()).sum()
}

/// Waits until the lines tell so many of a kind.
async fn told(sandbox: &Sandbox, name: &str, count: u64) {
    let is_told = |_: &_| sum(&lines(sandbox), name) >= count;
    sandbox.log().wait_for(is_told, SOON).await.unwrap();
}

#[tokio::test]
async fn a_contended_pair_is_told_by_both_extensions_and_the_end_by_their_last_lines() {
    let builder = function("locked").await.environments(2).env("LEASEHOLD_MAX_WAIT", "0s");
    let sandbox = start(builder).await;
    let first = sandbox.environment(0).start_invocation(json!({ "id": "a-secret", "spin_ms": 1500 }));
    said(&sandbox, "work began", first.request_id()).await;
    let second = sandbox.environment(1).start_invocation(json!({ "id": "a-secret" })).outcome().await;
    assert_eq!(second.error_type(), Some("LeaseBusy"));
    told(&sandbox, "Busy", 1).await;
    assert!(first.outcome().await.is_success());
    sandbox.shutdown().await;

    let lines = lines(&sandbox);
    let sums =
        ["Acquired", "Released", "Busy", "Contended", "Attempts", "AttemptsRefused"].map(|name| sum(&lines, name));
    assert_eq!(sums, [1, 1, 1, 1, 2, 1], "{lines:#?}");
    let last = lines.iter().filter(|line| line["Last"] == true && line["Template"].is_string()).count();
    assert_eq!(last, 2, "{lines:#?}");
    let busy = lines.iter().find(|line| line["Busy"] == 1).unwrap();
    let dimensions = ["FunctionName", "Template", "Keeper"].map(|name| busy[name].clone());
    assert_eq!(dimensions, [json!("tested"), json!("jobs:{id}"), json!("extension")]);
    assert!(!lines.iter().any(|line| line.to_string().contains("a-secret")), "never the key: {lines:#?}");
    assert!(lines.iter().any(|line| line["NextHold"].is_array()), "{lines:#?}");
}

#[tokio::test]
async fn a_keeper_in_the_handlers_process_writes_them_only_where_it_is_asked_to() {
    for (asked, writes) in [(None, false), (Some("on"), true)] {
        let builder = without_extension("locked").await.env("LEASEHOLD_KEEPER", "in-process").freeze(false);
        let builder = asked.into_iter().fold(builder, |builder, asked| builder.env("LEASEHOLD_METRICS", asked));
        let sandbox = start(builder).await;
        assert!(sandbox.invoke(json!({ "id": "a" })).await.is_success());
        if writes {
            // What is no news is told at the first look, and then by the minute: who looks early sees the attempt alone.
            told(&sandbox, "Attempts", 1).await;
            assert_eq!(lines(&sandbox)[0]["Keeper"], "in-process");
        } else {
            // Long enough for several looks.
            assert!(sandbox.invoke(json!({ "id": "a", "spin_ms": 2500 })).await.is_success());
            assert_eq!(lines(&sandbox), [Value::Null; 0]);
        }
    }
}

#[tokio::test]
async fn a_setting_that_is_none_is_told_by_the_layer() {
    let sandbox = start(function("locked").await.env("LEASEHOLD_METRICS", "everything")).await;
    let outcome = sandbox.invoke(json!({ "id": "a" })).await;
    assert!(!outcome.is_success());
    for told in
        ["write `off` or `on` or `full`; the usual metrics", "LEASEHOLD_METRICS: \\\"everything\\\" is not known"]
    {
        sandbox.log().wait_for(|event| event.is_output(told), SOON).await.unwrap();
    }
}
