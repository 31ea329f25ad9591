//! Which field of a line is wrong: what serde says of a tagged message names types of Rust and no place.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Map, Value};

/// How many fields of an object are looked at: the longest message has fewer, and a hostile line may have thousands.
const MOST_FIELDS: usize = 32;

/// The same error in the words of the line: its field, and what is expected there.
pub(super) fn told<T: DeserializeOwned>(line: &[u8], error: serde_json::Error) -> serde_json::Error {
    if !error.is_data() {
        return error;
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return error };
    if !value.is_object() {
        return serde_json::Error::custom("it must be an object with a `type`");
    }
    // A field that stands twice is not there any more.
    let Err(plain) = serde_json::from_value::<T>(value.clone()) else { return error };
    let reason = in_words(&plain.to_string());
    match field::<T>(&value, &plain.to_string()) {
        Some(field) => serde_json::Error::custom(format!("`{field}`: {reason}")),
        None => serde_json::Error::custom(reason),
    }
}

/// The field without which the line fails in another way, or not at all; and within it, if it has fields, the same.
fn field<T: DeserializeOwned>(line: &Value, error: &str) -> Option<String> {
    let fails_otherwise =
        |line: Value| serde_json::from_value::<T>(line).err().is_none_or(|other| other.to_string() != error);
    let outer = line.as_object()?;
    if let Some(missing) = error.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        // Its own name is in the message; only in which object it is missing is not.
        let mut objects = outer.iter().take(MOST_FIELDS).filter(|(_, value)| value.is_object());
        let lacking = objects.find(|(name, _)| {
            let mut line = line.clone();
            line[name.as_str()][missing] = Value::Null;
            fails_otherwise(line)
        });
        return lacking.map(|(name, _)| name.clone());
    }
    // Without its type a line always fails otherwise.
    let (of_type, others): (Vec<_>, Vec<_>) = outer.keys().take(MOST_FIELDS).partition(|name| *name == "type");
    let culprit = others.into_iter().chain(of_type).find(|name| fails_otherwise(without(outer, name)))?;
    let Some(Value::Object(inner)) = outer.get(culprit) else { return Some(culprit.clone()) };
    let within = inner.keys().take(MOST_FIELDS).find(|name| {
        let mut line = outer.clone();
        line.insert(culprit.clone(), without(inner, name));
        fails_otherwise(Value::Object(line))
    });
    Some(within.map_or_else(|| culprit.clone(), |within| format!("{culprit}.{within}")))
}

fn without(fields: &Map<String, Value>, name: &str) -> Value {
    let mut fields = fields.clone();
    fields.remove(name);
    Value::Object(fields)
}

/// What a type of Rust's is in a line.
fn in_words(reason: &str) -> String {
    let Some((before, expected)) = reason.rsplit_once(", expected ") else { return reason.to_owned() };
    let words = match expected {
        "u64" => "an integer from 0 to 2^64 - 1",
        "u32" => "an integer from 0 to 2^32 - 1",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    format!("{before}, expected {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{FromKeeper, ToKeeper};

    fn said<T: DeserializeOwned + std::fmt::Debug>(line: &str) -> String {
        let error = serde_json::from_str::<T>(line).unwrap_err();
        told::<T>(line.as_bytes(), error).to_string()
    }

    #[test]
    fn the_field_is_named_and_no_type_of_rust() {
        let acquire = |table: &str| {
            format!(
                r#"{{"type":"acquire","id":1,"key":"k","table":{table},"lease_ms":1,"wait_ms":0,"max_hold_ms":1,"holder":{{}}}}"#
            )
        };
        for (line, expected) in [
            (
                r#"{"type":"release","id":"one","reason":"finished"}"#.to_owned(),
                "`id`: invalid type: string \"one\", expected an integer",
            ),
            (
                r#"{"type":"release","id":1,"reason":"done"}"#.to_owned(),
                "`reason`: unknown variant `done`, expected one of `finished`",
            ),
            (r#"{"type":"dance"}"#.to_owned(), "`type`: unknown variant `dance`"),
            (r#"{"type":"check","owner":"me"}"#.to_owned(), "`owner`: "),
            (r#"{"type":"count"}"#.to_owned(), "missing field `id`"),
            (acquire("\"locks\""), "`table`: invalid type: string \"locks\", expected an object"),
            (
                acquire(r#"{"name":7,"key_attribute":"key"}"#),
                "`table.name`: invalid type: integer `7`, expected a string",
            ),
            (acquire(r#"{"name":"locks"}"#), "`table`: missing field `key_attribute`"),
            ("[1,2]".to_owned(), "it must be an object with a `type`"),
        ] {
            let said = said::<ToKeeper>(&line);
            assert!(said.starts_with(expected) || said.ends_with(expected), "{said}");
            assert!(!said.contains("struct") && !said.contains("u64") && !said.contains("enum"), "{said}");
        }
        assert!(said::<FromKeeper>(r#"{"type":"began","version":"1"}"#).starts_with("`version`: "));
        let granted = r#"{"type":"granted","id":1,"owner":"00000000-0000-4000-8000-000000000000","valid_for_ms":1,"waited_ms":1,"attempts":-1}"#;
        assert!(
            said::<FromKeeper>(granted).starts_with("`attempts`: invalid value"),
            "{}",
            said::<FromKeeper>(granted)
        );
    }

    #[test]
    fn what_stands_twice_is_told_as_it_is() {
        assert!(said::<ToKeeper>(r#"{"type":"count","id":1,"id":2}"#).starts_with("duplicate field `id`"));
    }
}
