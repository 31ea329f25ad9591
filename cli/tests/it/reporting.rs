//! `report`: lines in, sums out.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use leasehold_sandbox::soak::{self, Plan};
use serde_json::{Value, json};

use crate::stage::{LONG, program, run, run_with_input};

/// Lines as the extension writes them, each behind what `aws logs tail --format short` puts before it.
fn lines() -> String {
    let line = |at: &str, fields: &str| {
        format!(
            "2026-11-29T10:00:{at} {{\"timestamp\":\"2026-11-29T10:00:{at}.000000Z\",\"level\":\"INFO\",{fields},\
             \"table\":\"locks\",\"target\":\"leasehold::keeper\"}}\n"
        )
    };
    [
        "START RequestId: c0ffee-1 Version: 7\n".to_owned(),
        line("01", r#""message":"acquired","key":"a","request_id":"1","waited_ms":4,"attempts":1,"took_over":false"#),
        line("02", r#""message":"waiting","key":"a","request_id":"2","holder":"f (request 1)""#),
        line("03", r#""message":"released","key":"a","request_id":"1","held_ms":25000,"reason":"finished""#),
        line("03", r#""message":"acquired","key":"a","request_id":"2","waited_ms":900,"attempts":2,"took_over":true"#),
        line("04", r#""message":"busy","key":"a\u001b[31m","request_id":"3","waited_ms":2000,"attempts":1"#),
        line("05", r#""message":"failed","key":"b","request_id":"4","waited_ms":1,"reason":"permission denied: DynamoDB answered""#),
        line("06", r#""message":"released","key":"a","request_id":"2","held_ms":5000,"reason":"crash""#),
        line("07", r#""message":"observed: the invocation would have been refused","error":"the key is busy""#),
        // As `lambda_runtime`'s default subscriber writes the layer's, in the function's own log.
        r#"{"level":"INFO","fields":{"message":"observed: the invocation would still have waited","key":"a"}}"#.to_owned() + "\n",
    ]
    .concat()
}

/// A line of metrics with these members.
fn metrics(line: u64, members: Value) -> String {
    let mut whole = json!({
        "_aws": { "Timestamp": 1_800_000_000_000_u64 + line * 1_000, "CloudWatchMetrics": [] },
        "FunctionName": "ship", "Template": "orders:{id}\u{1b}[31m", "Keeper": "extension", "KeeperId": "k", "Line": line,
    });
    whole.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    format!("2026-11-29T10:00:00 2026/11/29/[$LATEST]ab {whole}\n")
}

#[test]
fn events_are_counted_where_there_are_no_metrics() {
    let told = run_with_input(&["report", "--json"], &lines()).ended(0).json();
    for (field, expected) in [
        ("lines", 10),
        ("events", 9),
        ("malformed", 0),
        ("asked", 4),
        ("acquired", 2),
        ("took_over", 1),
        ("busy", 1),
        ("contended", 2),
        ("released", 1),
        ("crash_releases", 1),
    ] {
        assert_eq!(told[field], expected, "{field}: {told:#}");
    }
    assert_eq!((&told["counted_by"], &told["still_held"]), (&"events".into(), &Value::Null));
    assert_eq!((&told["waits"]["count"], &told["waits"]["max_ms"]), (&2.into(), &2_000.into()));
    assert_eq!(
        (&told["reasons"]["released"]["finished"], &told["reasons"]["released"]["crash"]),
        (&1.into(), &1.into())
    );
    assert_eq!(told["reasons"]["failed"]["permission denied"], 1);
    assert_eq!(told["observe"]["would_have_refused"]["the key is busy"], 1);
    assert_eq!(told["first"], "2026-11-29T10:00:01.000000Z");
    // 4 attempts, 2 tickets, 2 releases; two holds of 15 s by the mean, each renewed once within 30 s leases.
    assert_eq!(told["cost"]["items"][0]["quantity"], 10.0, "{told:#}");
    // Two waits of 1,450 ms by the mean: a look every 105 ms.
    assert_eq!(told["cost"]["items"][1]["quantity"], 28.0, "{told:#}");

    let ran = run_with_input(&["report"], &lines()).ended(0);
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
    ran.says(&[
        "9 events in 10 lines",
        "4 leases",
        "2, 1 of them taken over",
        "2 found their key held, 50.0 %",
        "1 refused, 25.0 %",
        "1: 1 permission denied",
        "1 in good order, 1 by a crash",
        "a\\u{1b}[31m",
        "would have let 1 wait, refused 1, run 0 unlocked, lost 0",
    ]);
}

#[test]
fn metrics_are_counted_and_events_tell_keys_and_reasons_beside_them() {
    let input = [
        metrics(1, json!({ "Acquired": 3, "Contended": 2, "Busy": 1, "Wait": [4, 700, 2_000], "Released": 2, "StillHeld": 1, "Attempts": 5, "AttemptsRefused": 2, "WriteUnits": 5, "ReadUnits": 7.5, "Requests": 14 })),
        lines(),
        metrics(2, json!({ "CrashReleases": 1, "Held": [90], "WriteUnits": 1, "Errors": 2, "Throttles": 1 })),
        "{\"_aws\":{\"Timestamp\":18000\n".to_owned(),
    ]
    .concat();
    let told = run_with_input(&["report", "--json"], &input).ended(0).json();
    for (field, expected) in [
        ("lines", 13),
        ("events", 9),
        ("malformed", 1),
        ("acquired", 3),
        ("contended", 2),
        ("busy", 1),
        ("released", 2),
        ("crash_releases", 1),
        ("still_held", 0),
    ] {
        assert_eq!(told[field], expected, "{field}: {told:#}");
    }
    assert_eq!(told["metrics"]["sums"]["Attempts"], 5);
    assert_eq!(told["metrics"]["off_balance"], json!([]));
    assert_eq!(told["contended_keys"][0]["key"], "a\u{1b}[31m");
    // The capacity as told, and the two that were refused.
    assert_eq!(told["cost"]["items"][0]["quantity"], 8.0, "{told:#}");
    assert_eq!(told["cost"]["items"][1]["quantity"], 7.5, "{told:#}");
    assert_eq!(told["cost"]["items"][2]["quantity"], 2.704, "{told:#}");

    let ran = run_with_input(&["report"], &input).ended(0);
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
    ran.says(&[
        "2 lines of metrics by 1 keeper and 9 events in 13 lines, 2027-01-15T08:00:01Z to 2027-01-15T08:00:02Z",
        "2 in good order, 1 by a crash",
        "14, 2 of them not served, 1 throttled",
        "orders:{id}\\u{1b}[31m of ship  (3 granted, 2 contended, 1 busy, 0 lost",
        "1 line of leasehold's could not be read",
    ]);

    let torn =
        [metrics(1, json!({ "Attempts": 2 })), metrics(4, json!({ "Attempts": 1, "Acquired": 1, "Lost": 1 }))].concat();
    run_with_input(&["report"], &torn)
        .ended(1)
        .says(&["2 lines of metrics are missing", "Attempts 3, but its parts come to 1"]);
}

/// What a soak's own sums say, and what the report says of the same soak's lines.
#[tokio::test]
async fn a_soaks_lines_add_up_to_what_the_soak_says() {
    let directory = tempfile::tempdir().unwrap();
    let plan = Plan {
        environments: 4,
        jobs: 4,
        keys: 2,
        lease: std::time::Duration::from_millis(500),
        duration: Some(LONG * 5),
        invocations: Some(120),
        seed: 5,
        request_faults: 5.0,
        process_faults: 5.0,
        fronts: 10.0,
        broken: None,
        logs: directory.path().join("logs"),
    };
    let figures = soak::run(&plan, &soak::build().await.unwrap(), &mut |_| {}).await.unwrap();
    assert_eq!(figures.breaks, [], "{figures}");
    assert!(figures.metrics.of("Contended") > 0 && figures.faults() > 0, "{figures}");

    let lines = plan.logs.join("metrics.jsonl");
    let (text, json) = (report(&lines, &[]), report(&lines, &["--json"]));
    let told: Value = serde_json::from_str(&json).unwrap();
    let sums: BTreeMap<String, u64> = serde_json::from_value(told["metrics"]["sums"].clone()).unwrap();
    assert_eq!(sums, figures.metrics.sums, "{figures}");
    assert_eq!(
        (&told["metrics"]["lines"], &told["metrics"]["keepers"]),
        (&figures.metrics.lines.into(), &figures.metrics.keepers.into())
    );
    assert_eq!((&told["malformed"], &told["metrics"]["off_balance"]), (&0.into(), &json!([])));
    for (field, name) in [("acquired", "Acquired"), ("busy", "Busy"), ("lost", "Lost"), ("contended", "Contended")] {
        assert_eq!(told[field], figures.metrics.of(name), "{field}: {told:#}");
    }
    // One wait for each that was granted or refused, unless its keeper was killed before it told.
    assert_eq!(told["waits"]["count"], figures.metrics.of("Acquired") + figures.metrics.of("Busy"), "{told:#}");
    let granted = format!(
        "granted        {}, {} of them taken over",
        figures.metrics.of("Acquired"),
        figures.metrics.of("Takeovers")
    );
    assert!(text.contains(&granted), "{granted}\n{text}");
}

/// What is printed for a file, which is a problem where leases were lost.
fn report(lines: &Path, more: &[&str]) -> String {
    let arguments: Vec<_> = ["report"].iter().chain(more).copied().collect();
    let input = Stdio::from(std::fs::File::open(lines).unwrap());
    let output = program(&arguments).stdin(input).output().unwrap();
    assert!(output.status.code() <= Some(1), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whoever can write to a log can write any number into it.
#[test]
fn numbers_that_nothing_adds_up_to_are_reported_as_far_as_numbers_go() {
    let most = u64::MAX;
    let acquired = format!(
        r#"{{"message":"acquired","key":"a","request_id":"1","waited_ms":{most},"attempts":{most},"took_over":false,"target":"leasehold::keeper"}}"#
    );
    let released = acquired.replace("acquired", "released").replace("attempts", "held_ms");
    let events = format!("{acquired}\n{acquired}\n{released}\n{released}\n");
    let counts = json!({ "Acquired": most, "Busy": most, "AttemptsRefused": most, "StillHeld": most, "Wait": [most, most],
                          "WriteUnits": f64::MAX });
    let metrics: String = [0, 1, most].iter().map(|line| metrics_at(*line, counts.clone())).collect();
    for (text, field) in [(&events, "waits"), (&metrics, "waits")] {
        let told = run_with_input(&["report", "--json", "--lease", "500ms"], text).ended(0).json();
        assert_eq!(told[field]["max_ms"], most, "{told:#}");
        let ran = run_with_input(&["report"], text).ended(0);
        assert!(!ran.out.contains("NaN") && !ran.out.contains("inf"), "{}", ran.out);
    }
}

/// A line of metrics of this number, which may be any.
fn metrics_at(line: u64, members: Value) -> String {
    let mut members = members;
    members.as_object_mut().unwrap().insert("Line".to_owned(), line.into());
    metrics(1, members)
}

/// Each message names its key and its times: grouped by them, a report of a busy table would be its log over again.
#[test]
fn what_observe_would_have_refused_is_grouped_by_kind_with_examples() {
    let refused = |kind: &str, n: u64| {
        let kind = if kind.is_empty() { String::new() } else { format!(r#""error_type":"{kind}","#) };
        format!(
            r#"{{"message":"observed: the invocation would have been refused",{kind}"error":"`orders:{n}` is held\u001b[31m","target":"leasehold::layer::watch"}}"#
        ) + "\n"
    };
    let input: String = (0..40).map(|n| refused("LeaseBusy", n) + &refused("", n)).collect();
    let told = run_with_input(&["report", "--json"], &input).ended(0).json();
    assert_eq!(told["observe"]["would_have_refused"], json!({ "LeaseBusy": 40, "`…` is …": 40 }));
    let examples = &told["observe"]["refused_examples"]["LeaseBusy"];
    assert_eq!(examples[0], "`orders:0` is held\u{1b}[31m", "{told:#}");
    assert_eq!(examples.as_array().unwrap().len(), 3, "{told:#}");
    let ran = run_with_input(&["report"], &input).ended(0);
    assert!(!ran.out.contains('\u{1b}') && !ran.out.contains("orders:7"), "{}", ran.out);
    ran.says(&["refused 80", "40  LeaseBusy", "as `orders:0` is held\\u{1b}"]);
}

#[test]
fn a_lost_lease_is_a_problem() {
    let lost =
        r#"{"message":"lost","key":"a","request_id":"1","reason":"the row was deleted","target":"leasehold::keeper"}"#;
    run_with_input(&["report"], &format!("{}{lost}\n", lines())).ended(1).says(&["1: 1 the row was deleted"]);
}

#[test]
fn no_line_of_ours_is_told_as_such() {
    let ran = run_with_input(&["report"], "").ended(2);
    assert!(ran.err.contains("nothing came on standard input"), "{}", ran.err);
    let ran = run_with_input(&["report"], "hello\n{\"message\":\"acquired\"}\n").ended(2);
    assert!(ran.err.contains("set the function's log format to JSON"), "{}", ran.err);
    run(&["report", "--lease", "soon"]).ended(2);
}
