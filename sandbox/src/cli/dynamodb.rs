//! `dynamodb`: the embedded DynamoDB by itself, for functions and programs that the sandbox does not run as a Lambda.

use std::{ffi::OsString, io, process::ExitCode};

use clap::Args;
use leasehold_sandbox::{EmbeddedDynamoDb, Error};

use super::{CommandError, names, variables};

/// The port that is used for as long as nobody names one: the one of the local DynamoDBs that people know.
const USUAL_PORT: u16 = 8000;

/// Serve the embedded DynamoDB, with a lock table, to programs that the sandbox does not run as a Lambda.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the variables that point a program to it, for a shell to read; they stay the same as long as --port does. Its \
tables are in memory: Ctrl-C ends it, and them. With a PROGRAM nothing is printed: it gets the variables, and its end is \
this command's end, with the same exit status (128 and the signal's number after a signal).

Examples, for `cargo lambda watch`, and for a script:
  leasehold-sandbox dynamodb --port 8000 --table locks
  leasehold-sandbox dynamodb -- ./nightly-export")]
pub(super) struct DynamoDb {
    /// The port on the loopback interface; 0 for any that is free. Without it 8000, or any with a PROGRAM.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// The lock table that is created.
    #[arg(long, value_name = "NAME", default_value = "leasehold", value_parser = names::table)]
    table: String,

    /// A program to run with it, and its arguments, behind `--`.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl DynamoDb {
    /// Serves until the command is interrupted, or the program has ended.
    ///
    /// # Errors
    ///
    /// When the port is taken, the table can't be created, or the program can't be run.
    pub(super) async fn run(self) -> Result<ExitCode, CommandError> {
        let port = self.port.unwrap_or(if self.program.is_empty() { USUAL_PORT } else { 0 });
        let dynamodb = EmbeddedDynamoDb::start(port).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::AddrInUse => CommandError::Usage(format!(
                "the port {port} of 127.0.0.1 is taken: give another --port, or 0 for any that is free"
            )),
            error => error.into(),
        })?;
        dynamodb.tables().create_lock_table(self.table.as_str()).await?;
        let variables = [
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("LEASEHOLD_TABLE", &self.table),
        ];
        variables::serve(&variables, &self.program).await
    }
}
