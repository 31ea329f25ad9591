//! The demo's programs, built from this source tree by Cargo.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tokio::process::Command;

use super::Failed;

/// The binaries that a scene runs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The extension.
    pub extension: PathBuf,
    /// The sample function.
    pub sample: PathBuf,
    /// The folder of event files.
    pub events: PathBuf,
}

/// The root of the source tree that this program was built from.
fn source_tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Builds the extension and the sample function; Cargo's progress goes to standard error.
///
/// # Errors
///
/// When the source tree is gone, or Cargo can't be run or fails.
///
/// # Cancellation
///
/// Dropping the future ends Cargo.
pub async fn build() -> Result<Programs, Failed> {
    let root = source_tree();
    let events = root.join("events");
    if !events.is_dir() {
        return Err(Failed::because(format!(
            "the demo runs from leasehold's source tree, but {} is not there: clone it, and run `cargo run -p leasehold-sandbox -- demo` in it",
            events.display()
        )));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(&root)
        .args(["build", "--package", "leasehold-extension", "--package", "leasehold-sample", "--bins"])
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| Failed::because(format!("Cargo could not be run: {error}; is it on the PATH?")))?;
    if !output.status.success() {
        return Err(Failed::because("the extension and the sample function could not be built; Cargo says why above"));
    }
    let built = String::from_utf8_lossy(&output.stdout);
    let program = |name: &str| {
        let found = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
            let is_it = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
            is_it.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
        });
        found.ok_or_else(|| Failed::because(format!("Cargo built no program `{name}`")))
    };
    Ok(Programs { extension: program("leasehold")?, sample: program("leasehold-sample")?, events })
}
