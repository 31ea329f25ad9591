//! `table create`: a table with the right key, billing and TTL; one that is there already is compared.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{BillingMode, ProvisionedThroughput, TableDescription, TableStatus, Tag};
use clap::Args;
use serde_json::json;
use tokio::time::sleep;

use super::{schema, ttl};
use crate::ended::{Ended, STATUS, Stop};
use crate::options::{Chosen, TableOptions};
use crate::output::{self, Progress};
use crate::refused::Refused;
use crate::text::{safe, span};

/// How long a new table may take.
const PATIENCE: Duration = Duration::from_secs(180);
const EVERY: Duration = Duration::from_millis(500);

/// Create the lock table: key, billing, tags, and TTL on `ttl`.
///
/// A table that is there already is left as it is where it fits, but for TTL, which is switched on where it is off; billing,
/// tags and deletion protection that are not as asked are told. Where it has another key nothing is changed, and what differs
/// is told: a table's key can't be changed, take another name.
///
/// Needs dynamodb:CreateTable, DescribeTable, DescribeTimeToLive and UpdateTimeToLive, and with tags TagResource, and
/// ListTagsOfResource where the table is there already.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl table create --table locks
  leaseholdctl table create --table locks --tag team=orders --tag stage=prod --deletion-protection
  leaseholdctl table create --table locks --billing provisioned --read-capacity 5 --write-capacity 20
  leaseholdctl table create --table locks --format pydynox/1

{STATUS}"))]
pub(crate) struct Create {
    /// How the table is paid for: by request, or for capacity that is held ready.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Billing::OnDemand)]
    billing: Billing,

    /// Read capacity units, with --billing provisioned.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i64).range(1..))]
    read_capacity: Option<i64>,

    /// Write capacity units, with --billing provisioned.
    #[arg(long, value_name = "UNITS", value_parser = clap::value_parser!(i64).range(1..))]
    write_capacity: Option<i64>,

    /// A tag; may be given more than once.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    tags: Vec<(String, String)>,

    /// Let nobody delete the table before this is taken off again.
    #[arg(long)]
    deletion_protection: bool,

    #[command(flatten)]
    pub(crate) table: TableOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Billing {
    OnDemand,
    Provisioned,
}

fn tag(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} has no `=`: write NAME=VALUE"))?;
    if name.is_empty() { Err("a tag needs a name".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

impl Create {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let throughput = self.throughput()?;
        let (chosen, _, config) = self.table.open().await?;
        let client = Client::new(&config);
        let created = self.create(&client, &chosen, throughput.clone()).await?;
        let found = ready(&client, &chosen.table.name).await?;
        let differences = if created { Vec::new() } else { schema::differences(&chosen.table, &found) };
        let mut notes = Vec::new();
        let mut ttl_told = None;
        if differences.is_empty() {
            ttl_told = Some(self.ttl(&client, &chosen, &mut notes).await?);
            if !created {
                notes.extend(self.not_as_asked(&client, &found, throughput.as_ref()).await);
            }
        }
        self.tell(json, &chosen, created, &found, &differences, ttl_told.as_deref(), &notes)?;
        Ok(if differences.is_empty() && notes.is_empty() { Ended::Fine } else { Ended::Problem })
    }

    fn throughput(&self) -> Result<Option<ProvisionedThroughput>, Stop> {
        match (self.billing, self.read_capacity, self.write_capacity) {
            (Billing::OnDemand, None, None) => Ok(None),
            (Billing::OnDemand, ..) => {
                Err(Stop::Usage("capacity is for --billing provisioned; on demand takes none".to_owned()))
            }
            (Billing::Provisioned, Some(read), Some(write)) => {
                let built = ProvisionedThroughput::builder().read_capacity_units(read).write_capacity_units(write);
                built.build().map(Some).map_err(|error| Stop::Usage(error.to_string()))
            }
            (Billing::Provisioned, ..) => {
                Err(Stop::Usage("--billing provisioned needs --read-capacity and --write-capacity".to_owned()))
            }
        }
    }

    /// Whether it was created; `false` where there is one of that name.
    async fn create(
        &self,
        client: &Client,
        chosen: &Chosen,
        throughput: Option<ProvisionedThroughput>,
    ) -> Result<bool, Stop> {
        let (attributes, elements) = schema::definitions(&chosen.table)?;
        let mode = if throughput.is_some() { BillingMode::Provisioned } else { BillingMode::PayPerRequest };
        let mut request = client.create_table().table_name(&chosen.table.name).billing_mode(mode);
        request = request.set_attribute_definitions(Some(attributes)).set_key_schema(Some(elements));
        request = request.set_provisioned_throughput(throughput);
        request = request.set_deletion_protection_enabled(self.deletion_protection.then_some(true));
        for (name, value) in &self.tags {
            let tag = Tag::builder().key(name).value(value).build();
            request = request.tags(tag.map_err(|error| Stop::Usage(error.to_string()))?);
        }
        match request.send().await.map_err(|error| Refused::of("CreateTable", &error)) {
            Ok(_) => Ok(true),
            Err(refused) if refused.is("ResourceInUseException") => Ok(false),
            Err(refused) => Err(refused.into()),
        }
    }

    /// What was asked for and a table that was there already does not have. It is told, and left as it is.
    async fn not_as_asked(
        &self,
        client: &Client,
        found: &TableDescription,
        throughput: Option<&ProvisionedThroughput>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if self.deletion_protection && found.deletion_protection_enabled() != Some(true) {
            notes.push(
                "its deletion protection is off, and was left so: `aws dynamodb update-table` switches it on"
                    .to_owned(),
            );
        }
        if let Some(asked) = throughput {
            let has = found.provisioned_throughput();
            let has = has.map(|has| (has.read_capacity_units().unwrap_or(0), has.write_capacity_units().unwrap_or(0)));
            let provisioned = schema::billing(found) == BillingMode::Provisioned;
            if !provisioned || has != Some((asked.read_capacity_units(), asked.write_capacity_units())) {
                notes.push(
                    "its billing is not as asked, and was left so: `aws dynamodb update-table` changes it".to_owned(),
                );
            }
        }
        if !self.tags.is_empty() {
            notes.extend(self.tags_not_set(client, found).await);
        }
        notes
    }

    async fn tags_not_set(&self, client: &Client, found: &TableDescription) -> Option<String> {
        let answer = client.list_tags_of_resource().resource_arn(found.table_arn().unwrap_or_default()).send().await;
        let has = match answer.map_err(|error| Refused::of("ListTagsOfResource", &error)) {
            Ok(output) => output.tags.unwrap_or_default(),
            Err(refused) => {
                return Some(format!("its tags were left as they are, whatever they are: {}", safe(&refused.told)));
            }
        };
        let is_missing =
            |(name, value): &&(String, String)| !has.iter().any(|tag| tag.key() == name && tag.value() == value);
        let missing: Vec<_> =
            self.tags.iter().filter(is_missing).map(|(name, value)| format!("{name}={value}")).collect();
        (!missing.is_empty()).then(|| {
            format!(
                "its tags were left as they are, without {}: `aws dynamodb tag-resource` sets them",
                missing.join(", ")
            )
        })
    }

    async fn ttl(&self, client: &Client, chosen: &Chosen, notes: &mut Vec<String>) -> Result<String, Stop> {
        let name = &chosen.table.name;
        let found = ttl::look(client, name).await?;
        match &found {
            ttl::Ttl::Off if ttl::is_wanted(chosen.format) => {
                ttl::switch_on(client, name).await?;
                return Ok(format!("on `{}`", ttl::ATTRIBUTE));
            }
            ttl::Ttl::On(attribute) if attribute != ttl::ATTRIBUTE && ttl::is_wanted(chosen.format) => {
                notes.push(format!(
                    "its TTL is on `{}`, which is no attribute of free rows: they would never be swept; switch it off, and \
                     an hour later on again for `{}`", safe(attribute), ttl::ATTRIBUTE
                ));
            }
            ttl::Ttl::Ending => notes.push("its TTL is just being switched off: run this again in an hour".to_owned()),
            _ => {}
        }
        Ok(found.told())
    }

    #[allow(clippy::too_many_arguments, reason = "all that there is to tell")]
    fn tell(
        &self,
        json: bool,
        chosen: &Chosen,
        created: bool,
        found: &TableDescription,
        differences: &[String],
        ttl: Option<&str>,
        notes: &[String],
    ) -> Result<(), Stop> {
        let name = &chosen.table.name;
        let billing = schema::billing(found).as_str().to_owned();
        if json {
            return Ok(output::document(&json!({
                "table": name, "arn": found.table_arn(), "created": created, "key": schema::told(found), "billing": billing,
                "ttl": ttl, "differences": differences, "notes": notes,
            }))?);
        }
        match (created, differences.is_empty()) {
            (true, _) => output::line(&format!("{}: created", safe(name)))?,
            (false, true) => output::line(&format!("{}: was there already, with this key", safe(name)))?,
            (false, false) => {
                output::line(&format!("{}: is there already, and is another table; nothing was changed", safe(name)))?;
            }
        }
        for difference in differences {
            output::line(&format!("  {difference}"))?;
        }
        if differences.is_empty() {
            let ttl = ttl.unwrap_or("unknown");
            output::line(&format!("  {}, billing {billing}, TTL {ttl}", schema::told(found)))?;
            if created {
                output::line(&format!("  set LEASEHOLD_TABLE={} on every function that locks with it", safe(name)))?;
            }
        } else {
            output::line("  take another --table, or name the key that this one has: --key-attribute, --sort-key")?;
        }
        for note in notes {
            output::line(&format!("  {note}"))?;
        }
        Ok(())
    }
}

/// Waits until the table can be used.
async fn ready(client: &Client, table: &str) -> Result<TableDescription, Stop> {
    let begun = Instant::now();
    let mut progress = Progress::new();
    loop {
        let answer = client.describe_table().table_name(table).send().await;
        let output = answer.map_err(|error| Refused::of("DescribeTable", &error))?;
        let Some(described) = output.table else {
            return Err(Stop::Aws("DescribeTable was answered without a table".to_owned()));
        };
        if matches!(described.table_status(), Some(TableStatus::Active | TableStatus::Updating)) {
            return Ok(described);
        }
        if begun.elapsed() > PATIENCE {
            return Err(Stop::Aws(format!("`{table}` is not ACTIVE after {}; run this again", span(PATIENCE))));
        }
        progress.tell(&format!("waiting for the table, for {}", span(begun.elapsed())));
        sleep(EVERY).await;
    }
}
