//! Everything that is wrong with settings, in one message.

use std::fmt;

/// Settings that can't be used, of a layer or of leases by hand; each problem is told, not only the first.
///
/// ```
/// use leasehold::LeaseLayer;
///
/// let error = LeaseLayer::<()>::builder("orders:{detail.orderId")
///     .environment([("LEASEHOLD_MAX_WAIT", "soon")])
///     .build()
///     .unwrap_err();
/// assert_eq!(error.problems().len(), 3); // the template, the wait, and no table
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SettingsError {
    problems: Vec<String>,
}

impl SettingsError {
    pub(crate) const fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// The problems, each with what to change.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => write!(f, "a setting is wrong: {only}"),
            all => {
                write!(f, "{} settings are wrong:", all.len())?;
                all.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
            }
        }
    }
}

/// The same text: a `main` that returns this error prints it so, and it may be all that a log shows.
impl fmt::Debug for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SettingsError {}
