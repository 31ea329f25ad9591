//! The root certificates of this system, or of the variables that name others: how many there are, and what is wrong with them.

use std::ffi::OsString;

use aws_smithy_runtime_api::client::result::ConnectorError;
use rustls::RootCertStore;

use super::unreached::Unrooted;

/// The variables that say where root certificates are.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Whether a variable says where the root certificates are. An empty one, as templates of functions leave them, says nothing:
/// no certificate at all would be found there.
pub(super) fn are_named(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    VARIABLES.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// What was found.
pub(super) struct Roots {
    usable: usize,
    problems: Vec<String>,
}

impl Roots {
    /// Reads them anew.
    pub(super) fn read() -> Self {
        let found = rustls_native_certs::load_native_certs();
        let (usable, broken) = RootCertStore::empty().add_parsable_certificates(found.certs);
        let mut problems: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        if broken > 0 {
            problems.push(format!("{broken} that can't be read"));
        }
        Self { usable, problems }
    }

    /// Without any nobody can be believed: that is told before anybody is asked.
    ///
    /// # Errors
    ///
    /// Where there is none, with what names the place and what is wrong there.
    pub(super) fn required(&self) -> Result<(), ConnectorError> {
        if self.usable > 0 {
            return Ok(());
        }
        let problems = if self.problems.is_empty() { String::new() } else { format!(" ({})", self.problems()) };
        let told = match places() {
            Some(places) => format!(
                "no root certificate was found in {places}{problems}; let it name a file of certificates in PEM that can be \
                 read, or take it out"
            ),
            None => format!(
                "this system has no root certificates{problems}; install them (`ca-certificates`), or let SSL_CERT_FILE name \
                 a file that has them"
            ),
        };
        Err(ConnectorError::user(Box::new(Unrooted(told))))
    }

    /// Which they are, for who was vouched for by none of them.
    pub(super) fn told(&self) -> String {
        let problems = if self.problems.is_empty() { String::new() } else { format!(" ({})", self.problems()) };
        match places() {
            Some(places) => format!(
                "the {} root certificates of {places}{problems}: add that of its authority there, or take the variable out",
                self.usable
            ),
            None => format!(
                "Amazon's root certificates and the {} of this system{problems}: let SSL_CERT_FILE name a file that has that \
                 of its authority",
                self.usable
            ),
        }
    }

    fn problems(&self) -> String {
        const TOLD: usize = 3;
        let more = self.problems.len().saturating_sub(TOLD);
        let more = if more == 0 { String::new() } else { format!("; {more} more") };
        format!("{}{more}", self.problems.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; "))
    }
}

/// The variables that are set and their values.
fn places() -> Option<String> {
    let set = VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let told: Vec<_> = set.map(|(name, value)| format!("{name} (`{}`)", value.display())).collect();
    if told.is_empty() { None } else { Some(told.join(" and ")) }
}
