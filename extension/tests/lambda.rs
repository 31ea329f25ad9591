//! The extension in a local Lambda, beside a function that speaks to it by the line: what is left of a lease when the
//! handler ends well, dies, spins past its deadline, or loses its extension.
//!
//! The test starts itself as the function, so it has no harness.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(clippy::print_stdout, reason = "a harness's own lines")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use leasehold_sandbox::{Event, EventKind, Exit, InvokeOrder, Process, Sandbox, SandboxBuilder};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(60);
const TABLE: &str = "locks";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    if std::env::var_os("_HANDLER").is_some() {
        return lambda_runtime::run(service_fn(handler)).await;
    }
    // `cargo test NAME` names the tests that are wanted.
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    macro_rules! run {
        ($($test:ident),* $(,)?) => {
            $(if stringify!($test).contains(&filter) {
                $test().await;
                println!("test {} ... ok", stringify!($test));
            })*
        };
    }
    run![
        a_handler_that_returns_leaves_a_free_row_at_the_freeze,
        an_invocation_that_the_extension_hears_of_late_is_let_go_as_well,
        a_handler_that_aborts_frees_its_row,
        a_handler_that_spins_past_its_deadline_frees_its_row,
        a_lease_whose_extension_was_killed_is_freed_by_the_next,
        managed_instances_serve_many_at_once,
    ];
    Ok(())
}

/// The function: takes the key, blocking all the while, and ends as it is told.
async fn handler(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let socket = std::env::var_os("LEASEHOLD_SOCKET").ok_or("no socket")?;
    let mut session = Session { stream: BufReader::new(UnixStream::connect(socket)?) };
    let deadline_ms = event.context.deadline;
    let versions = json!({"min": 1, "max": 1});
    let begin = json!({"type": "begin", "versions": versions, "request_id": event.context.request_id, "deadline_ms": deadline_ms});
    session.ask(&begin, "began")?;
    let acquire = json!({
        "type": "acquire", "id": 1, "key": event.payload["key"], "lease_ms": 300_000, "wait_ms": 0,
        "table": {"name": TABLE, "key_attribute": "key"}, "max_hold_ms": 900_000, "holder": {},
    });
    let granted = session.ask(&acquire, "granted")?;
    match event.payload["then"].as_str() {
        Some("abort") => std::process::abort(),
        Some("spin") => loop {
            std::hint::spin_loop();
        },
        _ => {}
    }
    session.ask(&json!({"type": "release", "id": 1, "reason": "finished"}), "released")?;
    session.say(&json!({"type": "end"}))?;
    Ok(granted["token"].clone())
}

struct Session {
    stream: BufReader<UnixStream>,
}

impl Session {
    fn say(&mut self, line: &Value) -> Result<(), Error> {
        Ok(self.stream.get_mut().write_all(format!("{line}\n").as_bytes())?)
    }

    fn ask(&mut self, line: &Value, expected: &str) -> Result<Value, Error> {
        self.say(line)?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        let value: Value = serde_json::from_str(&answer)?;
        if value["type"] == expected { Ok(value) } else { Err(answer.into()) }
    }
}

fn builder() -> SandboxBuilder {
    Sandbox::builder()
        .function(std::env::current_exe().unwrap())
        .extension(env!("CARGO_BIN_EXE_leasehold"))
        .init_timeout(LONG)
        .timeout(LONG)
}

async fn start(builder: SandboxBuilder) -> Sandbox {
    let sandbox = builder.start().await.unwrap();
    sandbox.tables().create_lock_table(TABLE).await.unwrap();
    sandbox
}

fn event(key: &str, then: &str) -> Value {
    json!({"key": key, "then": then})
}

async fn is_held(sandbox: &Sandbox, key: &str) -> bool {
    sandbox.tables().row(TABLE, key).await.unwrap().expect("a row that was held stays").contains_key("owner")
}

fn extension() -> Process {
    Process::Extension("leasehold".to_owned())
}

fn kind(wanted: EventKind) -> impl Fn(&Event) -> bool {
    move |event| event.kind == wanted
}

/// The extension ended in good order, and in its time.
fn extension_ended_well(sandbox: &Sandbox) -> bool {
    sandbox.log().find(kind(EventKind::Exited { process: extension(), exit: Exit::Code(0) })).is_some()
}

async fn a_handler_that_returns_leaves_a_free_row_at_the_freeze() {
    let sandbox = start(builder()).await;
    let mut tokens = Vec::new();
    for _ in 0..5 {
        let outcome = sandbox.invoke(event("k", "return")).await;
        tokens.push(outcome.json().unwrap_or_else(|| panic!("{outcome:?} {}", sandbox.log().timeline())).as_u64());
        sandbox.environment(0).wait_until_idle().await.unwrap();
        assert!(!is_held(&sandbox, "k").await);
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert_eq!(sandbox.log().count(kind(EventKind::InitDone)), 1, "{}", sandbox.log().timeline());
    sandbox.shutdown().await;
    assert!(extension_ended_well(&sandbox), "{}", sandbox.log().timeline());
}

async fn an_invocation_that_the_extension_hears_of_late_is_let_go_as_well() {
    let sandbox = start(builder().invoke_order(InvokeOrder::AfterHandler)).await;
    for _ in 0..2 {
        let outcome = sandbox.invoke(event("k", "return")).await;
        assert!(outcome.is_success(), "{outcome:?} {}", sandbox.log().timeline());
        sandbox.environment(0).wait_until_idle().await.unwrap();
        assert!(!is_held(&sandbox, "k").await);
    }
}

async fn a_handler_that_aborts_frees_its_row() {
    let sandbox = start(builder()).await;
    let outcome = sandbox.invoke(event("k", "abort")).await;
    assert!(!outcome.is_success());
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    assert!(!is_held(&sandbox, "k").await, "{}", sandbox.log().timeline());
    assert!(extension_ended_well(&sandbox), "{}", sandbox.log().timeline());
}

async fn a_handler_that_spins_past_its_deadline_frees_its_row() {
    let sandbox = start(builder().timeout(Duration::from_secs(2))).await;
    let outcome = sandbox.invoke(event("k", "spin")).await;
    assert_eq!(outcome.error_type(), Some("Sandbox.Timedout"), "{outcome:?}");
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    assert!(!is_held(&sandbox, "k").await, "{}", sandbox.log().timeline());
    assert!(extension_ended_well(&sandbox), "{}", sandbox.log().timeline());
    let outcome = sandbox.invoke(event("k", "return")).await;
    assert!(outcome.is_success(), "{outcome:?} {}", sandbox.log().timeline());
}

async fn a_lease_whose_extension_was_killed_is_freed_by_the_next() {
    let sandbox = start(builder()).await;
    let invocation = sandbox.start_invocation(event("k", "spin"));
    sandbox.log().wait_for(|event| event.is_output("acquired"), LONG).await.unwrap();
    sandbox.environment(0).kill_extension().await.unwrap();
    assert!(!invocation.outcome().await.is_success());
    sandbox.log().wait_for(kind(EventKind::ResetDone), LONG).await.unwrap();
    assert!(is_held(&sandbox, "k").await, "nobody was left to free it");
    sandbox.environment(0).start().await.unwrap();
    let freed = |event: &Event| event.is_output("left behind by an earlier extension");
    sandbox.log().wait_for(freed, LONG).await.unwrap();
    assert!(!is_held(&sandbox, "k").await);
    let outcome = sandbox.invoke(event("k", "return")).await;
    assert!(outcome.is_success(), "{outcome:?} {}", sandbox.log().timeline());
}

async fn managed_instances_serve_many_at_once() {
    let sandbox = start(builder().managed_instances(4)).await;
    let invocations: Vec<_> = (0..4).map(|n| sandbox.start_invocation(event(&format!("k{n}"), "return"))).collect();
    for invocation in invocations {
        let outcome = invocation.outcome().await;
        assert!(outcome.is_success(), "{outcome:?} {}", sandbox.log().timeline());
    }
    sandbox.shutdown().await;
    for n in 0..4 {
        assert!(!is_held(&sandbox, &format!("k{n}")).await);
    }
    assert!(extension_ended_well(&sandbox), "{}", sandbox.log().timeline());
}
