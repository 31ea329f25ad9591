//! TTL: by which attribute DynamoDB is to sweep free rows, and by which it does.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{TimeToLiveDescription, TimeToLiveSpecification, TimeToLiveStatus};
use leasehold::protocol::Format;

use crate::refused::Refused;
use crate::text::safe;

/// The attribute that free rows of `leasehold/1` have, in epoch seconds.
pub(super) const ATTRIBUTE: &str = "ttl";

/// What a table does by itself with old rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ttl {
    Off,
    /// On, or being switched on, by this attribute.
    On(String),
    /// Being switched off.
    Ending,
}

/// Whether free rows of this format are to be swept: where a release deletes there are none.
pub(super) fn is_wanted(format: Format) -> bool {
    !format.abilities().release_deletes
}

/// Asks for it. Needs `dynamodb:DescribeTimeToLive`.
pub(super) async fn look(client: &Client, table: &str) -> Result<Ttl, Refused> {
    let answer = client.describe_time_to_live().table_name(table).send().await;
    let output = answer.map_err(|error| Refused::of("DescribeTimeToLive", &error))?;
    Ok(output.time_to_live_description().map_or(Ttl::Off, read))
}

fn read(described: &TimeToLiveDescription) -> Ttl {
    match (described.time_to_live_status(), described.attribute_name()) {
        (Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling), Some(name)) => Ttl::On(name.to_owned()),
        (Some(TimeToLiveStatus::Disabling), _) => Ttl::Ending,
        _ => Ttl::Off,
    }
}

/// Switches it on. Needs `dynamodb:UpdateTimeToLive`.
pub(super) async fn switch_on(client: &Client, table: &str) -> Result<(), Refused> {
    let specification = TimeToLiveSpecification::builder().attribute_name(ATTRIBUTE).enabled(true).build();
    let specification = specification.map_err(|error| Refused::unsent("UpdateTimeToLive", &error))?;
    let sent = client.update_time_to_live().table_name(table).time_to_live_specification(specification).send().await;
    sent.map(drop).map_err(|error| Refused::of("UpdateTimeToLive", &error))
}

impl Ttl {
    pub(super) fn told(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::On(attribute) => format!("on `{}`", safe(attribute)),
            Self::Ending => "being switched off".to_owned(),
        }
    }
}
