//! Whether the stack is as it should be before it is played on: its table, and each of its functions.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_lambda::operation::get_function_configuration::GetFunctionConfigurationOutput as Function;
use aws_sdk_lambda::types::{LastUpdateStatus, State};
use tokio::time::{Instant, sleep};

use super::invoke::Invoker;
use super::stack::{Deployed, Role};
use crate::doctor::function::{self, Wanted};
use crate::ended::Stop;
use crate::finding::{Finding, Status};
use crate::options::Chosen;
use crate::refused::Refused;
use crate::table::check;

/// How long a function that was just made may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// The `reserve` that the function's code sets: `verify/src/main.rs`.
const RESERVE: Duration = Duration::from_millis(500);

/// What was found, and each function's memory in MB.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) findings: Vec<Finding>,
    pub(super) memory: BTreeMap<Role, f64>,
}

impl Ready {
    /// Looks, and waits for functions that are still being made.
    ///
    /// # Errors
    ///
    /// Where AWS refuses to tell.
    pub(super) async fn look(
        deployed: &Deployed,
        invoker: &Invoker,
        dynamodb: &aws_sdk_dynamodb::Client,
    ) -> Result<Self, Stop> {
        let chosen = Chosen::usual(&deployed.table);
        let mut ready = Self { findings: check::facts(&chosen, dynamodb).await, memory: BTreeMap::new() };
        let wanted = Wanted { layer: "leasehold", reserve: Some(RESERVE), max_wait: None };
        for role in Role::ALL {
            let function = configuration(deployed, invoker, role).await?;
            ready.memory.insert(role, function.memory_size().map_or(128.0, f64::from));
            let mut found = function::check(&wanted, &function);
            found.retain(|finding| finding.status != Status::Ok);
            if found.is_empty() {
                let told =
                    format!("{}: active, with the layer; its variables and its timeout fit", deployed.function(role));
                ready.findings.push(Finding::ok(role.to_string(), told));
            }
            ready.findings.extend(found.into_iter().map(|finding| finding.about(&role.to_string())));
        }
        Ok(ready)
    }
}

async fn configuration(deployed: &Deployed, invoker: &Invoker, role: Role) -> Result<Function, Refused> {
    let end = Instant::now() + READY_WITHIN;
    loop {
        let name = deployed.function(role);
        let answer = invoker.lambda().get_function_configuration().function_name(name).send().await;
        let function = answer.map_err(|error| Refused::of(&format!("GetFunctionConfiguration {name}"), &error))?;
        let waits = function.state() == Some(&State::Pending)
            || function.last_update_status() == Some(&LastUpdateStatus::InProgress);
        if !waits || Instant::now() >= end {
            return Ok(function);
        }
        sleep(Duration::from_secs(1)).await;
    }
}
