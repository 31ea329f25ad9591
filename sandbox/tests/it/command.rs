//! The command line, as a user types it.

use std::{
    io::{BufRead as _, Write},
    process::{Command, Output, Stdio},
};

use crate::*;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-sandbox"));
    command.args(arguments).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

fn invoke(arguments: &[&str]) -> Output {
    let function = double();
    let function = function.to_str().unwrap();
    let mut all = vec!["invoke", "--function", function, "--extension", function];
    all.extend(arguments);
    command(&all).output().unwrap()
}

fn event(directory: &tempfile::TempDir, name: &str, event: &Value) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, event.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn responses_go_to_standard_output_in_order_and_the_timeline_to_standard_error() {
    let directory = tempfile::tempdir().unwrap();
    let first = event(&directory, "1.json", &json!({ "steps": ["env:GREETING", "env:LEASEHOLD_TABLE"], "n": 1 }));
    let second = event(&directory, "2.json", &json!({ "n": 2 }));
    let arguments = ["--event", &first, "--event", &second, "--env", "GREETING=hi there", "--table", "locks", "--rows"];
    let output = invoke(&arguments);
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["GREETING"], &lines[0]["LEASEHOLD_TABLE"]), (&json!("hi there"), &json!("locks")));
    assert_eq!((&lines[0]["event"]["n"], &lines[1]["event"]["n"]), (&json!(1), &json!(2)));
    for part in ["init done", "frozen", "SHUTDOWN (spindown)", "environment ended"] {
        assert!(errors.contains(part), "{part} is missing in\n{errors}");
    }
    assert!(!errors.contains('\u{1b}'), "no colours without a terminal");
}

#[test]
fn a_failed_invocation_is_told_by_the_exit_status() {
    let directory = tempfile::tempdir().unwrap();
    let good = event(&directory, "good.json", &json!({}));
    let bad = event(&directory, "bad.json", &steps(&["spin"]));
    let arguments = ["--event", &good, "--event", &bad, "--concurrent", "--timeout", "1500ms", "--color", "always"];
    let output = invoke(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).lines().nth(1).unwrap().contains("Sandbox.Timedout"));
    let errors = text(&output.stderr);
    assert!(errors.contains("1 of 2 invocations failed") && errors.contains('\u{1b}'), "{errors}");
}

#[test]
fn a_function_that_ends_before_it_serves_has_its_last_words_told() {
    let directory = tempfile::tempdir().unwrap();
    let event = event(&directory, "event.json", &json!({}));
    let output = invoke(&["--event", &event, "--env", "DOUBLE_INIT=complain"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(text(&output.stdout).contains("Runtime.ExitError"));
    let told = errors.split("The function's last words:\n").nth(1).unwrap_or_else(|| panic!("{errors}"));
    assert!(told.starts_with("  Error: the double was told to end\n"), "{errors}");
    assert_eq!(told.matches("told to end").count(), 1, "once, however often it was started: {errors}");
}

#[test]
fn a_table_that_the_function_is_not_told_of_is_noted() {
    let directory = tempfile::tempdir().unwrap();
    let event = event(&directory, "event.json", &steps(&["env:LEASEHOLD_TABLE"]));
    let output = invoke(&["--event", &event, "--quiet", "--env", "LEASEHOLD_TABLE="]);
    assert!(text(&output.stdout).contains("\"LEASEHOLD_TABLE\":\"\""), "{}", text(&output.stdout));
    let errors = text(&output.stderr);
    assert!(errors.contains("LEASEHOLD_TABLE=\"\" by --env") && errors.contains("`leasehold`"), "{errors}");
}

#[test]
fn quiet_and_standard_input() {
    let function = double();
    let arguments = ["invoke", "--quiet", "--no-extension", "--event", "-", "--function", function.to_str().unwrap()];
    let mut command = command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"a\": 1}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("\"a\":1"));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn managed_instances_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let meet = event(&directory, "meet.json", &steps(&["meet:2"]));
    let arguments =
        ["--event", &meet, "--event", &meet, "--concurrent", "--managed-instances", "--env", "DOUBLE_EVENTS=SHUTDOWN"];
    let output = invoke(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn mistakes_are_explained_and_told_by_the_exit_status() {
    let directory = tempfile::tempdir().unwrap();
    let good = event(&directory, "good.json", &json!({}));
    let broken = directory.path().join("broken.json");
    std::fs::write(&broken, "{").unwrap();
    let broken = broken.to_str().unwrap();
    for (arguments, advice) in [
        (vec!["--event", "/no/such/event"], "the event /no/such/event could not be read"),
        (vec!["--event", broken], "is no JSON"),
        (vec!["--event", &good, "--timeout", "soon"], "write it like 500ms, 30s or 2m"),
        (vec!["--event", &good, "--env", "X"], "is no NAME=VALUE"),
        (vec!["--event", &good, "--environments", "0"], "at least 1"),
        (vec![], "--event <FILE>"),
    ] {
        let output = invoke(&arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(advice), "{errors}");
    }
    let mut command = command(&["invoke", "--function", "/no/such/function", "--no-extension", "--event", &good]);
    let errors = text(&command.output().unwrap().stderr);
    assert!(errors.contains("function /no/such/function can't be read"), "{errors}");
    assert!(errors.contains("build it first"), "{errors}");
}

#[test]
fn the_help_has_examples() {
    let output = command(&["invoke", "--help"]).output().unwrap();
    assert!(text(&output.stdout).contains("Examples:"));
    assert!(text(&output.stdout).contains("Exit status:"));
}

#[test]
fn dynamodb_is_served_by_itself_until_it_is_interrupted() {
    let mut serving = command(&["dynamodb", "--port", "0", "--table", "locks"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<String> =
        std::io::BufReader::new(serving.stdout.take().unwrap()).lines().take(5).map(|line| line.unwrap()).collect();
    let url = lines[0].strip_prefix("export AWS_ENDPOINT_URL_DYNAMODB=").unwrap();
    assert!(lines.contains(&"export LEASEHOLD_TABLE=locks".to_owned()), "{lines:?}");

    // The table is there by then, and a second server finds the port taken.
    let event = tempfile::tempdir().unwrap();
    let event = self::event(&event, "event.json", &json!({}));
    let invoked = invoke(&["--event", &event, "--endpoint-url", url, "--table", "locks", "--rows", "--quiet"]);
    assert!(invoked.status.success(), "{}", text(&invoked.stderr));
    let second = command(&["dynamodb", "--port", url.rsplit(':').next().unwrap()]).output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("of 127.0.0.1 is taken: give another --port"), "{}", text(&second.stderr));

    let pid = rustix::process::Pid::from_child(&serving);
    rustix::process::kill_process(pid, leasehold_sandbox::Signal::INT).unwrap();
    assert_eq!(serving.wait().unwrap().code(), Some(130));
}

#[test]
fn dynamodb_lends_its_variables_and_its_table_to_a_program_and_ends_as_the_program_did() {
    let directory = tempfile::tempdir().unwrap();
    let event = event(&directory, "event.json", &json!({}));
    // The program is this sandbox: it prints the rows of the table that it was pointed to.
    let used = r#"echo "$LEASEHOLD_TABLE"; "$0" invoke --no-extension --quiet --rows --function "$1" --event "$2" \
        --endpoint-url "$AWS_ENDPOINT_URL_DYNAMODB" --table "$LEASEHOLD_TABLE" >&2; exit 7"#;
    let lent = ["dynamodb", "--table", "locks", "--", "sh", "-ec", used, env!("CARGO_BIN_EXE_leasehold-sandbox")];
    let output = command(&lent).arg(double()).arg(&event).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "locks\n", "and no variables for a shell");

    let killed = command(&["dynamodb", "--", "sh", "-c", "kill -TERM $$"]).output().unwrap();
    assert_eq!(killed.status.code(), Some(128 + 15));
    let missing = command(&["dynamodb", "--", "/nowhere/program"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("/nowhere/program could not be run"), "{}", text(&missing.stderr));
}
