//! `doctor`: a function as Lambda has it, and whether a lock can work in it.

mod asynchronous;
pub(crate) mod function;
mod mappings;
mod queue;

use std::time::Duration;

use aws_sdk_lambda::Client;
use clap::Args;

use crate::aws::AwsOptions;
use crate::ended::{Ended, STATUS, Stop};
use crate::finding;
use crate::refused::Refused;

/// Check a function: layer, variables, timeout, and what its queues and streams do with a busy key.
///
/// Looks at what Lambda and SQS know; what the function's code sets is told by options. Needs
/// lambda:GetFunctionConfiguration, lambda:ListEventSourceMappings, lambda:GetFunctionEventInvokeConfig, and for queues
/// sqs:GetQueueUrl and sqs:GetQueueAttributes; changes nothing.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl doctor --function orders
  leaseholdctl doctor --function orders --reserve 5s --max-wait 2s
  leaseholdctl doctor --function orders:live --layer my-lock-extension --json

{STATUS}"))]
pub(crate) struct Doctor {
    /// The function's name or ARN; with `:ALIAS` or `:VERSION`, that one.
    #[arg(long, value_name = "NAME")]
    function: String,

    /// A part of the name of your layer with the extension.
    #[arg(long, value_name = "TEXT", default_value = "leasehold")]
    layer: String,

    /// The `reserve` that the code sets.
    #[arg(long, value_name = "TIME", value_parser = crate::options::duration)]
    reserve: Option<Duration>,

    /// The `max_wait` that the code sets.
    #[arg(long, value_name = "TIME", value_parser = crate::options::duration)]
    max_wait: Option<Duration>,

    /// The code holds one lock for a whole batch and fails it as a whole (no `per_record`).
    #[arg(long)]
    whole_batch: bool,

    #[command(flatten)]
    pub(crate) aws: AwsOptions,
}

impl Doctor {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let config = self.aws.config(&["LAMBDA", "SQS"]).await?;
        let (lambda, sqs) = (Client::new(&config), aws_sdk_sqs::Client::new(&config));
        let answer = lambda.get_function_configuration().function_name(&self.function).send().await;
        let function = match answer.map_err(|error| Refused::of("GetFunctionConfiguration", &error)) {
            Ok(function) => function,
            Err(refused) if refused.is("ResourceNotFoundException") => {
                let advice = "correct its name or the Region; an alias or a version is written behind a colon";
                let missing = finding::Finding::problem("function", refused.told, advice);
                return Ok(finding::tell("function", &self.function, &[missing], json)?);
            }
            Err(refused) => return Err(refused.into()),
        };
        let wanted = function::Wanted { layer: &self.layer, reserve: self.reserve, max_wait: self.max_wait };
        let mut findings = function::check(&wanted, &function);
        findings.extend(asynchronous::check(&lambda, &self.function, &function).await);
        let timeout =
            Duration::from_secs(function.timeout().and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(3));
        findings.extend(mappings::check(&lambda, &sqs, &self.function, timeout, self.whole_batch).await);
        Ok(finding::tell("function", &self.function, &findings, json)?)
    }
}
