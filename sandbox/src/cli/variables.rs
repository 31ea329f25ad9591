//! Variables that point programs to what is served: printed for a shell, or given to one program.

use std::{
    ffi::OsString,
    future,
    io::{self, Write},
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus},
};

use tokio::process::Command;

use super::{CommandError, FAILED};

/// Runs the program with the variables and ends as it ends; or prints them and never ends.
///
/// # Errors
///
/// When the program can't be run, or the output can't be written.
pub(super) async fn serve(variables: &[(&str, &str)], program: &[OsString]) -> Result<ExitCode, CommandError> {
    if let Some((program, arguments)) = program.split_first() {
        let mut command = Command::new(program);
        let running = command.args(arguments).envs(variables.iter().copied()).kill_on_drop(true).status();
        let told = |error| CommandError::Usage(format!("{} could not be run: {error}", program.display()));
        return Ok(exit_code(running.await.map_err(told)?));
    }
    let mut out = io::stdout().lock();
    for (name, value) in variables {
        writeln!(out, "export {name}={value}")?;
    }
    out.flush()?;
    drop(out);
    future::pending().await
}

/// As a shell has it.
fn exit_code(ended: ExitStatus) -> ExitCode {
    let status = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    ExitCode::from(status.and_then(|status| u8::try_from(status).ok()).unwrap_or(FAILED))
}
