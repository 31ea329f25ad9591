//! `invoke`: a user's own function with a user's own events, its timeline and its responses.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args, ValueEnum};
use leasehold_sandbox::{DynamoDb, Invocation, InvokeOrder, Outcome, Sandbox, SandboxBuilder};

use super::{
    CommandError, FAILED, duration, events, failures, follow, items, names,
    programs::{Function, Programs},
    rows,
};

const EXAMPLES: &str = "\
Examples:
  One event; leasehold's extension from the same target directory; an embedded
  DynamoDB with the table `leasehold`:
      leasehold-sandbox invoke --function ./orders --event order.json

  One of leasehold's examples, built together with the extension:
      leasehold-sandbox invoke --example sqs_records \\
          --event events/sqs-fifo.json

  What a caller is told while somebody else holds the event's key:
      leasehold-sandbox invoke --example direct \\
          --event events/direct-import.json --held imports:2026-03

  Two events for one key at once: one waits for the other's lock:
      leasehold-sandbox invoke --function ./orders --concurrent \\
          --event a.json --event a.json

  What becomes of the lock when the handler is too slow:
      leasehold-sandbox invoke --function ./orders --event slow.json \\
          --timeout 3s --rows

  Both at once in one environment, as on Lambda Managed Instances:
      leasehold-sandbox invoke --function ./orders --managed-instances \\
          --concurrent --event a.json --event b.json

  An event from standard input, against a DynamoDB of your own:
      echo '{\"orderId\":\"7\"}' | leasehold-sandbox invoke --event - \\
          --function ./orders --endpoint-url http://localhost:8000 \\
          --table locks --create-table

Responses go to standard output, one a line in the order of the events; timeline
and errors to standard error.

Exit status: 0 if every invocation succeeded, 1 if one failed, 2 if the sandbox
could not run them.";

/// Run a function with event files and show what happened.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "Examples: leasehold-sandbox invoke --help")]
pub(super) struct Invoke {
    /// The function's binary.
    #[arg(long, value_name = "PATH", required_unless_present = "example")]
    function: Option<PathBuf>,

    /// One of leasehold's examples as the function. It is built first, and the extension with it.
    #[arg(long, value_name = "NAME", conflicts_with = "function")]
    example: Option<String>,

    /// An extension's binary, once for each. Without it, `leasehold` beside this executable.
    #[arg(long, value_name = "PATH", conflicts_with = "no_extension")]
    extension: Vec<PathBuf>,

    /// Run the function without any extension.
    #[arg(long)]
    no_extension: bool,

    /// A file with an event, JSON; `-` for standard input. Give it several times for several invocations.
    #[arg(long, value_name = "FILE", required = true)]
    event: Vec<PathBuf>,

    /// Invoke with all events at once, not one after the other.
    #[arg(long)]
    concurrent: bool,

    /// How many environments may live at once. Without it, 1, or as many as events with --concurrent.
    #[arg(long, value_name = "N")]
    environments: Option<usize>,

    /// The function's timeout.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    timeout: Duration,

    /// The memory size that the function is told, in MB. It is not enforced.
    #[arg(long, value_name = "MB", default_value_t = 128)]
    memory: u32,

    /// The function's name.
    #[arg(long, value_name = "NAME", default_value = "sandbox")]
    name: String,

    /// An environment variable for function and extension, as often as needed; it wins over what is set otherwise, as
    /// LEASEHOLD_TABLE by --table. An empty LEASEHOLD_TABLE is as good as none, for a function that names its table itself.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,

    /// A DynamoDB endpoint to use in place of the embedded one. Credentials are taken from this command's environment.
    #[arg(long, value_name = "URL", value_parser = names::endpoint)]
    endpoint_url: Option<String>,

    /// The lock table, given to function and extension as LEASEHOLD_TABLE. The embedded DynamoDB always has it.
    #[arg(long, value_name = "NAME", default_value = "leasehold", value_parser = names::table)]
    table: String,

    /// Create the table at --endpoint-url too, if it isn't there.
    #[arg(long, requires = "endpoint_url")]
    create_table: bool,

    /// Let somebody else hold this key of the lock table for ten minutes; as often as needed.
    #[arg(long, value_name = "KEY", conflicts_with = "endpoint_url")]
    held: Vec<String>,

    /// Create another table, with the partition key `key`, and put a file's items there: a JSON array of objects.
    #[arg(long, value_name = "TABLE=FILE", value_parser = items::parse, conflicts_with = "endpoint_url")]
    items: Vec<items::Items>,

    /// Print the rows of the lock table, and of those of --items, at the end, to see what became of them.
    #[arg(long)]
    rows: bool,

    /// Behave as Lambda Managed Instances: many invocations at once in an environment, no freeze, no kill at the deadline.
    #[arg(long)]
    managed_instances: bool,

    /// How many invocations an environment takes at once on Managed Instances.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "managed_instances")]
    concurrency: usize,

    /// When the extension hears of an invocation.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Order::RuntimeFirst)]
    order: Order,

    /// Name the tenant, as functions with tenant isolation get it.
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,

    /// Print no timeline, only the responses, and what an environment that failed wrote.
    #[arg(long, short)]
    quiet: bool,
}

/// The variable that names the lock table.
const TABLE: &str = "LEASEHOLD_TABLE";

/// How long `--held` holds: longer than anybody waits.
const HELD: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// A millisecond after the runtime.
    RuntimeFirst,
    /// A millisecond before the runtime.
    ExtensionFirst,
    /// Once the handler has answered.
    AfterHandler,
}

impl Invoke {
    pub(super) async fn run(self, colour: bool) -> Result<ExitCode, CommandError> {
        let events = self.event.iter().map(|path| events::read(path)).collect::<Result<Vec<_>, _>>()?;
        let function = match (&self.function, &self.example) {
            (Some(function), _) => Function::Binary(function),
            (None, Some(name)) => Function::Example(name),
            (None, None) => return Err(CommandError::Usage("give --function or --example".to_owned())),
        };
        if let Some((name, value)) = self.variables.iter().rfind(|(name, _)| name == TABLE) {
            writeln!(
                io::stderr(),
                "{name}={value:?} by --env: the function is not told of the table `{}`, which is the one made and shown here \
                 (--table)",
                self.table
            )?;
        }
        let programs = Programs::of(function, &self.extension, self.no_extension).await?;
        let sandbox = self.builder(programs, events.len()).start().await?;
        if self.endpoint_url.is_none() || self.create_table {
            sandbox.tables().create_lock_table(self.table.as_str()).await?;
        }
        for key in &self.held {
            sandbox.tables().hold(&self.table, key, HELD).await?;
        }
        for items in &self.items {
            items.put(&sandbox.tables()).await?;
        }
        let show = (!self.quiet).then_some(colour);
        let outcomes = follow::while_running(sandbox.log(), show, async {
            let outcomes = self.invoke(&sandbox, events).await;
            // In good order, so that the extension's last steps are seen as well.
            sandbox.shutdown().await;
            outcomes
        })
        .await?;
        if self.quiet {
            failures::explain(sandbox.log(), &outcomes, colour)?;
        } else {
            failures::last_words(sandbox.log(), &outcomes)?;
        }
        if self.rows {
            let mut out = io::stderr().lock();
            for table in std::iter::once(&self.table).chain(self.items.iter().map(|items| &items.table)) {
                for row in sandbox.tables().rows(table).await? {
                    writeln!(out, "row: {}", rows::json_of(&row))?;
                }
            }
        }
        report(&outcomes)
    }

    fn builder(&self, programs: Programs, events: usize) -> SandboxBuilder {
        let environments = match self.environments {
            Some(limit) => limit,
            None if self.concurrent && !self.managed_instances => events,
            None => 1,
        };
        let mut builder = Sandbox::builder()
            .function(programs.function)
            .name(&self.name)
            .timeout(self.timeout)
            .memory_mb(self.memory)
            .environments(environments)
            .invoke_order(match self.order {
                Order::RuntimeFirst => InvokeOrder::RuntimeFirst,
                Order::ExtensionFirst => InvokeOrder::ExtensionFirst,
                Order::AfterHandler => InvokeOrder::AfterHandler,
            })
            .env(TABLE, &self.table);
        if self.managed_instances {
            builder = builder.managed_instances(self.concurrency);
        }
        if let Some(url) = &self.endpoint_url {
            builder = builder.dynamodb(DynamoDb::Endpoint(url.clone()));
        }
        builder = programs.extensions.into_iter().fold(builder, SandboxBuilder::extension);
        self.variables.iter().fold(builder, |builder, (name, value)| builder.env(name, value))
    }

    /// The outcomes in the order of the events.
    async fn invoke(&self, sandbox: &Sandbox, events: Vec<String>) -> Vec<Outcome> {
        let invocation = |event: String| {
            let invocation = Invocation::from(event);
            match &self.tenant {
                Some(tenant) => invocation.tenant(tenant),
                None => invocation,
            }
        };
        let mut outcomes = Vec::new();
        if self.concurrent {
            let started: Vec<_> = events.into_iter().map(|event| sandbox.start_invocation(invocation(event))).collect();
            for handle in started {
                outcomes.push(handle.outcome().await);
            }
        } else {
            for event in events {
                outcomes.push(sandbox.invoke(invocation(event)).await);
            }
        }
        outcomes
    }
}

fn report(outcomes: &[Outcome]) -> Result<ExitCode, CommandError> {
    let mut out = io::stdout().lock();
    for outcome in outcomes {
        match &outcome.result {
            Ok(response) => writeln!(out, "{}", response.text())?,
            Err(error) => writeln!(out, "{}", error.body)?,
        }
    }
    out.flush()?;
    let failed = outcomes.iter().filter(|outcome| !outcome.is_success()).count();
    if failed == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(io::stderr(), "{failed} of {} invocations failed", outcomes.len())?;
    Ok(ExitCode::from(FAILED))
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is no NAME=VALUE")),
    }
}
