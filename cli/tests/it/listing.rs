//! `list` on small tables; `crowd` has the large one.

use std::process::Stdio;
use std::time::Duration;

use leasehold::protocol::Format;
use leasehold::session::Table;
use leasehold_sandbox::LockTable;
use leasehold_sandbox::faults::{Answer, Fault, FaultProxy};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::stage::{LONG, Ran, Stage, program, run, s};

const LEASE: Duration = Duration::from_secs(30);

fn keys(told: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = told["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn held_locks_are_listed_with_all_that_their_rows_tell() {
    let stage = Stage::new().await;
    let held = stage.take("orders:1", LEASE).await;
    let freed = stage.take("orders:2", LEASE).await;
    stage.release("orders:2", &freed).await;
    stage.take("bills:1", LEASE).await;
    let told = stage.run(&["list", "--json", "--prefix", "orders:"]).ended(0).json();
    let [row] = &told["rows"].as_array().unwrap()[..] else { panic!("{told:#}") };
    for (field, expected) in [
        ("key", "orders:1"),
        ("state", "held"),
        ("function", "ship-orders"),
        ("function_version", "7"),
        ("request_id", "c0ffee-1"),
        ("template", "orders:{detail.orderId}"),
        ("version", &held.version.to_string()),
        ("owner", &held.owner.to_string()),
    ] {
        assert_eq!(row[field], expected, "{row:#}");
    }
    assert_eq!((&row["lease_ms"], &row["acquired_at_ms"]), (&30_000.into(), &1_700_000_000_000_u64.into()));
    assert!(row["age_ms"].as_u64().unwrap() > 1_000_000, "{row:#}");
    assert_eq!((&told["summary"]["looked_at"], &told["summary"]["held"]), (&3.into(), &1.into()));

    let ran = stage.run(&["list", "--consistent"]).ended(0);
    ran.says(&["KEY", "orders:1", "bills:1", "ship-orders", "c0ffee-1", "2 held, of 3 rows looked at"]);
    assert_eq!(keys(&stage.run(&["list", "--all", "--json"]).ended(0).json()), ["bills:1", "orders:1", "orders:2"]);
    for (arguments, count) in [
        (["list", "--json", "--function", "ship-orders"], 2),
        (["list", "--json", "--function", "other"], 0),
        (["list", "--json", "--older-than", "1h"], 2),
        (["list", "--json", "--older-than", "300000h"], 0),
    ] {
        assert_eq!(keys(&stage.run(&arguments).ended(0).json()).len(), count, "{arguments:?}");
    }
}

#[tokio::test]
async fn rows_of_others_and_broken_ones_are_told_and_nothing_of_them_reaches_the_terminal() {
    let stage = Stage::new().await;
    let evil = "evil\u{1b}]0;owned\u{7}\u{202e}key";
    stage.put(&[("key", s(evil)), ("owner", s("me\u{1b}[2J")), ("format", s("x\u{1b}[31m"))]).await;
    stage.put(&[("key", s("broken")), ("format", s("leasehold/1")), ("version", s("1")), ("owner", s("me"))]).await;
    for arguments in [vec!["list"], vec!["list", "--all"], vec!["show", evil], vec!["show", "broken"]] {
        let ran = stage.run(&arguments).ended(1);
        assert!(
            !ran.out.chars().any(|c| c.is_control() && c != '\n') && !ran.out.contains('\u{202e}'),
            "{:?}",
            ran.out
        );
    }
    let ran = stage.run(&["list"]).ended(1);
    ran.says(&["foreign", "malformed", "evil\\u{1b}]0;owned", "2 that can't be used"]);
    // JSON has the key as it is.
    assert_eq!(keys(&stage.run(&["list", "--json"]).ended(1).json()), ["broken", evil]);
}

#[tokio::test]
async fn keys_of_any_characters_and_lengths_are_told_in_columns() {
    let stage = Stage::new().await;
    let long = "k".repeat(2_000);
    for key in ["日本語", " blank ", "e\u{301}\u{fe0f}", &long] {
        stage.take(key, LEASE).await;
    }
    let ran = stage.run(&["list"]).ended(0);
    let function = |key: &str| {
        let line = ran.out.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {}", ran.out));
        UnicodeWidthStr::width(line.split("ship-orders").next().unwrap())
    };
    assert_eq!(function("日本語"), function("\\u{20}blank\\u{20}"), "{}", ran.out);
    assert_eq!(function("日本語"), function("e\u{301}\\u{fe0f}"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() < 500), "{}", ran.out);
    assert!(keys(&stage.run(&["list", "--json"]).ended(0).json()).contains(&long.as_str()), "JSON has it whole");
}

/// A page that never comes, and Ctrl-C: what was printed by then is told as a part.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn interrupted_it_says_that_the_list_is_not_whole() {
    let stage = Stage::new().await;
    for json in [true, false] {
        let proxy = FaultProxy::start(stage.dynamodb.url()).unwrap();
        let held = proxy.inject_where(1, |_| Some(Fault::HoldRequest));
        let list = ["list", "--table", "locks", "--endpoint-url", proxy.url()];
        let mut command = program(&[&list[..], if json { &["--json"] } else { &[] }].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
        held.reached(LONG).await.unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let ran = Ran::of(ended.await.unwrap()).ended(130);
        assert!(ran.err.contains("interrupted: the list is not whole"), "{}", ran.err);
        if json {
            assert_eq!(ran.json()["error"]["status"], 130);
        }
    }
}

#[test]
fn an_output_that_is_full_is_told_and_one_that_nobody_reads_is_not() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = Ran::of(program(&["cost"]).stdout(full).output().unwrap()).ended(2);
    assert!(ran.err.contains("the output can't be written"), "{}", ran.err);
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let ran = Ran::of(program(&["cost", "--json"]).stdout(write).output().unwrap()).ended(0);
    assert_eq!(ran.err, "");
}

#[tokio::test]
async fn a_namespace_and_a_sort_key_say_which_rows_are_meant() {
    let table =
        Table { sort_key: Some(("sk".into(), "lock".into())), key_attribute: "pk".into(), ..Table::new("locks") };
    let stage = Stage::with(LockTable::new("locks").partition_key("pk").sort_key("sk"), table).await;
    stage.take("prod/orders:1", LEASE).await;
    stage.take("test/orders:1", LEASE).await;
    stage.put(&[("pk", s("prod/orders:2")), ("sk", s("data")), ("owner", s("not a lock's"))]).await;
    let options = ["--key-attribute", "pk", "--sort-key", "sk=lock", "--json"];
    let list = |more: &[&str]| stage.run(&[&["list"], &options[..], more].concat()).ended(0).json();
    assert_eq!(keys(&list(&[])), ["prod/orders:1", "test/orders:1"]);
    assert_eq!(keys(&list(&["--namespace", "prod"])), ["prod/orders:1"]);
    let show = [&["show", "orders:1", "--once", "--namespace", "test"], &options[..]].concat();
    assert_eq!(stage.run(&show).ended(0).json()["key"], "test/orders:1");
}

#[tokio::test]
async fn a_page_that_is_throttled_is_asked_for_again() {
    let stage = Stage::new().await;
    stage.take("orders:1", LEASE).await;
    let proxy = FaultProxy::start(stage.dynamodb.url()).unwrap();
    let throttled = Fault::Answer(Answer::throttled("ThrottlingException"));
    let met = proxy.inject_where(2, move |_| Some(throttled.clone()));
    let told = run(&["list", "--json", "--table", "locks", "--endpoint-url", proxy.url()]).ended(0).json();
    assert_eq!((keys(&told), met.met().len()), (vec!["orders:1"], 2));
}

#[tokio::test]
async fn pydynox_rows_are_listed_with_what_they_have() {
    let stage = Stage::speaking(Format::PydynoxV1).await;
    let held = stage.take("sync:1", LEASE).await;
    let told = stage.run(&["list", "--json"]).ended(0).json();
    let row = &told["rows"][0];
    assert_eq!((&row["key"], &row["version"]), (&"sync:1".into(), &held.version.to_string().into()));
    assert!(row["function"].is_null() && row["age_ms"].is_null(), "{row:#}");
}
