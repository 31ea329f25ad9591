//! `watch`: as lines, and on a terminal.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::pty::Pty;
use crate::stage::{Stage, program};

const LEASE: Duration = Duration::from_secs(30);

/// The program's events as they come.
struct Events {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Events {
    fn start(stage: &Stage, more: &[&str]) -> Self {
        let mut command = program(&stage.arguments(&[&["watch", "--every", "50ms", "--json"], more].concat()));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn expect(&mut self, event: &str, key: &str) {
        let told = self.next();
        assert_eq!((&told["event"], &told["key"]), (&event.into(), &key.into()), "{told}");
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // It has ended, or the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_differs_between_two_looks_is_a_line_each() {
    let stage = Stage::new().await;
    stage.take("before", LEASE).await;
    let mut events = Events::start(&stage, &[]);
    let begin = events.next();
    assert_eq!((&begin["event"], &begin["held"]), (&"begin".into(), &1.into()));
    let held = stage.take("orders:1", LEASE).await;
    events.expect("acquired", "orders:1");
    stage.take_over("orders:1", &held, LEASE).await;
    events.expect("handed_on", "orders:1");
    let short = stage.take("orders:2", Duration::from_millis(500)).await;
    events.expect("acquired", "orders:2");
    events.expect("overdue", "orders:2");
    let next = stage.take_over("orders:2", &short, LEASE).await;
    events.expect("taken_over", "orders:2");
    stage.release("orders:2", &next).await;
    events.expect("released", "orders:2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_waits_and_who_lost_comes_from_a_log_that_grows() {
    let stage = Stage::new().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    std::fs::write(&path, "not JSON\n").unwrap();
    let mut log = OpenOptions::new().append(true).open(&path).unwrap();
    let mut events = Events::start(&stage, &["--log", path.to_str().unwrap()]);
    events.next();
    let line = |message: &str| {
        format!(r#"{{"message":"{message}","key":"k","request_id":"r","reason":"why","target":"leasehold::keeper"}}"#)
    };
    // A line counts once its end is there.
    let (waiting, lost) = (line("waiting"), line("lost"));
    let (first, rest) = waiting.split_at(20);
    log.write_all(first.as_bytes()).unwrap();
    stage.take("orders:1", LEASE).await;
    events.expect("acquired", "orders:1");
    writeln!(log, "{rest}\n{lost}").unwrap();
    events.expect("waiting", "k");
    events.expect("lost", "k");
}

#[tokio::test]
async fn as_lines_for_people_it_ends_after_its_looks() {
    let stage = Stage::new().await;
    stage.take("orders:1", LEASE).await;
    stage.run(&["watch", "--looks", "2", "--every", "10ms"]).ended(0).says(&["1 held"]);
    // A scan of the whole table after another without a pause, or none at all, is a slip.
    stage.run(&["watch", "--every", "0s"]).ended(2);
    stage.run(&["watch", "--looks", "0"]).ended(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_a_terminal_it_is_a_view_that_q_ends() {
    let stage = Stage::new().await;
    stage.take("orders:1", LEASE).await;
    let mut pty = Pty::open();
    let mut child = pty.start(program(&stage.arguments(&["watch", "--every", "50ms"])));
    // Single words: spaces are not sent where the screen is empty already.
    pty.shows("looks");
    pty.shows("orders:1");
    stage.take("evil\u{1b}[31m", LEASE).await;
    let screen = pty.shows("evil\\u{1b}").to_owned();
    assert!(screen.contains("ship-orders"), "{screen:?}");
    assert!(!screen.contains("evil\u{1b}"), "{screen:?}");
    pty.press("q");
    // The terminal is as it was: the other screen is left.
    pty.shows("\u{1b}[?1049l");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
