//! The command line: its subcommands, its executor, and how its end is told.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::ended::{Ended, STATUS, Stop};
use crate::{cost, doctor, free, list, report, show, table, verify, watch};

/// Who holds which lock, is it set up right, what does it cost: the command line of leasehold.
///
/// It reads the lock table itself and needs neither a function nor its extension. Keys, holders and everything else that
/// comes from a row are printed with control characters escaped.
#[derive(Debug, Parser)]
#[command(name = "leaseholdctl", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = format!("\
Examples:
  leaseholdctl table create --table locks
  leaseholdctl list --table locks --prefix orders:
  leaseholdctl show orders:17 --table locks --profile prod --region eu-central-1
  aws logs tail /aws/lambda/orders --since 1h --format short | leaseholdctl report

{STATUS}"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print JSON, in the shape that docs/operator.md tells.
    #[arg(long, global = true, display_order = 900)]
    json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand)]
    Table(table::Table),
    Doctor(Box<doctor::Doctor>),
    List(Box<list::List>),
    Show(Box<show::Show>),
    Watch(Box<watch::Watch>),
    Free(Box<free::Free>),
    Report(Box<report::Report>),
    Cost(Box<cost::Cost>),
    Verify(Box<verify::Verify>),
}

/// Reads the command line, runs the command, tells how it ended.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tell(&Stop::Output(error)),
    };
    // With a farewell of their own.
    let end_themselves = matches!(cli.command, Command::Watch(_) | Command::Verify(_));
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = run(cli) => Some(ended),
            () = interrupted(), if !end_themselves => None,
        }
    });
    match ended {
        Some(Ok(ended)) => ended.code(),
        Some(Err(stop)) => tell(&stop),
        None => Stop::Interrupted(String::new()).code(),
    }
}

async fn run(cli: Cli) -> Result<Ended, Stop> {
    let json = cli.json;
    match cli.command {
        Command::Table(table) => table.run(json).await,
        Command::Doctor(doctor) => doctor.run(json).await,
        Command::List(list) => list.run(json).await,
        Command::Show(show) => show.run(json).await,
        Command::Watch(watch) => watch.run(json).await,
        Command::Free(free) => free.run(json).await,
        Command::Report(report) => report.run(json),
        Command::Cost(cost) => cost.run(json),
        Command::Verify(verify) => verify.run(json).await,
    }
}

/// SIGINT or SIGTERM; for good, where they can't be watched.
pub(crate) async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn tell(stop: &Stop) -> ExitCode {
    if !stop.is_silent() {
        // With standard error closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "error: {}", crate::text::safe(&stop.to_string()));
    }
    stop.code()
}

#[cfg(test)]
mod tests;
