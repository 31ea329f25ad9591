//! Tables of a user's own, filled from files of JSON: what a function works on.

use std::collections::HashMap;
use std::path::Path;

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold_sandbox::{Row, Tables};
use serde_json::{Map, Value};

use super::CommandError;

/// `TABLE=FILE`, as the command line has it.
#[derive(Debug, Clone)]
pub(super) struct Items {
    pub(super) table: String,
    file: String,
}

pub(super) fn parse(text: &str) -> Result<Items, String> {
    match text.split_once('=') {
        Some((table, file)) if !table.is_empty() && !file.is_empty() => {
            Ok(Items { table: super::names::table(table)?, file: file.to_owned() })
        }
        _ => Err(format!("{text:?} is no TABLE=FILE")),
    }
}

impl Items {
    /// Creates the table, with the partition key `key`, and puts the file's items there.
    pub(super) async fn put(&self, tables: &Tables) -> Result<(), CommandError> {
        let rows = read(Path::new(&self.file))
            .map_err(|problem| CommandError::Usage(format!("the items {} {problem}", self.file)))?;
        tables.create_lock_table(self.table.as_str()).await?;
        for row in rows {
            tables.put(&self.table, row).await?;
        }
        Ok(())
    }
}

fn read(file: &Path) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("could not be read: {error}"))?;
    let items: Vec<Map<String, Value>> =
        serde_json::from_str(&text).map_err(|error| format!("are no JSON array of objects: {error}"))?;
    let has_key = |item: &Map<String, Value>| item.get("key").is_some_and(Value::is_string);
    if !items.iter().all(has_key) {
        return Err("need a text named `key` each, for it is their table's key".to_owned());
    }
    Ok(items.into_iter().map(attributes).collect())
}

fn attributes(object: Map<String, Value>) -> HashMap<String, AttributeValue> {
    object.into_iter().map(|(name, value)| (name, attribute(value))).collect()
}

fn attribute(value: Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(yes) => AttributeValue::Bool(yes),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text),
        Value::Array(list) => AttributeValue::L(list.into_iter().map(attribute).collect()),
        Value::Object(object) => AttributeValue::M(attributes(object)),
    }
}
