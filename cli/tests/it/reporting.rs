//! `report`: lines in, sums out.

use crate::stage::{run, run_with_input};

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

#[test]
fn lines_add_up() {
    let told = run_with_input(&["report", "--json"], &lines()).ended(0).json();
    for (field, expected) in [
        ("lines", 10),
        ("events", 9),
        ("acquired", 2),
        ("acquired_at_once", 1),
        ("took_over", 1),
        ("attempts", 4),
        ("busy", 1),
    ] {
        assert_eq!(told[field], expected, "{field}: {told:#}");
    }
    assert_eq!((&told["waits"]["count"], &told["waits"]["max_ms"]), (&2.into(), &2_000.into()));
    assert_eq!((&told["released"]["finished"], &told["released"]["crash"]), (&1.into(), &1.into()));
    assert_eq!(told["failed"]["permission denied"], 1);
    assert_eq!(told["observe"]["would_have_refused"]["the key is busy"], 1);
    assert_eq!(told["first"], "2026-11-29T10:00:01.000000Z");
    // 4 attempts, 2 releases; two holds of 15 s by the mean, each renewed once within 30 s leases.
    assert_eq!(told["cost"]["items"][0]["quantity"], 8.0, "{told:#}");
    // Two waits of 1,450 ms by the mean: 50, 100, 200, 400, 500 ms.
    assert_eq!(told["cost"]["items"][1]["quantity"], 10.0, "{told:#}");

    let ran = run_with_input(&["report"], &lines()).ended(0);
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
    ran.says(&[
        "4 leases",
        "2, 1 of them at once, 1 taken over",
        "1 refused, 25.0 %",
        "a\\u{1b}[31m",
        "would have let 1 wait, refused 1, run 0 unlocked, lost 0",
    ]);
}

#[test]
fn a_lost_lease_is_a_problem() {
    let lost =
        r#"{"message":"lost","key":"a","request_id":"1","reason":"the row was deleted","target":"leasehold::keeper"}"#;
    run_with_input(&["report"], &format!("{}{lost}\n", lines())).ended(1).says(&["1 the row was deleted"]);
}

#[test]
fn no_line_of_ours_is_told_as_such() {
    for input in ["", "hello\n{\"message\":\"acquired\"}\n"] {
        let ran = run_with_input(&["report"], input).ended(2);
        assert!(ran.err.contains("set the function's log format to JSON"), "{}", ran.err);
    }
    run(&["report", "--lease", "soon"]).ended(2);
}
