//! What an `acquire` says: the key, its table, the wait, and how the lease is to be held.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::{Format, HolderInfo};

/// One acquisition, with all its settings: the keeper has none of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acquire {
    /// Names the acquisition within its session.
    pub id: u64,
    /// What is locked.
    pub key: String,
    /// Where its row is.
    pub table: Table,
    /// How long the lease lasts unrenewed.
    pub lease_ms: u64,
    /// How long may be waited; 0 tries once.
    pub wait_ms: u64,
    /// After how long no answer counts any more; `None` where the deadline is unknown.
    #[serde(default)]
    pub answer_within_ms: Option<u64>,
    /// How a held row is polled; by tickets where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling: Option<PollingMs>,
    /// What happens to the lease when the handler did not finish.
    #[serde(default)]
    pub on_crash: OnCrash,
    /// Whether DynamoDB's `Date` headers serve.
    #[serde(default = "yes")]
    pub server_time: bool,
    /// For how long the lease is renewed where no deadline ends it.
    pub max_hold_ms: u64,
    /// For how long the lease is renewed without a word of `progress`; `None` where none is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_silence_ms: Option<u64>,
    /// For how long a state that is saved under this lease is kept; without end unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_retention_ms: Option<u64>,
    /// Attributes that the row has for people while it is held.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// What people are told.
    pub holder: HolderInfo,
}

pub(super) const fn yes() -> bool {
    true
}

/// The lock table and the names of its key attributes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Table {
    /// The table's name or ARN.
    pub name: String,
    /// The partition key's attribute, `key` unless set.
    pub key_attribute: String,
    /// The sort key's attribute and its fixed value, where the table has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort_key: Option<(String, String)>,
    /// The row format that the table speaks, by name: `leasehold/1` unless set.
    #[serde(default = "usual_format", skip_serializing_if = "is_usual_format")]
    pub format: String,
}

/// How many attributes a row may have for people, and how long their names and values may be: they are written with every
/// acquisition.
const MOST_ATTRIBUTES: usize = 10;
const LONGEST_ATTRIBUTE_NAME: usize = 255;
pub(crate) const LONGEST_ATTRIBUTE: usize = 1024;

/// What rows of some format have, state items among them, or may come to have.
const RESERVED_ATTRIBUTES: [&str; 27] = [
    "key",
    "format",
    "protocol",
    "owner",
    "version",
    "lease_ms",
    "lease",
    "expires_at",
    "expires",
    "holder",
    "ttl",
    "data",
    "state",
    "counter",
    "value",
    "write",
    "written_at",
    "token",
    "mode",
    "count",
    "parked",
    "queue",
    "members",
    "note",
    "tickets",
    "served",
    "hold_ms",
];

fn usual_format() -> String {
    Format::default().name().to_owned()
}

fn is_usual_format(format: &str) -> bool {
    format == Format::default().name()
}

impl Table {
    /// A table of this name in the usual format, whose partition key is `key` and which has no sort key.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), key_attribute: "key".to_owned(), sort_key: None, format: usual_format() }
    }

    /// The same table in another row format.
    #[must_use]
    pub fn speaking(self, format: Format) -> Self {
        Self { format: format.name().to_owned(), ..self }
    }

    /// What is wrong with these attributes for people on a row of this table, with what to change.
    pub(crate) fn misplaced(&self, attributes: &BTreeMap<String, String>) -> Option<String> {
        if attributes.len() > MOST_ATTRIBUTES {
            let count = attributes.len();
            return Some(format!("there are {count}, and a row has at most {MOST_ATTRIBUTES}: leave some out"));
        }
        let is_key =
            |name: &str| name == self.key_attribute || self.sort_key.as_ref().is_some_and(|(sort, _)| sort == name);
        attributes.iter().find_map(|(name, value)| {
            if is_key(name) {
                return Some(format!("`{name}` is one of the table's keys: take another name"));
            }
            if RESERVED_ATTRIBUTES.contains(&name.as_str()) {
                return Some(format!("`{name}` is reserved for lock rows, now or later: take another name"));
            }
            if name.is_empty() || name.len() > LONGEST_ATTRIBUTE_NAME {
                let bytes = name.len();
                return Some(format!("a name has {bytes} bytes: take 1 to {LONGEST_ATTRIBUTE_NAME}"));
            }
            let bytes = value.len();
            if name.chars().chain(value.chars()).any(char::is_control) {
                return Some(format!("`{name}` or its value has control characters: leave them out"));
            }
            let fits = (1..=LONGEST_ATTRIBUTE).contains(&bytes);
            (!fits).then(|| format!("the value of `{name}` has {bytes} bytes: take 1 to {LONGEST_ATTRIBUTE}"))
        })
    }

    /// What in this table's description its row format can't serve, with what to change.
    pub(crate) fn misfit(&self, format: Format) -> Option<String> {
        let key = format.fixed_key()?;
        (self.key_attribute != key || self.sort_key.is_some()).then(|| {
            format!("tables of the row format `{format}` have the partition key `{key}` and no sort key: set no others")
        })
    }
}

/// How a held row is polled by the clock alone: after a delay that doubles, with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollingMs {
    /// The first delay.
    pub first: u64,
    /// The longest delay.
    pub max: u64,
}

impl Default for PollingMs {
    fn default() -> Self {
        Self { first: 50, max: 500 }
    }
}

/// What happens to a lease whose handler did not finish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnCrash {
    /// It is freed at once.
    #[default]
    Release,
    /// It ends by itself, for work whose side effects may still be under way.
    Expire,
}
