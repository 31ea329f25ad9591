//! `table check`: everything about a table that a lock depends on.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, BillingMode, PointInTimeRecoveryStatus, TableDescription, TableStatus};
use clap::Args;

use super::permissions::{self, Tried};
use super::schema;
use super::ttl::{self, Ttl};
use crate::ended::{Ended, STATUS, Stop};
use crate::finding::{self, Finding, Status};
use crate::options::{Chosen, TableOptions};
use crate::refused::Refused;
use crate::text::safe;

/// Check a lock table: key, TTL, billing, replicas, restore, clock, permissions.
///
/// Nothing real is touched: permissions are tried by requests on a key that nobody uses, whose conditions can't hold. They
/// hold for the credentials that this command uses; take the function's role for the function's. A refused write costs a
/// write unit.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl table check --table locks
  leaseholdctl table check --table locks --profile orders-function-role --json

{STATUS}
1 with a problem; warnings and what could not be looked at change nothing, but 3 if nothing at all could be looked at."))]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) table: TableOptions,
}

/// What only something else than DynamoDB answers.
const NO_TABLE: &str = "DescribeTable was answered without a table: what answers at the endpoint is not DynamoDB; look at \
                        --endpoint-url, AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL";

impl Check {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let (chosen, store, config) = self.table.open().await?;
        let client = Client::new(&config);
        let name = chosen.table.name.clone();
        let mut findings = Vec::new();
        let answer = client.describe_table().table_name(&name).send().await;
        match answer.map_err(|error| Refused::of("DescribeTable", &error)) {
            Ok(output) => match output.table {
                Some(found) => describe(&chosen, &found, &mut findings),
                // DynamoDB describes a table or refuses.
                None => return Err(Stop::Aws(NO_TABLE.to_owned())),
            },
            Err(refused) if refused.is("ResourceNotFoundException") => {
                let region = config.region().map_or_else(String::new, |region| format!(" {region}"));
                let advice = format!(
                    "create it with `leaseholdctl table create {}`, or correct the name, the Region or the profile",
                    chosen.as_options()
                );
                let told = format!("there is no such table in this account and Region{region}");
                findings.push(Finding::problem("table", told, advice));
                return Ok(finding::tell("table", &name, &findings, json)?);
            }
            Err(refused) if refused.for_all => return Err(refused.into()),
            Err(refused) => findings.push(Finding::unknown("table", refused.told)),
        }
        let swept = ttl::look(&client, &name).await;
        let restore = restore(&client, &name).await;
        let Tried { findings: permissions, clock, ttls } = permissions::try_all(&chosen, &store, &client).await;
        findings.push(match swept {
            Ok(found) => time_to_live(&chosen, &found, &ttls),
            Err(refused) => Finding::unknown("TTL", refused.told),
        });
        findings.push(restore);
        findings.push(clock.map_or_else(
            || {
                Finding::unknown(
                    "clock",
                    "no answer had a `Date` of DynamoDB's: recovery by server time is off behind such a proxy",
                )
            },
            |ahead| ahead.finding(),
        ));
        findings.extend(permissions);
        let ended = finding::tell("table", &name, &findings, json)?;
        if findings.iter().all(|finding| finding.status == Status::Unknown) {
            let stop = Stop::Aws("nothing could be looked at".to_owned());
            return Err(if json { Stop::Told(Box::new(stop)) } else { stop });
        }
        Ok(ended)
    }
}

/// What the table's description and its TTL tell, without trying anything.
pub(crate) async fn facts(chosen: &Chosen, client: &Client) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = &chosen.table.name;
    let answer = client.describe_table().table_name(name).send().await;
    match answer.map_err(|error| Refused::of("DescribeTable", &error)) {
        Ok(output) => match output.table {
            Some(found) => describe(chosen, &found, &mut findings),
            None => findings.push(Finding::unknown("table", NO_TABLE)),
        },
        Err(refused) if refused.is("ResourceNotFoundException") => {
            findings.push(Finding::problem("table", refused.told, "deploy the stack anew: its table is gone"));
            return findings;
        }
        Err(refused) => findings.push(Finding::unknown("table", refused.told)),
    }
    findings.push(match ttl::look(client, name).await {
        Ok(found) => time_to_live(chosen, &found, &[]),
        Err(refused) => Finding::unknown("TTL", refused.told),
    });
    findings
}

/// What the table's own description tells.
fn describe(chosen: &Chosen, found: &TableDescription, findings: &mut Vec<Finding>) {
    findings.push(match found.table_status() {
        Some(TableStatus::Active | TableStatus::Updating) => Finding::ok("table", "is there"),
        status => Finding::problem(
            "table",
            format!("is {}", status.map_or("in no known state", TableStatus::as_str)),
            "wait until it is ACTIVE",
        ),
    });
    let differences = schema::differences(&chosen.table, found);
    findings.push(if differences.is_empty() {
        Finding::ok("key", format!("{}, of type S", schema::told(found)))
    } else {
        Finding::problem(
            "key",
            differences.join("; "),
            "set `key_attribute` and `sort_key` to what the table has, or take a table of its own",
        )
    });
    findings.push(if schema::billing(found) == BillingMode::PayPerRequest {
        Finding::ok("billing", "on demand")
    } else {
        let units = found.provisioned_throughput();
        let of = |units: Option<i64>| units.map_or("?".to_owned(), |units| units.to_string());
        let (read, write) =
            (units.and_then(|of| of.read_capacity_units()), units.and_then(|of| of.write_capacity_units()));
        Finding::warning(
            "billing",
            format!("provisioned, {} read and {} write units", of(read), of(write)),
            "a renewal that is throttled for most of a lease loses it: take on-demand, or leave room for two writes an \
             invocation and its renewals",
        )
    });
    findings.push(replicas(found));
}

/// A replica applies conditions to its own copy, and tells the others later.
fn replicas(found: &TableDescription) -> Finding {
    let regions: Vec<_> = found.replicas().iter().filter_map(|replica| replica.region_name()).map(safe).collect();
    if regions.is_empty() {
        return Finding::ok("replicas", "none: one Region decides who holds a key");
    }
    Finding::warning(
        "replicas",
        format!("a global table, with replicas in {}", regions.join(", ")),
        "let all functions that lock the same keys use one and the same Region: each Region applies a write's condition to its \
         own copy first, so that two Regions may each give the key away; after a failover wait for a lease before locking in \
         the other one",
    )
}

fn time_to_live(chosen: &Chosen, found: &Ttl, ttls: &[AttributeValue]) -> Finding {
    const CHECK: &str = "TTL";
    let told = found.told();
    if !ttl::is_wanted(chosen.format) {
        return match found {
            Ttl::On(_) => Finding::warning(
                CHECK,
                told,
                "rows of this format are there only while they are held and have no time to be swept at: switch it off",
            ),
            _ => Finding::ok(CHECK, format!("{told}, as it should be: a release deletes its row")),
        };
    }
    match found {
        Ttl::On(attribute) if attribute == ttl::ATTRIBUTE => unit(ttls),
        Ttl::On(attribute) => Finding::problem(
            CHECK,
            format!("on `{}`", safe(attribute)),
            format!(
                "free rows have epoch seconds in `{}`; by another attribute none is swept, or held ones are: switch it off, and \
                 an hour later on again for `{0}`",
                ttl::ATTRIBUTE
            ),
        ),
        Ttl::Off | Ttl::Ending => Finding::warning(
            CHECK,
            told,
            format!(
                "free rows then stay for ever, which costs storage and nothing else: `leaseholdctl table create {}` \
                 switches it on",
                chosen.as_options()
            ),
        ),
    }
}

/// DynamoDB reads seconds. Milliseconds lie in the year 50,000 and are never swept.
fn unit(ttls: &[AttributeValue]) -> Finding {
    const CHECK: &str = "TTL";
    const YEAR_5138: f64 = 1e11;
    let seconds = |value: &AttributeValue| {
        value.as_n().ok().and_then(|number| number.parse::<f64>().ok()).is_some_and(|number| number < YEAR_5138)
    };
    let odd = ttls.iter().filter(|value| !seconds(value)).count();
    if odd > 0 {
        return Finding::problem(
            CHECK,
            format!("on `ttl`, but {odd} of {} rows have no epoch seconds there", ttls.len()),
            "DynamoDB sweeps by seconds: another program writes this attribute; take a table of its own for locks",
        );
    }
    let looked = match ttls.len() {
        0 => "; no row had one to look at".to_owned(),
        n => format!("; {n} rows looked at have seconds there"),
    };
    Finding::ok(CHECK, format!("on `ttl`, in epoch seconds{looked}"))
}

async fn restore(client: &Client, table: &str) -> Finding {
    const CHECK: &str = "restore";
    let answer = client.describe_continuous_backups().table_name(table).send().await;
    let output = match answer.map_err(|error| Refused::of("DescribeContinuousBackups", &error)) {
        Ok(output) => output,
        Err(refused) => return Finding::unknown(CHECK, refused.told),
    };
    let recovery = output.continuous_backups_description().and_then(|of| of.point_in_time_recovery_description());
    match recovery.and_then(|of| of.point_in_time_recovery_status()) {
        Some(PointInTimeRecoveryStatus::Enabled) => Finding::warning(
            CHECK,
            "point-in-time recovery is on",
            "never restore this table under its users: old rows bring back old holders, and tokens that were given out are given \
             out again; a lock table has nothing to restore, an empty one serves",
        ),
        _ => Finding::ok(CHECK, "point-in-time recovery is off: a lock table has nothing to restore"),
    }
}
