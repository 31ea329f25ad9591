//! A test double: a function where Lambda starts it as one, an extension elsewhere.
//!
//! It speaks plain HTTP over blocking sockets, so that nothing but the sandbox is tested.
#![forbid(unsafe_code)]

mod extension;
mod function;
mod http;

use std::{
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    // Only a runtime gets `_HANDLER`.
    let ended = if std::env::var_os("_HANDLER").is_some() { function::run() } else { extension::run() };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("ends with an error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line that the sandbox notes. Without a reader there is nobody to tell.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A variable of this double's own.
fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
