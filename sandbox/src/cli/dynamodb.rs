//! `dynamodb`: the embedded DynamoDB by itself, for functions that something else runs.

use std::{
    future,
    io::{self, Write},
    process::ExitCode,
};

use clap::Args;
use leasehold_sandbox::EmbeddedDynamoDb;

use super::CommandError;

/// Serve the embedded DynamoDB, with a lock table, to programs that the sandbox does not run.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the variables that point a program to it, for a shell to read; they stay the same as long as --port does. Its \
tables are in memory: Ctrl-C ends it, and them.

Example, for `cargo lambda watch`:
  leasehold-sandbox dynamodb --port 8000 --table locks")]
pub(super) struct DynamoDb {
    /// The port on the loopback interface; 0 for any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,

    /// The lock table that is created.
    #[arg(long, value_name = "NAME", default_value = "leasehold")]
    table: String,
}

impl DynamoDb {
    /// Serves until the command is interrupted.
    ///
    /// # Errors
    ///
    /// When the port is taken or the table can't be created.
    pub(super) async fn run(self) -> Result<ExitCode, CommandError> {
        let dynamodb = EmbeddedDynamoDb::start(self.port)?;
        dynamodb.tables().create_lock_table(self.table.as_str()).await?;
        let mut out = io::stdout().lock();
        for (name, value) in [
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("LEASEHOLD_TABLE", &self.table),
        ] {
            writeln!(out, "export {name}={value}")?;
        }
        out.flush()?;
        drop(out);
        future::pending().await
    }
}
