//! The command line: its subcommands, its executor, and what its exit status means.

mod bench;
mod demo;
mod duration;
mod dynamodb;
mod events;
mod extension;
mod failures;
mod follow;
mod invoke;
mod items;
mod names;
mod programs;
mod rows;
mod serve;
mod soak;
mod variables;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand, ValueEnum};
use tracing_subscriber::EnvFilter;

/// An invocation failed.
const FAILED: u8 = 1;
/// The command line was wrong, or the sandbox could not do its work.
const UNUSABLE: u8 = 2;
/// The usual status after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// What the sandbox itself logs, unless LEASEHOLD_SANDBOX_LOG says otherwise. The embedded DynamoDB warns of every refused
/// request, and a lock that is held is one.
const QUIET: &str = "warn,dynoxide=error";

/// A local Lambda: runs a function and its extension as real processes, with timeouts, freezes, crashes and resets.
#[derive(Debug, Parser)]
#[command(name = "leasehold-sandbox", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// When to use colours.
    #[arg(long, global = true, display_order = 900, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Debug, Subcommand)]
enum Command {
    Invoke(Box<invoke::Invoke>),
    Demo(demo::Demo),
    Soak(Box<soak::Soak>),
    Bench(bench::Bench),
    #[command(name = "dynamodb")]
    DynamoDb(dynamodb::DynamoDb),
    Serve(serve::Serve),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Whether standard error, where the timeline goes, gets colours.
    fn is_on(self) -> bool {
        self.is_on_for(io::stderr().is_terminal())
    }

    /// Whether an output gets colours.
    fn is_on_for(self, terminal: bool) -> bool {
        match self {
            Self::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// What ends a subcommand before its time.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Sandbox(#[from] leasehold_sandbox::Error),
    #[error("{0}")]
    Usage(String),
    #[error("could not write the output: {0}")]
    Output(#[from] io::Error),
}

/// Reads the command line, runs the subcommand, ends early on Ctrl-C.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("LEASEHOLD_SANDBOX_LOG").unwrap_or_else(|_| EnvFilter::new(QUIET));
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(cli.color.is_on()).with_env_filter(filter).init();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("could not start: {error}")),
    };
    // A soak that is interrupted tells what it saw by then.
    let ends_itself = matches!(cli.command, Command::Soak(_));
    runtime.block_on(async {
        tokio::select! {
            ended = run(cli) => match ended {
                Ok(code) => code,
                Err(error) => complain(&error.to_string()),
            },
            // The sandbox is dropped with the other branch, and its processes with it.
            () = interrupted(), if !ends_itself => ExitCode::from(INTERRUPTED),
        }
    })
}

async fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    match cli.command {
        Command::Invoke(invoke) => invoke.run(cli.color.is_on()).await,
        Command::Soak(soak) => soak.run().await,
        Command::Bench(bench) => bench.run().await,
        Command::DynamoDb(dynamodb) => dynamodb.run().await,
        Command::Serve(serve) => serve.run().await,
        Command::Demo(demo) => Ok(demo.run(cli.color.is_on_for(io::stdout().is_terminal())).await?),
    }
}

/// SIGINT or SIGTERM. Where they can't be watched they end the process as usual, and the guard the rest.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn complain(problem: &str) -> ExitCode {
    // With standard error closed there is nobody to complain to.
    let _ = writeln!(io::stderr(), "error: {problem}");
    ExitCode::from(UNUSABLE)
}

#[cfg(test)]
mod tests;
