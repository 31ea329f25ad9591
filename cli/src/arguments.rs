//! The command line: its subcommands, its executor, and how its end is told.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::aws::AwsOptions;
use crate::ended::{Ended, STATUS, Stop};
use crate::text::safe;
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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(wrong) => return misread(&wrong),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tell(&Stop::Output(error), false, None),
    };
    // With a farewell of their own.
    let end_themselves = matches!(cli.command, Command::List(_) | Command::Watch(_) | Command::Verify(_));
    let (json, asked) = (cli.json, cli.command.aws().map(AwsOptions::told));
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = run(cli) => Some(ended),
            () = interrupted(), if !end_themselves => None,
        }
    });
    match ended {
        Some(Ok(ended)) => ended.code(),
        Some(Err(stop)) => tell(&stop, json, asked.as_deref()),
        None => tell(&Stop::Interrupted(String::new()), json, None),
    }
}

/// A command line that is none; or help that was asked for, which is no mistake.
fn misread(wrong: &clap::Error) -> ExitCode {
    let json = std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json");
    if json && wrong.use_stderr() {
        let text = wrong.to_string();
        let told = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
        let told = told.strip_prefix("error: ").unwrap_or(&told);
        document(&Stop::Usage(told.to_owned()));
    }
    // With its output closed there is nobody to tell.
    let _ = wrong.print();
    ExitCode::from(u8::try_from(wrong.exit_code()).unwrap_or(2))
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

/// On standard error for people; with `--json` also on standard output, which then has nothing else, or has told so itself.
fn tell(stop: &Stop, json: bool, asked: Option<&str>) -> ExitCode {
    if stop.is_silent() {
        return stop.code();
    }
    if json && !matches!(stop, Stop::Told(_) | Stop::Output(_)) {
        document(stop);
    }
    let told = stop.to_string();
    // With standard error closed there is nobody to tell.
    if !told.is_empty() {
        let _ = writeln!(io::stderr(), "error: {}", safe(&told));
    }
    if let Some(asked) = asked.filter(|asked| stop.is_of_aws() && !asked.is_empty()) {
        let _ = writeln!(io::stderr(), "  asked with {}", safe(asked));
    }
    stop.code()
}

fn document(stop: &Stop) {
    let _ = writeln!(io::stdout(), "{}", json!({ "error": stop.json() }));
}

impl Command {
    /// As whom it asks AWS, where it does.
    fn aws(&self) -> Option<&AwsOptions> {
        match self {
            Self::Table(table) => Some(table.aws()),
            Self::Doctor(doctor) => Some(&doctor.aws),
            Self::List(list) => Some(&list.table.aws),
            Self::Show(show) => Some(&show.table.aws),
            Self::Watch(watch) => Some(&watch.table.aws),
            Self::Free(free) => Some(&free.table.aws),
            Self::Verify(verify) => Some(&verify.aws),
            Self::Report(_) | Self::Cost(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
