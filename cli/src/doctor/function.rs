//! The function's own configuration: state, layer, variables, timeout, log format.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_lambda::operation::get_function_configuration::GetFunctionConfigurationOutput as Function;
use aws_sdk_lambda::types::{LastUpdateStatus, LogFormat, PackageType, State};
use leasehold::operator::{Examined, examine};
use leasehold::{KeeperChoice, Mode};

use crate::finding::Finding;
use crate::text::{safe, span};

/// Stands in for a table that the code may set, so that its absence here is no error by itself.
const TABLE_OF_CODE: &str = "set-in-code";

/// What is asked for beside what every function needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// A part of the name of the layer with the extension.
    pub(crate) layer: &'a str,
    /// What the code sets.
    pub(crate) reserve: Option<Duration>,
    pub(crate) max_wait: Option<Duration>,
}

pub(crate) fn check(wanted: &Wanted<'_>, function: &Function) -> Vec<Finding> {
    let mut findings = vec![state(function)];
    let environment = function.environment();
    if let Some(error) = environment.and_then(|environment| environment.error()) {
        let told = format!("they can't be read: {}", error.message().unwrap_or("Lambda does not say why"));
        findings.push(Finding::unknown("variables", told));
        findings.push(Finding::unknown("layer", "whether it is needed depends on the variables"));
        return findings;
    }
    let variables: BTreeMap<String, String> = environment
        .and_then(|environment| environment.variables())
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let has_table = variables.contains_key("LEASEHOLD_TABLE");
    let mut judged = variables;
    judged.entry("LEASEHOLD_TABLE".to_owned()).or_insert_with(|| TABLE_OF_CODE.to_owned());
    // Lambda itself sets it, and some defaults depend on it.
    judged.entry("AWS_LAMBDA_INITIALIZATION_TYPE".to_owned()).or_insert_with(|| "on-demand".to_owned());
    let names: Vec<_> = judged.keys().filter(|name| name.starts_with("LEASEHOLD_")).cloned().collect();
    let examined = examine(judged);
    variables_of(&examined, &names, has_table, &mut findings);
    findings.push(layer(wanted, function, &examined));
    findings.push(time(wanted, function, &examined));
    findings.push(log_format(function));
    findings
}

fn state(function: &Function) -> Finding {
    const CHECK: &str = "function";
    let word = |text: Option<&str>| safe(text.unwrap_or("unknown"));
    if let Some(LastUpdateStatus::Failed) = function.last_update_status() {
        let told = format!("its last update failed: {}", word(function.last_update_status_reason()));
        return Finding::problem(CHECK, told, "see to that first: what runs is an older configuration");
    }
    match function.state() {
        Some(State::Failed) => Finding::problem(
            CHECK,
            format!("its state is Failed: {}", word(function.state_reason())),
            "see to that first",
        ),
        state => {
            let told = format!("version {}, {}", word(function.version()), word(state.map(State::as_str)));
            Finding::ok(CHECK, told)
        }
    }
}

fn variables_of(examined: &Examined, names: &[String], has_table: bool, findings: &mut Vec<Finding>) {
    const CHECK: &str = "variables";
    for problem in &examined.problems {
        findings.push(Finding::problem(
            CHECK,
            problem.clone(),
            "with this value `build()` fails, and so does the function's start",
        ));
    }
    for warning in &examined.warnings {
        findings.push(Finding::warning(
            CHECK,
            warning.clone(),
            "a misspelt name is a setting that does not hold; LEASEHOLD_STRICT=1 makes it an error",
        ));
    }
    if !has_table {
        findings.push(Finding::warning(
            CHECK,
            "LEASEHOLD_TABLE is not set",
            "set it, unless the code calls `.table(…)`",
        ));
    }
    if examined.problems.is_empty() && examined.warnings.is_empty() && has_table {
        let (count, table) = (names.len(), safe(&examined.table.name));
        findings
            .push(Finding::ok(CHECK, format!("{count} of leasehold's, all known and in order; the table is {table}")));
    }
    match examined.mode {
        Mode::Enforce => {}
        mode => {
            let (told, advice) = match mode {
                Mode::Observe => ("LEASEHOLD_MODE is observe", "nothing is locked: handlers run whoever holds the key"),
                _ => ("LEASEHOLD_MODE is off", "nothing is locked"),
            };
            findings.push(Finding::warning("mode", told, format!("{advice}; take it out to enforce")));
        }
    }
}

fn layer(wanted: &Wanted<'_>, function: &Function, examined: &Examined) -> Finding {
    const CHECK: &str = "layer";
    if examined.mode == Mode::Off {
        return Finding::ok(CHECK, "not needed: the mode is off");
    }
    if examined.keeper == KeeperChoice::InProcess {
        return Finding::warning(
            CHECK,
            "not needed: LEASEHOLD_KEEPER is in-process",
            "a handler that crashes or times out then keeps its key until the lease is over; the extension would free it in \
             milliseconds",
        );
    }
    if function.package_type() == Some(&PackageType::Image) {
        return Finding::unknown(CHECK, "a container image: what lies in its /opt/extensions can't be seen from here");
    }
    let layers: Vec<_> = function.layers().iter().filter_map(|layer| layer.arn()).collect();
    let name = wanted.layer.to_lowercase();
    if let Some(layer) = layers.iter().find(|arn| name_of(arn).to_lowercase().contains(&name)) {
        return Finding::ok(CHECK, safe(layer));
    }
    let advice = "without the extension every event is refused with `KeeperMissing`: add the layer";
    if layers.is_empty() {
        return Finding::problem(CHECK, "the function has no layers", advice);
    }
    let told = format!("none of its layers is called `{}`: {}", safe(wanted.layer), safe(&layers.join(", ")));
    Finding::problem(CHECK, told, format!("{advice}, or name yours with --layer"))
}

/// The layer's name in `arn:aws:lambda:REGION:ACCOUNT:layer:NAME:VERSION`.
fn name_of(arn: &str) -> &str {
    arn.split(':').nth(6).unwrap_or(arn)
}

/// The invocation's time against what is reserved for work and what may be waited.
fn time(wanted: &Wanted<'_>, function: &Function, examined: &Examined) -> Finding {
    const CHECK: &str = "timeout";
    let seconds = function.timeout().and_then(|seconds| u64::try_from(seconds).ok());
    let Some(timeout) = seconds.map(Duration::from_secs) else {
        return Finding::unknown(CHECK, "Lambda does not tell it");
    };
    let max_wait = wanted.max_wait.unwrap_or(examined.max_wait);
    let Some(reserve) = wanted.reserve.or(examined.reserve) else {
        return Finding::warning(
            CHECK,
            format!("{}, and no reserve is known", span(timeout)),
            "set LEASEHOLD_RESERVE to what the work needs, or give --reserve where the code sets it: unset it is 80 % of what \
             is left",
        );
    };
    let told = format!("{}, reserve {}, longest wait {}", span(timeout), span(reserve), span(max_wait));
    if timeout <= reserve {
        return Finding::problem(
            CHECK,
            told,
            "every event is refused with `DeadlineTooClose`: raise the timeout, or lower the reserve",
        );
    }
    if timeout < reserve + max_wait {
        return Finding::warning(
            CHECK,
            told,
            format!(
                "at most {} can be waited, as the reserve is never waited away: raise the timeout",
                span(timeout - reserve)
            ),
        );
    }
    Finding::ok(CHECK, told)
}

fn log_format(function: &Function) -> Finding {
    const CHECK: &str = "log";
    match function.logging_config().and_then(|logging| logging.log_format()) {
        Some(LogFormat::Json) => Finding::ok(CHECK, "JSON, as `leaseholdctl report` reads it"),
        _ => Finding::warning(
            CHECK,
            "its format is Text",
            "set LoggingConfig LogFormat: JSON, for `leaseholdctl report`",
        ),
    }
}
