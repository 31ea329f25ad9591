//! Lines that add up, and lines that do not.

use std::time::Duration;

use super::*;
use crate::{Process, Stream};

fn event(line: &str) -> Event {
    let kind = EventKind::Output { process: Process::Runtime, stream: Stream::Stdout, line: line.to_owned() };
    Event { index: 0, at: Duration::ZERO, environment: None, init: 1, kind }
}

fn plan(process_faults: f64) -> Plan {
    Plan {
        environments: 1,
        jobs: 1,
        keys: 1,
        lease: Duration::from_secs(1),
        duration: None,
        invocations: Some(1),
        seed: 1,
        request_faults: 0.0,
        process_faults,
        fronts: 0.0,
        broken: None,
        logs: std::env::temp_dir(),
    }
}

fn breaks_of(lines: &[&str], plan: &Plan, seen: &[(Step, u64)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut metrics = Metrics::new(&folder.path().join("metrics.jsonl")).unwrap();
    for line in lines {
        metrics.read(&event(line)).unwrap();
    }
    let breaks = metrics.check(plan, &seen.iter().copied().collect());
    breaks.into_iter().map(|broken| broken.what).collect()
}

const FIRST: &str = r#"{"_aws":{},"KeeperId":"a","Template":"t","Line":1,"Attempts":3,"Acquired":1,"AttemptsRefused":1,"AttemptsPending":1,"StillHeld":1,"Requests":3}"#;
const SECOND: &str =
    r#"{"_aws":{},"KeeperId":"a","Template":"t","Line":2,"AttemptsUnknown":1,"Released":1,"Requests":1,"Last":true}"#;

#[test]
fn sums_are_taken_over_the_lines_and_what_is_held_from_the_last_one() {
    let seen = [(Step::Acquire, 2), (Step::TakeOver, 1), (Step::Release, 1)];
    assert_eq!(breaks_of(&["no metrics", FIRST, SECOND], &plan(0.0), &seen), [""; 0]);
    // The keeper was killed after its first line.
    let more = [(Step::Acquire, 9), (Step::Read, 4)];
    assert_eq!(breaks_of(&[FIRST], &plan(1.0), &more), [""; 0]);
}

#[test]
fn what_does_not_add_up_is_told() {
    let seen = [(Step::Acquire, 3), (Step::Release, 1)];
    let lost_line = breaks_of(&[SECOND], &plan(1.0), &seen);
    assert_eq!(lost_line.len(), 3, "{lost_line:?}");
    let forgotten_end = SECOND.replace(r#""Released":1,"#, "");
    assert_eq!(breaks_of(&[FIRST, &forgotten_end], &plan(0.0), &seen).len(), 1);
    let less_were_sent = breaks_of(&[FIRST, SECOND], &plan(1.0), &[(Step::Acquire, 1), (Step::Release, 1)]);
    assert_eq!(less_were_sent, ["Attempts 3, but the proxy saw 1", "Requests 4, but the proxy saw 2"]);
    let more_were_sent = breaks_of(&[FIRST, SECOND], &plan(0.0), &[(Step::Acquire, 4), (Step::Release, 1)]);
    assert_eq!(more_were_sent, ["Attempts 3, but the proxy saw 4", "Requests 4, but the proxy saw 5"]);
}
