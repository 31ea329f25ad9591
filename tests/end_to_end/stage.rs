//! Programs and sandboxes for the tests, and questions about what happened.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use leasehold_sandbox::{
    Event, Sandbox, SandboxBuilder,
    demo::{Programs, Said, cargo_build, cargo_build_examples},
};
use serde_json::Value;
use tokio::sync::OnceCell;

/// How long a step may take that should come at once: machines are slow at times.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) const TABLE: &str = "locks";

static BUILT: OnceCell<BTreeMap<String, PathBuf>> = OnceCell::const_new();

/// A program of this workspace, built once.
pub(crate) async fn program(name: &str) -> PathBuf {
    let packages = ["leasehold-extension", "leasehold-sample", "leasehold-test-functions"];
    let built = BUILT.get_or_init(|| async move { cargo_build(&packages).await.map_err(|e| e.to_string()).unwrap() });
    built.await[name].clone()
}

/// The demo's programs.
pub(crate) async fn programs() -> Programs {
    Programs {
        extension: program("leasehold").await,
        sample: program("leasehold-sample").await,
        events: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("events"),
    }
}

/// The examples and the extension, built once.
static EXAMPLES: OnceCell<BTreeMap<String, PathBuf>> = OnceCell::const_new();

/// A sandbox for one of the examples, with the extension.
pub(crate) async fn example(name: &str) -> SandboxBuilder {
    let build = || async { cargo_build_examples(None).await.map_err(|e| e.to_string()).unwrap() };
    let built = EXAMPLES.get_or_init(build).await;
    Sandbox::builder()
        .function(&built[name])
        .extension(&built["leasehold"])
        .name("tested")
        .env("LEASEHOLD_TABLE", TABLE)
        .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
        .env("AWS_LAMBDA_LOG_LEVEL", "INFO")
}

/// A file of `events/`.
pub(crate) fn event_file(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("events").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Lets somebody else hold this key for longer than any test waits.
pub(crate) async fn hold_elsewhere(sandbox: &Sandbox, key: &str) {
    sandbox.tables().hold(TABLE, key, Duration::from_secs(600)).await.unwrap();
}

/// Frees what [`hold_elsewhere`] holds.
pub(crate) async fn free_elsewhere(sandbox: &Sandbox, key: &str) {
    let mut row = sandbox.tables().row(TABLE, key).await.unwrap().unwrap();
    row.retain(|name, _| !["owner", "holder", "expires_at"].contains(&name.as_str()));
    sandbox.tables().put(TABLE, row).await.unwrap();
}

/// A sandbox for one of the test functions, with the extension.
pub(crate) async fn function(which: &str) -> SandboxBuilder {
    without_extension(which).await.extension(program("leasehold").await)
}

/// A sandbox for one of the test functions, without an extension.
pub(crate) async fn without_extension(which: &str) -> SandboxBuilder {
    Sandbox::builder()
        .function(program("test-function").await)
        .name("tested")
        .env("TEST_FUNCTION", which)
        .env("LEASEHOLD_TABLE", TABLE)
        .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
        .env("AWS_LAMBDA_LOG_LEVEL", "INFO")
}

/// Starts it, with its lock table.
pub(crate) async fn start(builder: SandboxBuilder) -> Sandbox {
    let sandbox = builder.start().await.unwrap();
    sandbox.tables().create_lock_table(TABLE).await.unwrap();
    sandbox
}

/// Whether a process said this of that invocation.
pub(crate) fn says<'a>(message: &'a str, request_id: &'a str) -> impl Fn(&Event) -> bool + 'a {
    move |event| Said::in_event(event).is_some_and(|said| said.message == message && said.is_about(request_id))
}

/// Waits until a process says this of that invocation.
pub(crate) async fn said(sandbox: &Sandbox, message: &str, request_id: &str) -> (Event, Said) {
    let event = sandbox.log().wait_for(says(message, request_id), SOON).await.unwrap();
    let said = Said::in_event(&event).unwrap();
    (event, said)
}

/// Whether the key's row has an owner.
pub(crate) async fn is_held(sandbox: &Sandbox, key: &str) -> bool {
    sandbox.tables().row(TABLE, key).await.unwrap().is_some_and(|row| row.contains_key("owner"))
}
