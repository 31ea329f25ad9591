//! Which table is meant: the library's own settings, as options and as its variables.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_config::SdkConfig;
use clap::Args;
use leasehold::operator;
use leasehold::protocol::Format;
use leasehold::session::Table;
use leasehold::store::DynamoDb;

use crate::aws::AwsOptions;
use crate::ended::Stop;

/// DynamoDB's limit for a partition key, in bytes.
const LONGEST_KEY: usize = 2_048;

#[derive(Clone, Debug, Args)]
pub(crate) struct TableOptions {
    /// The lock table's name or ARN.
    #[arg(long, env = "LEASEHOLD_TABLE", value_name = "NAME", help_heading = "Table", hide_env_values = true)]
    table: String,

    /// The table's partition key.
    #[arg(long, env = "LEASEHOLD_KEY_ATTRIBUTE", value_name = "NAME", help_heading = "Table", hide_env_values = true)]
    key_attribute: Option<String>,

    /// The table's sort key and the fixed value it has on locks.
    #[arg(long, env = "LEASEHOLD_SORT_KEY", value_name = "NAME=VALUE", help_heading = "Table", hide_env_values = true)]
    sort_key: Option<String>,

    /// The row format that the table speaks: leasehold/1, or pydynox/1.
    #[arg(long, env = "LEASEHOLD_FORMAT", value_name = "NAME", help_heading = "Table", hide_env_values = true)]
    format: Option<String>,

    /// What stands in front of every key, without the `/` behind it.
    #[arg(long, env = "LEASEHOLD_NAMESPACE", value_name = "NAME", help_heading = "Table", hide_env_values = true)]
    namespace: Option<String>,

    #[command(flatten)]
    pub(crate) aws: AwsOptions,
}

/// The table as the library knows it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) table: Table,
    pub(crate) format: Format,
    namespace: Option<String>,
}

impl TableOptions {
    /// Checks the options as the library checks its settings.
    ///
    /// # Errors
    ///
    /// [`Stop::Usage`] with everything that is wrong.
    pub(crate) fn choose(&self) -> Result<Chosen, Stop> {
        let set = [
            ("LEASEHOLD_TABLE", Some(&self.table)),
            ("LEASEHOLD_KEY_ATTRIBUTE", self.key_attribute.as_ref()),
            ("LEASEHOLD_SORT_KEY", self.sort_key.as_ref()),
            ("LEASEHOLD_FORMAT", self.format.as_ref()),
            ("LEASEHOLD_NAMESPACE", self.namespace.as_ref()),
        ];
        let variables: BTreeMap<_, _> =
            set.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.clone()))).collect();
        let examined = operator::examine(variables);
        if !examined.problems.is_empty() {
            return Err(Stop::Usage(
                examined.problems.iter().map(|told| as_option(told)).collect::<Vec<_>>().join("; "),
            ));
        }
        let format = examined.table.format.parse::<Format>().map_err(|unknown| Stop::Usage(unknown.to_string()))?;
        let namespace = examined.namespace.map(|namespace| namespace.to_string());
        Ok(Chosen { table: examined.table, format, namespace })
    }

    /// The table and a store to ask about it.
    ///
    /// # Errors
    ///
    /// [`Stop::Usage`] for options that can't be used.
    pub(crate) async fn open(&self) -> Result<(Chosen, DynamoDb, SdkConfig), Stop> {
        let chosen = self.choose()?;
        let config = self.aws.config(&["DYNAMODB"]).await?;
        Ok((chosen, DynamoDb::with_config(config.clone()), config))
    }
}

impl Chosen {
    /// A table with this name and everything else as usual.
    pub(crate) fn usual(table: &str) -> Self {
        Self { table: Table::new(table), format: Format::default(), namespace: None }
    }

    /// What stands in front of a key, or of a part of one, in the table.
    pub(crate) fn full_key(&self, key: &str) -> String {
        self.namespace.as_ref().map_or_else(|| key.to_owned(), |namespace| format!("{namespace}/{key}"))
    }

    /// One lock's key as it stands in the table.
    ///
    /// # Errors
    ///
    /// [`Stop::Usage`] where no lock can have it.
    pub(crate) fn key_of_lock(&self, key: &str) -> Result<String, Stop> {
        let full = self.full_key(key);
        if key.is_empty() {
            return Err(Stop::Usage(
                "the key is empty: give a lock's key, as `leaseholdctl list` prints it".to_owned(),
            ));
        }
        if full.len() > LONGEST_KEY {
            let told = format!(
                "the key has {} bytes, its namespace among them, and a lock's has at most {LONGEST_KEY}",
                full.len()
            );
            return Err(Stop::Usage(told));
        }
        Ok(full)
    }

    /// The options that name this table on another command line.
    pub(crate) fn as_options(&self) -> String {
        let quoted = crate::text::quoted;
        let mut told = format!("--table {}", quoted(&self.table.name));
        if self.table.key_attribute != "key" {
            told.push_str(&format!(" --key-attribute {}", quoted(&self.table.key_attribute)));
        }
        if let Some((name, value)) = &self.table.sort_key {
            told.push_str(&format!(" --sort-key {}", quoted(&format!("{name}={value}"))));
        }
        if self.format != Format::default() {
            told.push_str(&format!(" --format {}", self.format));
        }
        if let Some(namespace) = &self.namespace {
            told.push_str(&format!(" --namespace {namespace}"));
        }
        told
    }
}

/// The library tells of variables; here they are options as well.
fn as_option(told: &str) -> String {
    let names = ["TABLE", "KEY_ATTRIBUTE", "SORT_KEY", "FORMAT", "NAMESPACE"];
    let found = names.into_iter().find(|name| told.starts_with(&format!("LEASEHOLD_{name}:")));
    found.map_or_else(
        || told.to_owned(),
        |name| format!("--{}{}", name.to_lowercase().replace('_', "-"), &told["LEASEHOLD_".len() + name.len()..]),
    )
}

/// Reads a duration as the library's settings spell it: `500ms`, `30s`, `2m`, `1h`.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: write a number and a unit, such as `500ms`, `30s` or `2m`");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// Reads a lease's length, within the library's bounds.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    let (least, most) = (Duration::from_millis(500), Duration::from_secs(86_400));
    let lease = duration(text)?;
    if (least..=most).contains(&lease) {
        Ok(lease)
    } else {
        Err(format!("{text} is no lease's length: one lasts 500ms to 24h"))
    }
}

/// Reads how long to wait between two looks: without a pause a table would be scanned without end.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    let pause = duration(text)?;
    if pause >= Duration::from_millis(10) {
        Ok(pause)
    } else {
        Err(format!("{text} is no pause: 10ms is the shortest"))
    }
}
