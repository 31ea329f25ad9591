//! Finding leasehold's extension where cargo builds it: beside the sandbox's own executable.

use std::path::{Path, PathBuf};

use super::CommandError;

/// The extension's file name, which is the name it registers with.
pub(super) const NAME: &str = "leasehold";

/// The path of the extension, or what to do about its absence.
pub(super) fn find() -> Result<PathBuf, CommandError> {
    let own = std::env::current_exe()
        .map_err(|error| CommandError::Usage(format!("can't tell where I am: {error}; give --extension PATH")))?;
    beside(&own)
}

fn beside(own: &Path) -> Result<PathBuf, CommandError> {
    let directory = own.parent().unwrap_or(Path::new("."));
    let path = directory.join(NAME);
    if path.is_file() {
        return Ok(path);
    }
    let profile = if directory.ends_with("release") { " --release" } else { "" };
    Err(CommandError::Usage(format!(
        "there is no extension at {}; build it with `cargo build{profile} -p leasehold-extension`, \
         give its path with --extension, or run without one: --no-extension",
        path.display()
    )))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_for_beside_the_executable_and_missed_with_advice() {
        let directory = tempfile::tempdir().unwrap();
        let release = directory.path().join("release");
        std::fs::create_dir(&release).unwrap();
        let own = release.join("leasehold-sandbox");
        let advice = beside(&own).unwrap_err().to_string();
        assert!(advice.contains("cargo build --release -p leasehold-extension"), "{advice}");
        std::fs::write(release.join(NAME), b"").unwrap();
        assert_eq!(beside(&own).unwrap(), release.join(NAME));
    }
}
