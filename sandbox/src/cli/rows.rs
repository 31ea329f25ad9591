//! Rows of a table as JSON lines.

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold_sandbox::Row;
use serde_json::{Map, Value, json};

/// A row with its attributes in the order of their names.
pub(super) fn json_of(row: &Row) -> Value {
    let mut names: Vec<&String> = row.keys().collect();
    names.sort();
    Value::Object(names.into_iter().map(|name| (name.clone(), value(&row[name]))).collect::<Map<_, _>>())
}

fn value(attribute: &AttributeValue) -> Value {
    match attribute {
        AttributeValue::S(text) => json!(text),
        // As it is written: a number may have more digits than a float.
        AttributeValue::N(number) => serde_json::from_str(number).unwrap_or_else(|_| json!(number)),
        AttributeValue::Bool(yes) => json!(yes),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::L(list) => list.iter().map(value).collect(),
        AttributeValue::M(map) => json_of(map),
        other => json!(format!("{other:?}")),
    }
}
