//! What the command line puts into tables before it invokes, and what it says of an environment that could not start.

use std::process::{Command, Output, Stdio};

use leasehold_sandbox::LockTable;

use crate::*;

fn invoke(arguments: &[&str]) -> Output {
    let function = double();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-sandbox"));
    command.args(["invoke", "--no-extension", "--quiet", "--function"]).arg(function).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

fn file(directory: &tempfile::TempDir, name: &str, content: &str) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The rows that `--rows` printed.
fn rows(output: &Output) -> Vec<Value> {
    let errors = text(&output.stderr);
    errors.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("row: ")?).ok()).collect()
}

#[test]
fn keys_are_held_and_tables_filled_before_the_first_invocation() {
    let directory = tempfile::tempdir().unwrap();
    let event = file(&directory, "event.json", "{}");
    let stock = [r#"[{"key": "tea", "quantity": 12, "tags": ["green", null, true]},"#, r#"{"key": "pot"}]"#].concat();
    let stock = format!("stock={}", file(&directory, "stock.json", &stock));
    let output = invoke(&["--event", &event, "--held", "orders:1", "--items", &stock, "--rows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = rows(&output);
    let of = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{rows:?}"));
    let held = of("orders:1");
    assert_eq!((&held["format"], &held["lease_ms"]), (&json!("leasehold/1"), &json!(600_000)));
    assert_eq!(held["holder"]["function"], "somebody-else");
    assert!(held["owner"].is_string() && held["version"].is_u64(), "{held}");
    assert_eq!(*of("tea"), json!({ "key": "tea", "quantity": 12, "tags": ["green", null, true] }));
    assert_eq!(rows.len(), 3);
}

#[test]
fn items_that_cannot_be_put_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let event = file(&directory, "event.json", "{}");
    let keyless = format!("stock={}", file(&directory, "keyless.json", r#"[{"sku": "tea"}]"#));
    let broken = format!("stock={}", file(&directory, "broken.json", "{}"));
    for (items, advice) in [
        (keyless.as_str(), "need a text named `key` each"),
        (broken.as_str(), "are no JSON array of objects"),
        ("stock=/no/such/file", "could not be read"),
        ("stock", "is no TABLE=FILE"),
    ] {
        let output = invoke(&["--event", &event, "--items", items]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(advice), "{errors}");
    }
}

#[test]
fn an_environment_that_cannot_start_says_why_even_when_quiet() {
    let directory = tempfile::tempdir().unwrap();
    let event = file(&directory, "event.json", "{}");
    let output = invoke(&["--event", &event, "--env", "DOUBLE_INIT=exit"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    for part in ["runtime ended: exit status 7", "init failed: Runtime.ExitError"] {
        assert!(errors.contains(part), "{part} is missing in\n{errors}");
    }
    assert!(!errors.contains("init starts"), "no timeline was asked for\n{errors}");
    // A handler's own failure is told by its response alone.
    let failing = file(&directory, "failing.json", &steps(&["fail"]).to_string());
    let output = invoke(&["--event", &failing]);
    assert_eq!(text(&output.stderr), "1 of 1 invocations failed\n");
}

#[test]
fn a_function_or_an_example_has_to_be_named() {
    let directory = tempfile::tempdir().unwrap();
    let event = file(&directory, "event.json", "{}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-sandbox"));
    let output = command.args(["invoke", "--event", &event]).stdin(Stdio::null()).output().unwrap();
    let errors = text(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("--function"), "{errors}");
    let output = invoke(&["--event", &event, "--example", "direct"]);
    assert!(text(&output.stderr).contains("cannot be used with"), "{}", text(&output.stderr));
}

#[test]
fn nothing_is_put_into_a_dynamodb_of_the_users_own() {
    let directory = tempfile::tempdir().unwrap();
    let event = file(&directory, "event.json", "{}");
    for put in [["--held", "orders:1"], ["--items", "stock=stock.json"]] {
        let output = invoke(&["--event", &event, "--endpoint-url", "http://127.0.0.1:9", put[0], put[1]]);
        let errors = text(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains("cannot be used with"), "{errors}");
    }
}

fn sandbox(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-sandbox"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The status is 2, this is said, and none of it in the SDK's own words.
fn assert_plain(output: &Output, parts: &[&str]) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    for part in parts {
        assert!(errors.contains(part), "{part} is missing in\n{errors}");
    }
    let of_the_sdk = ["DispatchFailure", "ConstructionFailure", "ServiceError", "unhandled", "panicked"];
    assert!(!of_the_sdk.iter().any(|words| errors.contains(words)) && errors.len() < 900, "{errors}");
}

#[test]
fn tables_ports_and_endpoints_that_are_none_are_told_plainly() {
    let directory = tempfile::tempdir().unwrap();
    let (event, stack) = (
        file(&directory, "event.json", "{}"),
        file(&directory, "stack.json", r#"{"name":"s","functions":[],"outputs":{}}"#),
    );
    let long = "x".repeat(256);
    for name in ["", "ab", "a table", "tab/le", long.as_str()] {
        let says = ["is no table's name: 3 to 255 letters"];
        assert_plain(&sandbox(&["serve", "--stack", &stack, "--table", name, "--", "true"]), &says);
        assert_plain(&sandbox(&["dynamodb", "--port", "0", "--table", name, "--", "true"]), &says);
        assert_plain(&invoke(&["--event", &event, "--table", name]), &says);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let says = format!("the port {port} of 127.0.0.1 is taken: give another --port");
    assert_plain(&sandbox(&["dynamodb", "--port", &port, "--", "true"]), &[&says]);
    for url in ["", "localhost:8000"] {
        let output = invoke(&["--event", &event, "--endpoint-url", url, "--create-table"]);
        assert_plain(&output, &["is no URL of an endpoint"]);
    }
    let output = invoke(&["--event", &event, "--endpoint-url", "http://127.0.0.1:9", "--create-table"]);
    assert_plain(&output, &["create the table leasehold", "nothing listens at http://127.0.0.1:9"]);
    let twice = r#"{"name":"s","functions":[{"name":"f","program":"/bin/true"},{"name":"f","program":"/bin/true"}],"outputs":{}}"#;
    let output = sandbox(&["serve", "--stack", &file(&directory, "twice.json", twice), "--", "true"]);
    assert_plain(&output, &["two functions named f"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_table_that_is_taken_with_another_key_is_told_and_left_as_it_is() {
    let dynamodb = leasehold_sandbox::EmbeddedDynamoDb::start(0).unwrap();
    dynamodb.tables().create_lock_table(LockTable::new("taken").partition_key("pk").sort_key("sk")).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let event = file(&directory, "event.json", "{}");
    let output = invoke(&["--event", &event, "--endpoint-url", dynamodb.url(), "--create-table", "--table", "taken"]);
    let says = ["`taken` is there already", "partition key `pk` of type S and sort key `sk`", "take another name"];
    assert_plain(&output, &says);
}
