//! The stack that was made from `verify.yaml`: what its outputs name.

use std::collections::BTreeMap;
use std::fmt;

use aws_config::SdkConfig;
use aws_sdk_cloudformation::Client;

use crate::ended::Stop;
use crate::refused::Refused;
use crate::text::safe;

/// What a function of the stack is there for. The program is the same; timeout, memory and lease differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Waits for everybody's lock, and holds its own for long leases.
    Worker,
    /// Has a short lease, to spin for many of them.
    Spinner,
    /// Has a short timeout.
    Short,
    /// Has little memory.
    Small,
    /// Is left alone between two invocations.
    Idle,
}

impl Role {
    pub(super) const ALL: [Self; 5] = [Self::Worker, Self::Spinner, Self::Short, Self::Small, Self::Idle];

    /// The output of the stack that has the function's name.
    fn output(self) -> &'static str {
        match self {
            Self::Worker => "WorkerFunctionName",
            Self::Spinner => "SpinnerFunctionName",
            Self::Short => "ShortFunctionName",
            Self::Small => "SmallFunctionName",
            Self::Idle => "IdleFunctionName",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Worker => "worker",
            Self::Spinner => "spinner",
            Self::Short => "short",
            Self::Small => "small",
            Self::Idle => "idle",
        })
    }
}

/// The output with the lock table's name.
const TABLE: &str = "LockTableName";

/// A stack of `verify.yaml`.
#[derive(Clone, Debug)]
pub(super) struct Deployed {
    pub(super) stack: String,
    pub(super) region: String,
    pub(super) table: String,
    functions: BTreeMap<Role, String>,
}

impl Deployed {
    /// Asks CloudFormation.
    ///
    /// # Errors
    ///
    /// [`Stop::Usage`] where there is no such stack, or it is another's; [`Stop::Aws`] where CloudFormation refuses.
    pub(super) async fn find(stack: &str, config: &SdkConfig) -> Result<Self, Stop> {
        let region = config.region().map(ToString::to_string).unwrap_or_default();
        let answer = Client::new(config).describe_stacks().stack_name(stack).send().await;
        let output = match answer.map_err(|error| Refused::of("DescribeStacks", &error)) {
            Ok(output) => output,
            Err(refused) if refused.is("ValidationError") => {
                return Err(Stop::Usage(format!(
                    "there is no stack {stack} in the Region {region} of this account: deploy verify.yaml as \
                     docs/verify.md says, or correct --stack, --region or --profile ({})",
                    refused.told
                )));
            }
            Err(refused) => return Err(refused.into()),
        };
        let Some(found) = output.stacks().first() else {
            return Err(Stop::Aws("DescribeStacks was answered without a stack".to_owned()));
        };
        let outputs: BTreeMap<_, _> =
            found.outputs().iter().filter_map(|output| Some((output.output_key()?, output.output_value()?))).collect();
        let mut missing = Vec::new();
        let mut named = |key: &'static str| {
            let value = outputs.get(key).copied();
            if value.is_none() {
                missing.push(key);
            }
            value.unwrap_or_default().to_owned()
        };
        let table = named(TABLE);
        let functions = Role::ALL.into_iter().map(|role| (role, named(role.output()))).collect();
        if !missing.is_empty() {
            let status = found.stack_status().map_or("in no known state", |status| status.as_str());
            return Err(Stop::Usage(format!(
                "the stack {stack} ({}) has no output {}: it was not made from this release's verify.yaml, or is not \
                 deployed to its end",
                safe(status),
                missing.join(", ")
            )));
        }
        Ok(Self { stack: stack.to_owned(), region, table, functions })
    }

    /// The name of this function.
    pub(super) fn function(&self, role: Role) -> &str {
        self.functions.get(&role).map_or("", String::as_str)
    }

    /// How to be rid of it.
    pub(super) fn delete(&self) -> String {
        let quoted = crate::text::quoted;
        format!("sam delete --stack-name {} --region {}", quoted(&self.stack), quoted(&self.region))
    }
}
