//! What has to do with AWS and with the command line as such: refusals, absence, wrong options, `cost`.

use leasehold::session::Table;

use crate::stage::{Ran, Stage, program, run};
use crate::stand_in;

#[tokio::test]
async fn a_table_that_is_not_there_and_an_aws_that_refuses_are_told_by_status_3() {
    let stage = Stage::without_tables(Table::new("locks"));
    for command in [vec!["list"], vec!["show", "orders:1"], vec!["watch", "--looks", "1"]] {
        let ran = stage.run(&command).ended(3);
        assert!(ran.err.contains("create `locks`"), "{}", ran.err);
    }
    let refusing = stand_in::start(|_| stand_in::error(400, "AccessDeniedException", "not you\u{1b}[31m"));
    let ran = run(&["list", "--table", "locks", "--endpoint-url", &refusing]).ended(3);
    assert!(ran.err.contains("not you") && !ran.err.contains('\u{1b}'), "{}", ran.err);
    let ran = run(&["show", "a", "--table", "locks", "--endpoint-url", "http://127.0.0.1:9"]).ended(3);
    assert!(ran.err.contains("connection"), "{}", ran.err);
    // What is behind a failure is told in words, not as the SDK's types have it.
    let ran = run(&["doctor", "--function", "a", "--endpoint-url", "http://127.0.0.1:9"]).ended(3);
    assert!(ran.err.contains("the connection was refused") && !ran.err.contains("DispatchFailure"), "{}", ran.err);
}

#[test]
fn a_profile_that_is_named_wins_over_keys_in_the_environment_and_a_missing_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    std::fs::write(&credentials, "[audit]\naws_access_key_id = AKIDOFPROFILE\naws_secret_access_key = none\n").unwrap();
    let naming =
        stand_in::start(|asked| stand_in::error(400, "AccessDeniedException", &format!("{} may not", asked.key)));
    let list = |more: &[&str]| {
        let mut command = program(&[&["list", "--table", "locks", "--endpoint-url", &naming], more].concat());
        Ran::of(command.env("AWS_SHARED_CREDENTIALS_FILE", &credentials).output().unwrap()).ended(3).err
    };
    assert!(list(&[]).contains("AKIDEXAMPLE may not"));
    let told = list(&["--profile", "audit"]);
    assert!(told.contains("AKIDOFPROFILE may not"), "{told}");
    let told = list(&["--profile", "audti"]);
    assert!(told.contains("profile `audti`") && !told.contains("may not"), "{told}");
    std::fs::remove_file(&credentials).unwrap();
    let told = list(&["--profile", "audit"]);
    assert!(told.contains("the profile that was named has none") && told.contains("--profile audit"), "{told}");
}

#[test]
fn wrong_options_are_told_by_the_librarys_own_rules_and_by_status_2() {
    let table = ["--table", "locks", "--endpoint-url", "http://127.0.0.1:9"];
    for (arguments, advice) in [
        (vec!["list", "--table", ""], "--table: it is empty"),
        (vec!["list", "--table", "locks", "--format", "redlock/1"], "--format: \"redlock/1\" is no row format"),
        (vec!["list", "--table", "locks", "--sort-key", "sk"], "--sort-key: \"sk\" has no `=`"),
        (vec!["list", "--table", "locks", "--namespace", "a/b"], "--namespace: "),
        (
            vec!["show", "a", "--table", "locks", "--format", "pydynox/1", "--key-attribute", "pk"],
            "partition key `key`",
        ),
        (vec!["list"], "--table <NAME>"),
        (vec!["free", "orders:1"], "--if-version <VERSION>"),
        (vec!["list", "--older-than", "5"], "write a number and a unit"),
    ] {
        let ran = run(&arguments).ended(2);
        assert!(ran.err.contains(advice), "{advice:?} is missing in {}", ran.err);
    }
    let ran = run(&[&["free", "orders:1"][..], &table].concat()).ended(2);
    assert!(ran.err.contains("--if-version"), "{}", ran.err);
}

#[test]
fn what_a_million_invocations_cost_is_told_with_its_arithmetic() {
    let ran = run(&["cost"]).ended(0);
    ran.says(&["1 to take + 1 to free + 0 renewals", "2,000,000 units × $0.625 / 1,000,000 = $1.25", "total   $1.25"]);
    let arguments = ["cost", "--waiting", "0.1", "--wait", "350ms", "--work", "11s", "--memory", "1024", "--json"];
    let told = run(&arguments).ended(0).json();
    // 2 + 1 renewal + a tenth of a refused write and of a ticket; four looks for each tenth; 35,000 s of waiting in 1 GB.
    assert!((told["writes_per_lock"].as_f64().unwrap() - 3.2).abs() < 1e-9, "{told}");
    assert!((told["reads_per_lock"].as_f64().unwrap() - 0.4).abs() < 1e-9, "{told}");
    let usd = 3.2 * 0.625 + 0.4 * 0.125 + 35_000.0 * 0.000_016_666_7;
    assert!((told["usd"].as_f64().unwrap() - usd).abs() < 1e-6, "{told}");
    let ran = run(&["cost", "--waiting", "2"]).ended(2);
    assert!(ran.err.contains("not from 0 to 1"), "{}", ran.err);
}

#[test]
fn absurd_figures_are_refused_or_told_as_numbers() {
    for arguments in [
        ["--locks", "1e300"],
        ["--locks", "-1"],
        ["--locks", "nan"],
        ["--invocations", "1e6"],
        ["--invocations", "-3"],
        ["--invocations", "18446744073709551615"],
        ["--write-price", "inf"],
        ["--lease", "0s"],
        ["--lease", "0.0001ms"],
        ["--lease", "2d"],
        ["--waiting", "-0.5"],
    ] {
        let ran = run(&[&["cost"][..], &arguments].concat()).ended(2);
        assert!(
            ran.err.contains(arguments[0]) && !ran.err.contains("unexpected argument"),
            "{arguments:?}: {}",
            ran.err
        );
    }
    let most = ["--invocations", "1000000000000000", "--locks", "1e9", "--waiting", "1", "--wait", "1000000d"];
    for json in [&["--json"][..], &[]] {
        let ran = run(&[&["cost", "--work", "1000000d", "--row-bytes", "409600"], &most[..], json].concat()).ended(0);
        assert!(!ran.out.contains("NaN") && !ran.out.contains("inf") && !ran.out.contains("null"), "{}", ran.out);
    }
}
