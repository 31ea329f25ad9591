//! What a lock table's key is to be, and what one has instead.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableDescription,
};
use leasehold::session::Table;

use crate::ended::Stop;
use crate::text::safe;

/// The key attributes that the settings name, all of type S.
fn wanted(table: &Table) -> Vec<(&str, KeyType)> {
    let sort = table.sort_key.iter().map(|(name, _)| (name.as_str(), KeyType::Range));
    std::iter::once((table.key_attribute.as_str(), KeyType::Hash)).chain(sort).collect()
}

/// The key as a request for a new table describes it.
///
/// # Errors
///
/// None that options could lead to: the names were checked.
pub(super) fn definitions(table: &Table) -> Result<(Vec<AttributeDefinition>, Vec<KeySchemaElement>), Stop> {
    let build = |error: aws_sdk_dynamodb::error::BuildError| Stop::Usage(error.to_string());
    let (mut attributes, mut elements) = (Vec::new(), Vec::new());
    for (name, role) in wanted(table) {
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        attributes.push(attribute.build().map_err(build)?);
        elements.push(KeySchemaElement::builder().attribute_name(name).key_type(role).build().map_err(build)?);
    }
    Ok((attributes, elements))
}

/// What a table's key has that differs from the settings; nothing, where it fits.
pub(super) fn differences(table: &Table, found: &TableDescription) -> Vec<String> {
    let type_of = |name: &str| {
        let definition = found.attribute_definitions().iter().find(|of| of.attribute_name() == name);
        definition.map_or("?".to_owned(), |definition| definition.attribute_type().as_str().to_owned())
    };
    let mut different = Vec::new();
    for (role, what) in [(KeyType::Hash, "partition key"), (KeyType::Range, "sort key")] {
        let wanted = wanted(table).into_iter().find(|(_, of)| *of == role).map(|(name, _)| name);
        let element = found.key_schema().iter().find(|element| *element.key_type() == role);
        let has = element.map(|element| (element.attribute_name(), type_of(element.attribute_name())));
        match (wanted, has) {
            (None, None) => {}
            (Some(name), Some((has, of))) if name == has && of == "S" => {}
            (Some(name), Some((has, of))) => {
                different.push(format!("its {what} is `{}` of type {of}, not `{}` of type S", safe(has), safe(name)));
            }
            (Some(name), None) => different.push(format!("it has no {what}, and `{}` is asked for", safe(name))),
            (None, Some((has, of))) => {
                different.push(format!("it has the {what} `{}` of type {of}, and none is asked for", safe(has)));
            }
        }
    }
    different
}

/// The key as it is, for people.
pub(super) fn told(found: &TableDescription) -> String {
    let parts: Vec<_> = found
        .key_schema()
        .iter()
        .map(|element| {
            let role = if *element.key_type() == KeyType::Hash { "partition key" } else { "sort key" };
            format!("{role} `{}`", safe(element.attribute_name()))
        })
        .collect();
    parts.join(", ")
}

/// How a table is paid for. A table that was never on demand has no summary.
pub(super) fn billing(found: &TableDescription) -> BillingMode {
    let mode = found.billing_mode_summary().and_then(|summary| summary.billing_mode());
    mode.cloned().unwrap_or(BillingMode::Provisioned)
}
