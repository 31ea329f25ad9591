//! `leasehold`, the Lambda extension: started by Lambda from `/opt/extensions`, or by a person who is told what it is.

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io, thread};

use leasehold::clock::SystemClock;
use leasehold::store::DynamoDb;
use leasehold_extension::logging::{self, LogSettings};
use leasehold_extension::settings::Settings;
use leasehold_extension::{lifecycle, usage};
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    let Some(settings) = Settings::read(env::args_os().next(), |name| env::var_os(name)) else {
        return tell_person();
    };
    let log = logging::start(&LogSettings::read(|name| Some(env::var_os(name)?.to_string_lossy().into_owned())));
    let runtime = runtime();
    // Read when it is first needed: the environment's settings must not stand between Lambda and the registration.
    let store = DynamoDb::lazy();
    let store = match settings.table.clone() {
        Some(table) => store.warming(table),
        None => store,
    };
    runtime.block_on(lifecycle::run(settings, store, Arc::new(SystemClock::new()), log.lines()));
    // The process ends now: what a resolver's thread still waits for is of no more use.
    runtime.shutdown_background();
    drop(log);
    ExitCode::SUCCESS
}

/// The executor: this one thread. There is little to compute and nothing that blocks, and a function's smallest size
/// has a fraction of one processor: more threads would only cost the start.
fn runtime() -> Runtime {
    loop {
        match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => return runtime,
            Err(error) => {
                // To exit would end the environment, and what is missing may come back.
                tracing::error!(%error, "the executor can't be started");
                thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

fn tell_person() -> ExitCode {
    let usage::Answer { output, complaint, code } = usage::answer(env::args().skip(1));
    // Whoever closed the outputs did not want to know.
    let _ = io::stdout().write_all(output.as_bytes());
    let _ = io::stderr().write_all(complaint.as_bytes());
    ExitCode::from(code)
}
