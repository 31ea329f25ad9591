//! The bench, shortened: what it counts is right; what it times is for people.

use std::process::{Command, Stdio};

use leasehold_sandbox::bench::{self, Plan, Polling, Report, Section};

use crate::*;

fn plan(sections: &[Section]) -> Plan {
    Plan {
        sections: sections.to_vec(),
        seed: 1,
        quick: true,
        latency: Duration::from_millis(5),
        contenders: vec![3],
        polling: Polling::Tickets,
    }
}

fn of(report: &Report, id: &str) -> f64 {
    report.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no {id} in\n{report}")).value
}

#[tokio::test]
async fn every_section_is_measured_and_what_it_counts_is_right() {
    let mut told = Vec::new();
    let programs = bench::build().await.unwrap();
    let report = bench::run(&plan(&Section::ALL), &programs, &mut |what| told.push(what.to_owned())).await.unwrap();
    // Two writes and no read, on rows that are new and on rows that were freed.
    let count = |id: &str| of(&report, id);
    assert_eq!((count("invocation.writes"), count("invocation.reads")), (2.0, 0.0), "{report}");
    assert_eq!((count("invocation.acquire"), count("invocation.release")), (1.0, 1.0), "{report}");
    assert!((1.0..=6.0).contains(&count("renewals.60s.no_deadline")), "{report}");
    assert!(report.broken().is_empty(), "{report}");
    // Whoever wants the key takes it once and frees it once, however often it looks.
    for course in ["at_once", "spread", "killed", "long_holds", "one_keeper"] {
        let requests = count(&format!("contention.3.{course}.requests"));
        assert!(requests >= 4.0 / 3.0, "{course}: {report}");
    }
    // Each section has its row and its word.
    for section in Section::ALL {
        assert!(report.rows.iter().any(|row| row.section == section), "{section}: {report}");
        assert!(told.iter().any(|what| what == section.title()), "{section}: {told:?}");
    }
    assert_eq!(report.to_json()["rows"].as_array().unwrap().len(), report.rows.len());
}

fn command(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-sandbox"));
    let output = command.arg("bench").args(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_can_t_be_measured_is_told_before_anything_is_built() {
    for (arguments, hint) in [
        (["--only", "invocations"], "take some of invocation, own"),
        (["--contenders", "50,0"], "is no number from 1 to"),
        (["--latency", "soon"], "write it like 500ms"),
        (["--polling", "guess"], "possible values: backoff, tickets"),
    ] {
        let (status, errors) = command(&arguments);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains(hint) && !errors.contains("Building"), "{errors}");
    }
}
