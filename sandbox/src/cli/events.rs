//! Events, from files and from standard input.

use std::{
    io::{self, Read},
    path::Path,
};

use super::CommandError;

/// An event has to be JSON: Lambda takes nothing else.
///
/// # Errors
///
/// When it can't be read, or is none.
pub(super) fn read(path: &Path) -> Result<String, CommandError> {
    let from = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| CommandError::Usage(format!("the event {from} could not be read: {error}")))?;
    let parsed: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&text);
    parsed.map_err(|error| CommandError::Usage(format!("the event {from} is no JSON: {error}")))?;
    Ok(text)
}
