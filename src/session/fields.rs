//! A line's fields, taken by their names, so that what is wrong with one is told with its name.
//!
//! A state must come out as it went in, down to the digits of its numbers, so its field alone is kept as text.

use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Error, Map, Value};

use super::raw_state::RawState;
use crate::protocol::HolderInfo;

/// The field of a line that has a state.
const STATE: &str = "value";

/// The fields of one object.
#[derive(Debug)]
pub(super) struct Fields {
    /// What stands before the fields' names where they are told.
    within: &'static str,
    values: Map<String, Value>,
    state: Option<RawState>,
}

impl Fields {
    /// A field that has to be there.
    pub(super) fn need<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T, Error> {
        match self.values.get_mut(name) {
            Some(value) => read(self.within, name, value.take()),
            None => Err(Error::missing_field(name)),
        }
    }

    /// A field with a value that stands in for it.
    pub(super) fn or_default<T: DeserializeOwned + Default>(&mut self, name: &'static str) -> Result<T, Error> {
        if self.values.contains_key(name) { self.need(name) } else { Ok(T::default()) }
    }

    /// Who holds a row, where it says so.
    pub(super) fn holder(&mut self) -> Result<Option<HolderInfo>, Error> {
        let Some(mut holder) = self.object("holder", "holder.")? else { return Ok(None) };
        Ok(Some(HolderInfo {
            function: holder.or_default("function")?,
            version: holder.or_default("version")?,
            request_id: holder.or_default("request_id")?,
            template: holder.or_default("template")?,
            note: holder.or_default("note")?,
            acquired_at: holder.or_default("acquired_at")?,
            parked: holder.or_default("parked")?,
        }))
    }

    /// The object in a field, which may be `null`, or not there at all.
    fn object(&mut self, name: &'static str, within: &'static str) -> Result<Option<Self>, Error> {
        match self.values.get_mut(name).map(Value::take) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(values)) => Ok(Some(Self { within, values, state: None })),
            Some(_) => Err(Error::custom(format_args!("`{}{name}`: it must be an object", self.within))),
        }
    }

    /// The line's state, if it has one.
    pub(super) const fn state(&mut self) -> Option<RawState> {
        self.state.take()
    }

    /// All that the line has, for what is an object of its own and has objects in these fields.
    pub(super) fn all<T: DeserializeOwned>(&mut self, objects: &[&'static str]) -> Result<T, Error> {
        for name in objects {
            self.is_no_list(name)?;
        }
        let values = std::mem::take(&mut self.values);
        traced(Value::Object(values)).map_err(|(path, error)| match path.as_str() {
            "." => Error::custom(in_words(&error.to_string())),
            path => wrong(self.within, path, &error),
        })
    }

    /// A field that has to be there, and is an object.
    pub(super) fn need_object<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<T, Error> {
        self.is_no_list(name)?;
        let value = self.need(name)?;
        traced(value).map_err(|(path, error)| match path.as_str() {
            "." => wrong(self.within, name, &error),
            path => wrong(self.within, &format!("{name}.{path}"), &error),
        })
    }

    /// A list would be read as an object without names, in the order in which they stand in the source.
    fn is_no_list(&self, name: &'static str) -> Result<(), Error> {
        match self.values.get(name) {
            Some(Value::Array(_)) => {
                Err(Error::custom(format_args!("`{}{name}`: invalid type: sequence, expected an object", self.within)))
            }
            _ => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        line.deserialize_map(OfLine)
    }
}

struct OfLine;

impl<'de> Visitor<'de> for OfLine {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a `type`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let (mut values, mut state) = (Map::new(), None);
        while let Some(name) = map.next_key::<String>()? {
            let stands_twice = if name == STATE {
                state.replace(map.next_value::<RawState>()?).is_some()
            } else {
                let value = map.next_value::<Value>()?;
                values.insert(name.clone(), value).is_some()
            };
            if stands_twice {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
        }
        Ok(Fields { within: "", values, state: state.and_then(RawState::unless_null) })
    }
}

fn read<T: DeserializeOwned>(within: &str, name: &str, value: Value) -> Result<T, Error> {
    T::deserialize(value).map_err(|error| wrong(within, name, &error))
}

/// Reads an object, and tells where in it an error is.
fn traced<T: DeserializeOwned>(value: Value) -> Result<T, (String, Error)> {
    serde_path_to_error::deserialize(value).map_err(|error| (error.path().to_string(), error.into_inner()))
}

/// The error for a word that is none of those that are known in this field.
pub(super) fn unknown(name: &str, word: &str, known: &'static [&'static str]) -> Error {
    wrong("", name, &Error::unknown_variant(word, known))
}

/// The error in the words of the line: its field, and what is expected there.
fn wrong(within: &str, name: &str, error: &Error) -> Error {
    Error::custom(format_args!("`{within}{name}`: {}", in_words(&error.to_string())))
}

/// What a type of Rust's is in a line.
fn in_words(reason: &str) -> String {
    let Some((before, expected)) = reason.rsplit_once(", expected ") else { return reason.to_owned() };
    let words = match expected {
        "u64" => "an integer from 0 to 2^64 - 1",
        "u32" => "an integer from 0 to 2^32 - 1",
        "a map" => "an object",
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
        serde_json::from_str::<T>(line).unwrap_err().to_string()
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
            (acquire(r#"["locks","key"]"#), "`table`: invalid type: sequence, expected an object"),
            (
                r#"{"type":"begin","versions":[1,1],"request_id":"r"}"#.to_owned(),
                "`versions`: invalid type: sequence, expected an object",
            ),
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
