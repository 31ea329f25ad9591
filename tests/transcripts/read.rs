//! A transcript of a session: who says what, and what happens in between. Read by the keeper's tests, which say the layer's
//! lines and compare the keeper's, and by the layer's tests, which do it the other way round.
//!
//! A transcript is a file of JSON lines. The first has what it is `about`. Each other one has what the `layer` or the
//! `keeper` says, and `on` which connection; the text `hangs up` in place of a line ends the connection, `connects` opens
//! it without a word. A step `then` tells what happens around the session.
//!
//! What varies is a placeholder: `<number:7>` any number, `<text:…>` any text, `<deadline>` a moment in the future, and
//! any other `<name>` is an owner that stands for the same one each time. What follows the colon is what the side that is
//! played says there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A line of the layer's on this connection.
    Layer(u64, Line),
    /// A line of the keeper's on this connection.
    Keeper(u64, Line),
    /// What happens around the session.
    Then(String),
}

/// A line, or in its place the beginning or the end of the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Says(Value),
    Connects,
    HangsUp,
}

/// The transcripts of session version 1: their names and steps.
pub fn all() -> Vec<(String, Vec<Step>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/v1");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), read(file))).collect()
}

fn read(file: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(lines.next().unwrap()["about"].is_string(), "{}", file.display());
    lines.map(|line| step(&line)).collect()
}

fn step(step: &Value) -> Step {
    if let Some(then) = step["then"].as_str() {
        return Step::Then(then.to_owned());
    }
    let on = step["on"].as_u64().unwrap();
    let line = |line: &Value| match line.as_str() {
        Some("hangs up") => Line::HangsUp,
        Some("connects") => Line::Connects,
        Some(other) => panic!("{other}"),
        None => Line::Says(line.clone()),
    };
    match (step.get("layer"), step.get("keeper")) {
        (Some(said), None) => Step::Layer(on, line(said)),
        (None, Some(said)) => Step::Keeper(on, line(said)),
        _ => panic!("{step}"),
    }
}

/// The owners that were named so far.
#[derive(Debug, Default)]
pub struct Names(HashMap<String, String>);

impl Names {
    /// What the side that is played says.
    pub fn fill(&mut self, line: &Value, deadline_ms: u64) -> Value {
        match line {
            Value::Object(fields) => Value::Object(
                fields.iter().map(|(name, value)| (name.clone(), self.fill(value, deadline_ms))).collect(),
            ),
            Value::Array(items) => items.iter().map(|item| self.fill(item, deadline_ms)).collect(),
            _ => match placeholder(line) {
                Some(("number", sample)) => sample.parse::<u64>().unwrap_or_default().into(),
                Some(("text", sample)) => sample.into(),
                Some(("deadline", _)) => deadline_ms.into(),
                Some((owner, _)) => {
                    let next = format!("11111111-1111-4111-8111-{:012}", self.0.len() + 1);
                    self.0.entry(owner.to_owned()).or_insert(next).as_str().into()
                }
                None => line.clone(),
            },
        }
    }

    /// Compares what the other side said.
    ///
    /// # Errors
    ///
    /// What is not as it should be.
    pub fn compare(&mut self, expected: &Value, said: &Value) -> Result<(), String> {
        match (expected, said) {
            (Value::Object(expected), Value::Object(said)) => {
                if let Some(more) = said.keys().find(|name| !expected.contains_key(*name)) {
                    return Err(format!("`{more}` is not in the transcript"));
                }
                expected.iter().try_for_each(|(name, value)| {
                    let said = said.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
                    self.compare(value, said).map_err(|wrong| format!("`{name}`: {wrong}"))
                })
            }
            _ => {
                let fits = match placeholder(expected) {
                    Some(("number", _)) => said.is_u64(),
                    Some(("text", _)) => said.as_str().is_some_and(|text| !text.is_empty()),
                    Some(("deadline", _)) => said.as_u64().is_some_and(|moment| moment > 1_577_836_800_000),
                    Some((owner, _)) => {
                        let said = said.as_str().unwrap_or_default();
                        said.len() == 36 && self.0.entry(owner.to_owned()).or_insert_with(|| said.to_owned()) == said
                    }
                    None => expected == said,
                };
                if fits { Ok(()) } else { Err(format!("{expected} was expected, not {said}")) }
            }
        }
    }
}

/// A placeholder's name and sample.
fn placeholder(value: &Value) -> Option<(&str, &str)> {
    let inside = value.as_str()?.strip_prefix('<')?.strip_suffix('>')?;
    Some(inside.split_once(':').unwrap_or((inside, "")))
}
