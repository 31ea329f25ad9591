//! Which programs an invocation runs: binaries that are there, or an example that is built first.

use std::path::{Path, PathBuf};

use leasehold_sandbox::demo::cargo_build_examples;

use super::{CommandError, extension};

/// What the user names as the function.
#[derive(Debug, Clone, Copy)]
pub(super) enum Function<'a> {
    /// A binary.
    Binary(&'a Path),
    /// One of leasehold's examples.
    Example(&'a str),
}

/// What runs in an environment.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) function: PathBuf,
    pub(super) extensions: Vec<PathBuf>,
}

impl Programs {
    /// Finds them. With an example the extension is built as well, and is the one that runs, unless others are named.
    pub(super) async fn of(
        function: Function<'_>,
        extensions: &[PathBuf],
        no_extension: bool,
    ) -> Result<Self, CommandError> {
        let (function, built) = match function {
            Function::Binary(path) => (path.to_owned(), None),
            Function::Example(name) => {
                let built = cargo_build_examples(Some(name)).await;
                let mut built = built.map_err(|failed| CommandError::Usage(failed.to_string()))?;
                let function = built.remove(name);
                let function = function.ok_or_else(|| CommandError::Usage(format!("Cargo built no example {name}")))?;
                (function, built.remove(extension::NAME))
            }
        };
        let extensions = match built {
            _ if no_extension => Vec::new(),
            _ if !extensions.is_empty() => extensions.to_vec(),
            Some(built) => vec![built],
            None => vec![extension::find()?],
        };
        Ok(Self { function, extensions })
    }
}
