//! What somebody needs who stands outside of the function, the operator's command line: the settings as it reads them, and the
//! same way to AWS.

use std::time::Duration;

use crate::key::Namespace;
use crate::session::Table;
use crate::settings::{Draft, Environment, KeeperChoice, Mode};

/// What a function's `LEASEHOLD_*` variables say. Its code may set what they leave out, and wins where both do.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The lock table.
    pub table: Table,
    /// What stands in front of every key.
    pub namespace: Option<Namespace>,
    /// `LEASEHOLD_MODE`.
    pub mode: Mode,
    /// Where the keeper lives, by `LEASEHOLD_KEEPER`; on Lambda itself the default is the extension.
    pub keeper: KeeperChoice,
    /// How long a lease lasts.
    pub lease_duration: Duration,
    /// The time that the work needs, where it is set.
    pub reserve: Option<Duration>,
    /// The longest wait.
    pub max_wait: Duration,
    /// What is wrong: with these, `build` fails.
    pub problems: Vec<String>,
    /// Names that nothing reads.
    pub warnings: Vec<String>,
}

/// Reads variables as a layer's `build` does, with its own list of names and its own checks.
#[must_use]
pub fn examine(variables: impl IntoIterator<Item = (String, String)>) -> Examined {
    let environment: Environment = variables.into_iter().collect();
    let mut problems = Vec::new();
    let (settings, warnings) = Draft::default().resolve(&environment, &mut problems);
    Examined {
        table: settings.table,
        namespace: settings.namespace,
        mode: settings.mode,
        keeper: settings.keeper,
        lease_duration: settings.lease_duration,
        reserve: settings.reserve,
        max_wait: settings.max_wait,
        problems,
        warnings,
    }
}

/// The way to AWS that the keeper takes: its root certificates, and its words for what goes wrong there.
#[cfg(feature = "in-process")]
#[must_use]
pub fn https_client() -> aws_smithy_runtime_api::client::http::SharedHttpClient {
    crate::store::https_client()
}

/// The same for what gives credentials: it keeps no connection, and goes by each caller's own time limits.
#[cfg(feature = "in-process")]
#[must_use]
pub fn https_client_for_credentials() -> aws_smithy_runtime_api::client::http::SharedHttpClient {
    crate::store::https_client_for_credentials()
}

/// Which endpoint could not be reached by [`https_client`], why, and what to look at; `None` for another error.
#[cfg(feature = "in-process")]
#[must_use]
pub fn unreached(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    crate::store::unreached(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Examined {
        examine(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn variables_are_judged_as_build_judges_them() {
        let good = of(&[("LEASEHOLD_TABLE", "locks"), ("LEASEHOLD_RESERVE", "5s"), ("PATH", "/bin")]);
        assert_eq!((good.table, good.reserve), (Table::new("locks"), Some(Duration::from_secs(5))));
        assert_eq!((good.problems, good.warnings), (Vec::new(), Vec::new()));

        let bad = of(&[("LEASEHOLD_TABEL", "locks"), ("LEASEHOLD_MAX_WAIT", "2")]);
        assert!(bad.problems.iter().any(|told| told.contains("no table is set")), "{:?}", bad.problems);
        assert!(bad.problems.iter().any(|told| told.contains("LEASEHOLD_MAX_WAIT")), "{:?}", bad.problems);
        assert_eq!(bad.warnings, ["nothing reads LEASEHOLD_TABEL: did you mean LEASEHOLD_TABLE?"]);
    }
}
