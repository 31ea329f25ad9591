//! Programs of this source tree, built by Cargo: the demo's and the examples.

use std::{
    collections::BTreeMap,
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
    let mut built = cargo_build(&["leasehold-extension", "leasehold-sample"]).await?;
    let mut program =
        |name: &str| built.remove(name).ok_or_else(|| Failed::because(format!("Cargo built no program `{name}`")));
    Ok(Programs {
        extension: program("leasehold")?,
        sample: program("leasehold-sample")?,
        events: source_tree().join("events"),
    })
}

/// Builds the programs of these packages of the source tree, by their names.
///
/// # Errors
///
/// When the source tree is gone, or Cargo can't be run or fails.
///
/// # Cancellation
///
/// Dropping the future ends Cargo.
pub async fn cargo_build(packages: &[&str]) -> Result<BTreeMap<String, PathBuf>, Failed> {
    let packages_of = packages.iter().flat_map(|package| ["--package", *package]);
    cargo(["--bins"].into_iter().chain(packages_of), &packages.join(" and ")).await
}

/// Builds an example of leasehold's, or all of them, together with the extension; the programs by their names.
///
/// # Errors
///
/// When the source tree is gone, or Cargo can't be run or fails.
///
/// # Cancellation
///
/// Dropping the future ends Cargo.
pub async fn cargo_build_examples(only: Option<&str>) -> Result<BTreeMap<String, PathBuf>, Failed> {
    let packages =
        ["--package", "leasehold", "--package", "leasehold-extension", "--all-features", "--bin", "leasehold"];
    let what = only.map_or_else(|| "the examples".to_owned(), |name| format!("the example {name}"));
    cargo(packages.into_iter().chain(only.map_or(vec!["--examples"], |name| vec!["--example", name])), &what).await
}

/// Runs `cargo build` in the source tree; the programs that it made, by their names.
async fn cargo<'a>(arguments: impl Iterator<Item = &'a str>, what: &str) -> Result<BTreeMap<String, PathBuf>, Failed> {
    let root = source_tree();
    if !root.join("events").is_dir() {
        return Err(Failed::because(format!(
            "{} is no source tree of leasehold: clone it, and run `cargo run -p leasehold-sandbox` in it",
            root.display()
        )));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // `cargo run` tells this program of its own package by these, and build scripts that look at them (ring's) would run anew,
    // and all that depends on them be compiled again, here and at the next `cargo` outside.
    let is_of_this_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_of_this_package)) {
        command.env_remove(name);
    }
    let output = command
        .current_dir(&root)
        .args(["build", "--message-format=json-render-diagnostics"])
        // With this very package among them, Cargo reuses what it compiled for it.
        .args(["--package", env!("CARGO_PKG_NAME")])
        // As this program itself was built.
        .args((!cfg!(debug_assertions)).then_some("--release"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        // Not `output`, which would keep Cargo's progress and errors to itself.
        .spawn()
        .map_err(|error| Failed::because(format!("Cargo could not be run: {error}; is it on the PATH?")))?
        .wait_with_output()
        .await
        .map_err(|error| Failed::because(format!("Cargo could not be waited for: {error}")))?;
    if !output.status.success() {
        return Err(Failed::because(format!("{what} could not be built; Cargo says why above")));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs = messages.filter(|message| message["reason"] == "compiler-artifact").filter_map(|message| {
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, PathBuf::from(message["executable"].as_str()?)))
    });
    Ok(programs.collect())
}
