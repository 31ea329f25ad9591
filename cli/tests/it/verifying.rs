//! `verify`, against the stack's own functions as real processes behind the sandbox's Lambda: every scene green, and what
//! is broken is told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use leasehold_sandbox::demo::cargo_build;
use leasehold_sandbox::faults::{Answer, Fault, FaultProxy, Step};
use leasehold_sandbox::{EmbeddedDynamoDb, EventKind, LambdaApi, Stack, StackFunction};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::pty::Pty;
use crate::stage::{LONG, Ran, program, run};
use crate::stand_in;

/// Functions with short times on a slow machine: one stack at a time.
static ALONE: Mutex<()> = Mutex::const_new(());
static BUILT: OnceCell<BTreeMap<String, PathBuf>> = OnceCell::const_new();

const STACK: &str = "leasehold-verify";
const ROLES: [(&str, &str); 5] = [
    ("WorkerFunctionName", "worker"),
    ("SpinnerFunctionName", "spinner"),
    ("ShortFunctionName", "short"),
    ("SmallFunctionName", "small"),
    ("IdleFunctionName", "idle"),
];

/// The functions as `verify.yaml` has them; `.ci/verify_stack.py` plays the template itself.
async fn stack() -> Stack {
    let packages = ["leasehold-extension", "leasehold-verify"];
    let built = BUILT.get_or_init(|| async move { cargo_build(&packages).await.map_err(|e| e.to_string()).unwrap() });
    let built = built.await;
    let function = |name: &str, timeout: u64, memory: u32| {
        StackFunction::new(name, &built["leasehold-verify"])
            .extension(&built["leasehold"])
            .timeout(Duration::from_secs(timeout))
            .memory_mb(memory)
            .variable("LEASEHOLD_TABLE", "locks")
    };
    let waits = |function: StackFunction| {
        function.variable("LEASEHOLD_LEASE_DURATION", "60s").variable("LEASEHOLD_MAX_WAIT", "50s")
    };
    let stack = Stack::new(STACK)
        .function(waits(function("worker", 60, 512)))
        .function(function("spinner", 60, 512).variable("LEASEHOLD_LEASE_DURATION", "2s"))
        .function(function("short", 6, 512).variable("LEASEHOLD_LEASE_DURATION", "60s"))
        .function(function("small", 60, 128).variable("LEASEHOLD_LEASE_DURATION", "60s"))
        .function(function("idle", 60, 512))
        .output("LockTableName", "locks");
    ROLES.iter().fold(stack, |stack, (output, name)| stack.output(*output, *name))
}

/// The stack, served.
struct Served {
    api: LambdaApi,
    proxy: FaultProxy,
    dynamodb: EmbeddedDynamoDb,
    _alone: MutexGuard<'static, ()>,
}

impl Served {
    async fn start(stack: Stack) -> Self {
        let alone = ALONE.lock().await;
        let dynamodb = EmbeddedDynamoDb::start(0).unwrap();
        dynamodb.tables().create_lock_table("locks").await.unwrap();
        let proxy = FaultProxy::start(dynamodb.url()).unwrap();
        let api = LambdaApi::start(stack, proxy.url()).await.unwrap();
        Self { api, proxy, dynamodb, _alone: alone }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(&[&["verify", "--stack", STACK][..], arguments].concat());
        command.env("AWS_ENDPOINT_URL_LAMBDA", self.api.url());
        command.env("AWS_ENDPOINT_URL_CLOUDFORMATION", self.api.url());
        // What the command itself asks meets no fault.
        command.env("AWS_ENDPOINT_URL_DYNAMODB", self.dynamodb.url());
        command
    }

    /// Runs it to its end, on a thread that may block.
    async fn verify(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(&[&["--yes"][..], arguments].concat());
        tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap()
    }
}

/// The functions changed before they start.
fn changed(mut stack: Stack, change: impl Fn(StackFunction) -> StackFunction) -> Stack {
    for function in stack.functions_mut() {
        *function = change(function.clone());
    }
    stack
}

fn scene<'a>(told: &'a Value, name: &str) -> &'a Value {
    let found = told["scenes"].as_array().unwrap().iter().find(|scene| scene["scene"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {told:#}"))
}

/// The scene has this result, and says this.
fn assert_scene(told: &Value, name: &str, result: &str, says: &str) {
    let found = scene(told, name);
    assert!(found["result"] == result && found["told"].as_str().unwrap().contains(says), "{found:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scene_passes_and_is_told_with_milliseconds_and_capacity() {
    let served = Served::start(stack().await).await;
    let told = served.verify(&["--thaw-after", "2s", "--json"]).await.ended(0).json();
    let names: Vec<_> =
        told["scenes"].as_array().unwrap().iter().map(|scene| scene["scene"].as_str().unwrap()).collect();
    assert_eq!(names, ["contend", "spin", "abort", "out-of-memory", "timeout", "sigterm-ignored", "thaw"]);
    assert_eq!((&told["passed"], &told["not_passed"]), (&7.into(), &0.into()), "{told:#}");
    for scene in told["scenes"].as_array().unwrap() {
        assert!(
            scene["freed_ms"].is_u64()
                && scene["next_ms"].is_u64()
                && scene["used"]["billed_ms"].as_f64().unwrap() > 0.0,
            "{scene:#}"
        );
        // Whoever waits was refused once, at least: two more writes than the two of the one who held.
        let least = if scene["scene"] == "thaw" { 4.0 } else { 5.0 };
        assert!(scene["used"]["write_units"].as_f64().unwrap() >= least, "{scene:#}");
        for invocation in scene["invocations"].as_array().unwrap() {
            assert!(invocation["report"]["duration_ms"].as_f64().unwrap() > 0.0, "{scene:#}");
        }
    }
    let kinds = |name: &str| scene(&told, name)["invocations"][0]["error_type"].clone();
    assert_eq!(kinds("timeout"), "Sandbox.Timedout");
    assert_eq!(kinds("abort"), "Runtime.ExitError");
    // The process lived on after SIGTERM, until it was killed.
    let short = served.api.sandbox("short").unwrap().log();
    let ignored = short.find(|event| event.is_output("SIGTERM ignored")).expect("SIGTERM was not ignored");
    let killed = |event: &leasehold_sandbox::Event| {
        event.index > ignored.index && event.is_signal(&leasehold_sandbox::Process::Runtime, Signal::KILL)
    };
    assert!(short.find(killed).is_some(), "{}", short.timeline());
    let small = served.api.sandbox("small").unwrap().log();
    let limited =
        |event: &leasehold_sandbox::Event| matches!(&event.kind, EventKind::Note(text) if text.contains("of 128 MB"));
    assert!(small.find(limited).is_some(), "{}", small.timeline());
    assert_eq!(told["delete"], "sam delete --stack-name leasehold-verify --region us-east-1");
    assert!(told["usd"].as_f64().unwrap() > 0.0 && told["usd"].as_f64().unwrap() < 0.01, "{told:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scenes_are_told_as_the_demo_tells_its_own_and_how_to_delete_the_stack() {
    let ready = changed(stack().await, |function| function.pending_for(Duration::from_secs(3)));
    let served = Served::start(ready).await;
    let ran = served.verify(&["--scene", "contend"]).await.ended(0);
    assert!(ran.err.contains("1 scene, 4 invocations") && ran.err.contains("contend is played"), "{}", ran.err);
    ran.says(&[
        "ok       worker",
        "1. contend: Two invocations on one key run one after the other",
        "A holds the key",
        "passed: B had the key after",
        "1 of 1 scenes passed",
        "total ",
        "sam delete --stack-name leasehold-verify --region us-east-1",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_whose_connections_were_cut_while_it_was_frozen_is_shown_to_recover() {
    let served = Served::start(stack().await).await;
    let cut = async {
        let log = served.api.sandbox("idle").unwrap().log();
        let answered = log.wait_for(|event| matches!(event.kind, EventKind::InvocationAnswered { .. }), LONG);
        let mark = answered.await.unwrap().index;
        log.wait_for_after(mark, |event| event.kind == EventKind::Frozen, LONG).await.unwrap();
        served.proxy.cut_connections();
    };
    let (ran, ()) = tokio::join!(served.verify(&["--scene", "thaw", "--thaw-after", "2s", "--json"]), cut);
    assert_scene(&ran.ended(0).json(), "thaw", "passed", "of frozen idleness");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_layer_every_scene_fails_and_says_what_is_missing() {
    let served = Served::start(changed(stack().await, StackFunction::without_extensions)).await;
    let told = served.verify(&["--scene", "abort", "--scene", "thaw", "--json"]).await.ended(1).json();
    for name in ["abort", "thaw"] {
        assert_scene(&told, name, "failed", "deploy verify.yaml with its layer");
    }
    let checks = told["checks"].as_array().unwrap();
    let missing = |check: &&Value| check["check"] == "worker layer" && check["status"] == "problem";
    assert!(checks.iter().any(|check| missing(&check)), "{told:#}");
}

/// A keeper in the handler's own process ends with it: nobody frees the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_that_frees_nothing_is_noticed() {
    let without = changed(stack().await, |function| {
        let function = function.without_extensions().variable("LEASEHOLD_KEEPER", "in-process");
        function.variable("LEASEHOLD_LEASE_DURATION", "4s")
    });
    let served = Served::start(without).await;
    let told = served.verify(&["--scene", "abort", "--scene", "timeout", "--json"]).await.ended(1).json();
    assert_scene(&told, "abort", "failed", "B had to take it over");
    assert_scene(&told, "timeout", "failed", "B had to take it over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_not_renewed_and_a_table_that_is_not_allowed_are_noticed() {
    let served = Served::start(stack().await).await;
    served.proxy.inject(Step::Renew, usize::MAX, Fault::Answer(Answer::error(500, "InternalServerError", "no")));
    let told = served.verify(&["--scene", "spin", "--json"]).await.ended(1).json();
    assert_scene(&told, "spin", "failed", "A failed: LeaseLost");

    served.proxy.clear();
    let denied = Answer::error(400, "AccessDeniedException", "User: me is not authorized");
    served.proxy.inject(Step::Acquire, usize::MAX, Fault::Answer(denied));
    let told = served.verify(&["--scene", "timeout", "--json"]).await.ended(1).json();
    assert_scene(&told, "timeout", "failed", "before it held its key: AccessDenied");
}

/// With a single environment the second invocation is throttled until the first one is over.
#[tokio::test(flavor = "multi_thread")]
async fn where_two_can_t_run_at_once_it_is_said_that_nothing_was_seen() {
    let served = Served::start(changed(stack().await, |function| function.concurrency(1))).await;
    let told = served.verify(&["--scene", "contend", "--json"]).await.ended(1).json();
    assert_scene(&told, "contend", "not_shown", "B came too late to wait for A");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_says_what_goes_on_and_what_is_left() {
    let served = Served::start(stack().await).await;
    let mut command = served.command(&["--yes", "--scene", "spin"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let work = |event: &leasehold_sandbox::Event| event.is_output("work began");
    served.api.sandbox("spinner").unwrap().log().wait_for(work, LONG).await.unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = tokio::task::spawn_blocking(move || Ran::of(child.wait_with_output().unwrap())).await.unwrap().ended(130);
    assert!(ran.err.contains("interrupted: the invocations for verify:spin-"), "{}", ran.err);
    assert!(ran.err.contains("sam delete --stack-name leasehold-verify"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_invoked_unasked() {
    let served = Served::start(stack().await).await;
    let arguments = ["--scene", "abort"];
    let mut command = served.command(&arguments);
    let ran = tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap().ended(2);
    assert!(ran.err.contains("give --yes") && ran.err.contains("GB-s"), "{}", ran.err);

    let command = served.command(&arguments);
    let status = tokio::task::spawn_blocking(move || {
        let mut terminal = Pty::open();
        let mut child = terminal.start(command);
        terminal.shows("Go on? [y/N]");
        terminal.press("n\n");
        child.wait().unwrap()
    });
    assert_eq!(status.await.unwrap().code(), Some(2));
    assert_eq!(served.api.sandbox("worker").unwrap().log().count(|event| event.request_id().is_some()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_is_not_there_or_another_s_is_told_with_its_region() {
    let served = Served::start(stack().await.without_output("ShortFunctionName")).await;
    let ran = served.verify(&[]).await.ended(2);
    assert!(ran.err.contains("(CREATE_COMPLETE) has no output ShortFunctionName"), "{}", ran.err);
    let url = served.api.url().to_owned();
    let ran =
        tokio::task::spawn_blocking(move || run(&["verify", "--stack", "other", "--yes", "--endpoint-url", &url]));
    let ran = ran.await.unwrap().ended(2);
    assert!(ran.err.contains("there is no stack other in the Region us-east-1"), "{}", ran.err);
}

#[test]
fn what_can_t_be_asked_for_is_refused() {
    let url = stand_in::start(|_| stand_in::error(403, "AccessDenied", "no"));
    run(&["verify", "--stack", STACK, "--yes", "--endpoint-url", &url]).ended(3);
    let ran = run(&["verify", "--stack", STACK, "--scene", "swim"]).ended(2);
    assert!(ran.err.contains("there is no scene \"swim\"; the scenes are contend, spin"), "{}", ran.err);
    run(&["verify", "--list"]).ended(0).says(&["sigterm-ignored"]);
    let ran = run(&["verify"]).ended(2);
    assert!(ran.err.contains("--stack <NAME>"), "{}", ran.err);
}
