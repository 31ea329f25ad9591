//! Settings, from the code and from the environment: refused when the layer is built.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::time::Duration;

use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::layer::ByTemplate;
use leasehold::{LeaseLayer, Polling, SettingsError};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::played::order;
use crate::stage::{Builder, NOWHERE, Set, Stage};
use crate::table::{Case, Kind, Seen, case, check};

#[derive(Debug)]
enum Input {
    Code(Set),
    Variable(&'static str, String),
    /// A misspelt name where names are strict.
    Strict(&'static str),
    /// A variable of the process itself.
    OfProcess(&'static str, &'static [u8]),
}

fn code(name: &'static str, set: fn(Builder) -> Builder) -> Input {
    Input::Code(Set(name, set))
}

fn var(name: &'static str, value: &str) -> Input {
    Input::Variable(name, value.to_owned())
}

fn cases() -> Vec<Case<Input>> {
    use Kind::*;
    let of = |kind, input, says| case(kind, input, "SettingsError", says, 0);
    vec![
        of(Empty, code("table", |layer| layer.table("")), "call `.table(\"name\")`, or set LEASEHOLD_TABLE"),
        of(Empty, code("key_attribute", |layer| layer.key_attribute("")), "name the table's partition key"),
        of(Empty, code("sort_key", |layer| layer.sort_key("", "x")), "`sort_key` needs a name and a value"),
        of(Empty, code("namespace", |layer| layer.namespace("")), "the namespace is empty: leave it unset"),
        of(Empty, code("max_hold", |layer| layer.max_hold(Duration::ZERO)), "set how long work may take"),
        of(
            Empty,
            code("polling", |layer| layer.polling(Polling::backoff(Duration::ZERO, Duration::ZERO))),
            "set 1ms or more",
        ),
        of(Empty, var("LEASEHOLD_MAX_WAIT", ""), "LEASEHOLD_MAX_WAIT: it is empty: give it a value, or take it out"),
        of(
            Truncated,
            var("LEASEHOLD_LEASE_DURATION", "30"),
            "LEASEHOLD_LEASE_DURATION: \"30\" has no unit: write `30s`",
        ),
        of(Truncated, var("LEASEHOLD_SORT_KEY", "sk"), "LEASEHOLD_SORT_KEY: \"sk\" has no `=`"),
        of(Truncated, var("LEASEHOLD_SORT_KEY", "sk="), "`sort_key` needs a name and a value"),
        of(Oversized, code("lease", |layer| layer.lease_duration(Duration::MAX)), "`lease_duration` is"),
        of(Oversized, code("namespace", |layer| layer.namespace("n".repeat(256))), "shorten it to 255 at most"),
        of(Oversized, code("socket", |layer| layer.socket("/s".repeat(60))), "set a shorter one"),
        of(Oversized, code("table", |layer| layer.table("t".repeat(70_000))), "the table's name has 70000 bytes"),
        of(
            Oversized,
            code("key_attribute", |layer| layer.key_attribute("k".repeat(256))),
            "`key_attribute` has 256 bytes: set one of at most 255",
        ),
        of(
            Oversized,
            code("sort_key", |layer| layer.sort_key("sk", "x".repeat(1_025))),
            "the value in `sort_key` has 1025 bytes: set one of at most 1024",
        ),
        of(Oversized, code("name", |layer| layer.name("n".repeat(70_000))), "set one of at most 2048"),
        of(Oversized, var("LEASEHOLD_RESERVE", "25h"), "LEASEHOLD_RESERVE: \"25h\" is longer than a day"),
        of(WrongType, var("LEASEHOLD_MAX_WAIT", "soon"), "write a number and a unit, such as `500ms`"),
        of(WrongType, var("LEASEHOLD_MAX_WAIT", "-1s"), "write a number and a unit"),
        of(WrongType, var("LEASEHOLD_SERVER_TIME", "yes"), "\"yes\" is not known: write `true` or `false`"),
        of(WrongType, var("LEASEHOLD_NAMESPACE", "billing/prod"), "'/' at byte 7: use ASCII letters"),
        of(Empty, code("format", |layer| layer.format("")), "`format`: \"\" is no row format that is known"),
        of(WrongVersion, var("LEASEHOLD_FORMAT", "pydynox/2"), "write `leasehold/1` or `pydynox/1`"),
        of(
            Other,
            code("format", |layer| layer.format("pydynox/1").key_attribute("pk")),
            "have the partition key `key` and no sort key: set no others",
        ),
        of(WrongVersion, var("LEASEHOLD_MODE", "audit"), "write `enforce` or `observe` or `off`"),
        of(WrongVersion, var("LEASEHOLD_KEEPER", "daemon"), "write `extension` or `in-process` or `auto`"),
        of(
            WrongVersion,
            Input::Strict("LEASEHOLD_TABEL"),
            "nothing reads LEASEHOLD_TABEL: did you mean LEASEHOLD_TABLE?",
        ),
        of(NotUtf8, Input::OfProcess("LEASEHOLD_TABLE", b"lo\xffks"), "LEASEHOLD_TABLE: it is not UTF-8"),
        of(
            Other,
            code("end_before_deadline", |layer| {
                layer.reserve(Duration::from_secs(1)).end_before_deadline(Duration::from_secs(1))
            }),
            "raise `reserve` or lower `end_before_deadline`",
        ),
        of(Other, code("sort_key", |layer| layer.sort_key("key", "x")), "are both `key`: name the table's two keys"),
    ]
}

/// What became of a layer: the error of `build`, or of an invocation if there is none.
pub async fn built(
    stage: Stage,
    layer: Result<LeaseLayer<Value, ByTemplate>, SettingsError>,
    event: LambdaEvent<Box<RawValue>>,
) -> Seen {
    match layer {
        Ok(layer) => stage.call(&layer, event).await,
        Err(error) => stage.end(Err(diagnostic(&error))).await,
    }
}

fn diagnostic(error: &SettingsError) -> Diagnostic {
    Diagnostic { error_type: "SettingsError".to_owned(), error_message: error.to_string() }
}

async fn run(input: Input) -> Seen {
    let stage = Stage::over(NOWHERE);
    let builder = stage.layer::<Value>("orders:{id}");
    let layer = match input {
        Input::Code(Set(_, set)) => set(builder).build(),
        Input::Variable(name, value) => builder.environment([(name, value)]).build(),
        Input::Strict(name) => builder.environment([(name, "x"), ("LEASEHOLD_STRICT", "1")]).build(),
        Input::OfProcess(name, value) => return stage.end(Err(of_a_process(name, value))).await,
    };
    built(stage, layer, order()).await
}

/// What a process says whose environment has this.
fn of_a_process(name: &str, value: &[u8]) -> Diagnostic {
    let mut process = Command::new(std::env::current_exe().unwrap());
    let process = process.args(["--exact", "settings::process", "--ignored", "--nocapture"]);
    let output = process.env(name, OsStr::from_bytes(value)).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("SettingsError: "), "{said}");
    Diagnostic { error_type: "SettingsError".to_owned(), error_message: said }
}

#[test]
#[ignore = "the row for the process's own variables runs it as a process of its own"]
fn process() {
    let error = LeaseLayer::<Value>::builder("orders:{id}").table("locks").build().unwrap_err();
    println!("SettingsError: {error}");
}

#[tokio::test]
async fn settings_that_cannot_be_served() {
    check("setting", cases(), run).await;
}
