//! The sandbox with real processes: every wait is for an event, with a generous limit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod command;
mod control;
mod crash;
mod dynamodb;
mod invoke;
mod managed;
mod pool;
mod timeout;

use std::{path::PathBuf, time::Duration};

use leasehold_sandbox::{DynamoDb, Event, EventKind, Process, Sandbox, SandboxBuilder};
use serde_json::{Value, json};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// The double's path; its file name is the extension's name.
fn double() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_leasehold-sandbox-double"))
}

fn extension() -> Process {
    Process::Extension("leasehold-sandbox-double".to_owned())
}

/// A function and an extension, without DynamoDB.
fn builder() -> SandboxBuilder {
    Sandbox::builder().function(double()).extension(double()).dynamodb(DynamoDb::None).init_timeout(LONG).timeout(LONG)
}

fn steps(steps: &[&str]) -> Value {
    json!({ "steps": steps })
}

fn kind(wanted: EventKind) -> impl Fn(&Event) -> bool {
    move |event| event.kind == wanted
}

fn registered(event: &Event) -> bool {
    matches!(event.kind, EventKind::ExtensionRegistered { .. })
}

fn runtime_started(event: &Event) -> bool {
    matches!(event.kind, EventKind::ProcessStarted { process: Process::Runtime, .. })
}

fn invoked(event: &Event) -> bool {
    matches!(event.kind, EventKind::RuntimeInvoked { .. })
}

fn extension_invoked(event: &Event) -> bool {
    matches!(event.kind, EventKind::ExtensionInvoked { .. })
}

fn answered(event: &Event) -> bool {
    matches!(event.kind, EventKind::InvocationAnswered { .. })
}

fn deadline_reached(event: &Event) -> bool {
    matches!(event.kind, EventKind::DeadlineReached { .. })
}

fn shutdown_sent(event: &Event) -> bool {
    matches!(event.kind, EventKind::ShutdownSent { .. })
}

/// Whether a process runs; one that has ended but isn't collected yet doesn't.
fn is_running(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) => false,
    }
}

/// Waits until a process is gone; SIGKILL takes the kernel a moment.
async fn wait_until_gone(pid: i32) {
    let gone = async {
        while is_running(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.unwrap_or_else(|_| panic!("process {pid} is still there"));
}
