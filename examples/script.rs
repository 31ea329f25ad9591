//! A nightly script, for a build machine or an EC2 instance: whoever starts it, wherever, one of them exports at a time.
//!
//! It is no Lambda function and has no async runtime. A thread of its own renews the lease while the script blocks, as it
//! does in the program that it starts. Here the sandbox lends it a DynamoDB with a lock table, and the export is `echo`:
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- dynamodb -- \
//!   cargo run --all-features --example script -- exports:nightly /bin/echo exported
//! ```
//!
//! ```text
//! exported
//! ```
//!
//! On AWS set `LEASEHOLD_TABLE`, and build it with the feature `in-process` alone. The machine's role needs
//! `dynamodb:UpdateItem` and `dynamodb:GetItem` on the table.
#![allow(clippy::print_stderr, reason = "a script talks to who started it")]

use std::process::{Command, ExitCode};
use std::time::Duration;

use leasehold::{Error, KeyState, Leasehold};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(key), Some(program)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: script KEY PROGRAM [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(program);
    command.args(arguments);
    match run(&key, &mut command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(key: &str, command: &mut Command) -> Result<bool, Box<dyn std::error::Error>> {
    let locks =
        Leasehold::builder().lease_duration(Duration::from_secs(60)).max_hold(Duration::from_secs(3600)).build()?;
    let lease = match locks.acquire_blocking(key, Duration::from_secs(30)) {
        // Somebody else is at it, which is no failure of a job that is to be done once.
        Err(Error::LeaseBusy(busy)) => {
            if let KeyState::Held { unchanged_for, retry_after, .. } = locks.inspect_blocking(key)? {
                eprintln!("{busy}; unchanged for {unchanged_for:?}, it can end in {retry_after:?}");
            }
            return Ok(true);
        }
        lease => lease?,
    };
    let done = command.status()?.success();
    lease.ensure_held()?; // the report says "done" only if nobody else can have been at it
    let metrics = lease.metrics()?;
    eprintln!("{key}: waited {:?}, {} writes, {} renewals", metrics.waited, metrics.write_requests, metrics.renewals);
    lease.release()?; // a drop gives it back as well
    Ok(done)
}
