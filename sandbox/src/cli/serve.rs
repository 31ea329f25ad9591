//! `serve`: a stack's functions, for programs that invoke them with an AWS SDK.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use leasehold_sandbox::{EmbeddedDynamoDb, LambdaApi, Stack};

use super::{CommandError, names, variables};

/// Serve a stack's functions by Lambda's own API, with an embedded DynamoDB, to programs that invoke them.
#[derive(Debug, Args)]
#[command(after_help = "\
The FILE is JSON: `name`, `functions` and `outputs` of the stack. Each function has `name`, `program`, and where Lambda's \
defaults do not serve `extensions`, `variables`, `timeout_s`, `memory_mb` and `concurrency`. Served are Invoke, with the log's \
tail, GetFunctionConfiguration, and DescribeStacks; functions run as real processes, are frozen between invocations, and are \
killed when they take more than their memory.

Prints the variables that point a program to it, for a shell to read, until Ctrl-C ends it. With a PROGRAM nothing is \
printed: it gets the variables, and its end is this command's end, with the same exit status.

Example:
  leasehold-sandbox serve --stack stack.json --table locks -- leaseholdctl verify --stack leasehold-verify --yes")]
pub(super) struct Serve {
    /// The stack's file.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    /// The lock table that is created.
    #[arg(long, value_name = "NAME", default_value = "leasehold", value_parser = names::table)]
    table: String,

    /// A program to run with it, and its arguments, behind `--`.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Serve {
    /// Serves until the command is interrupted, or the program has ended.
    ///
    /// # Errors
    ///
    /// When the file can't be used, the functions can't be started, or the program can't be run.
    pub(super) async fn run(self) -> Result<ExitCode, CommandError> {
        let stack = read(&self.stack)?;
        let dynamodb = EmbeddedDynamoDb::start(0)?;
        dynamodb.tables().create_lock_table(self.table.as_str()).await?;
        let api = LambdaApi::start(stack, dynamodb.url()).await?;
        let variables = [
            ("AWS_ENDPOINT_URL_LAMBDA", api.url()),
            ("AWS_ENDPOINT_URL_CLOUDFORMATION", api.url()),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ];
        variables::serve(&variables, &self.program).await
    }
}

fn read(file: &Path) -> Result<Stack, CommandError> {
    let told = |error: &dyn std::fmt::Display| CommandError::Usage(format!("{}: {error}", file.display()));
    let text = std::fs::read(file).map_err(|error| told(&error))?;
    serde_json::from_slice(&text).map_err(|error| told(&error))
}
