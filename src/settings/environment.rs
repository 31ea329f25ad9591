//! The environment's variables, taken once: nothing reads the process's own behind the builder's back.

use std::ffi::OsString;

/// What all our variables begin with.
pub(super) const PREFIX: &str = "LEASEHOLD_";

/// The variables that a layer looks at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// Of two with one name the last one counts.
    variables: Vec<(String, String)>,
    /// Ours, but with a value that is not UTF-8.
    pub(super) unreadable: Vec<String>,
}

impl Environment {
    /// The process's own.
    pub(crate) fn of_process() -> Self {
        Self::from_os(std::env::vars_os())
    }

    fn from_os(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut environment = Self::default();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => environment.variables.push((name, value)),
                Err(_) if name.starts_with(PREFIX) => environment.unreadable.push(name),
                Err(_) => {}
            }
        }
        environment
    }

    /// The value under this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The names that are ours.
    pub(super) fn our_names(&self) -> Vec<&str> {
        let names = self.variables.iter().map(|(name, _)| name.as_str());
        let mut ours: Vec<_> = names.filter(|name| name.starts_with(PREFIX)).collect();
        ours.sort_unstable();
        ours.dedup();
        ours
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, unreadable: Vec::new() }
    }
}
