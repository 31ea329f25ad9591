//! The sandbox with real processes: every wait is for an event, with a generous limit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod bench;
mod command;
mod command_tables;
mod control;
mod crash;
mod dynamodb;
mod faults;
mod invoke;
mod lambda_api;
mod managed;
mod pool;
mod soak;
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

/// A process's state letter as the kernel shows it; none if there is no such process.
fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a process runs; one that has ended but isn't collected yet doesn't.
fn is_running(pid: i32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Waits until a process is gone; SIGKILL takes the kernel a moment.
async fn wait_until_gone(pid: i32) {
    wait_until(|| !is_running(pid), &format!("process {pid} is still there")).await;
}

/// Waits until a process is shown as stopped. It runs no more once SIGSTOP was sent, but the kernel marks it when it would
/// have had its turn.
async fn wait_until_stopped(pid: i32) {
    wait_until(|| state(pid) == Some('T'), &format!("process {pid} is not stopped")).await;
}

async fn wait_until(done: impl Fn() -> bool, problem: &str) {
    let polled = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, polled).await.unwrap_or_else(|_| panic!("{problem}"));
}
