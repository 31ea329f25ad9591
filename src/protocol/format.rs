//! The row formats that are known by name, and what each of them can do.
//!
//! What a row of a format looks like is the store's business; what the protocol's rules depend on stands here, for the
//! machines behave by it.

use std::fmt;
use std::str::FromStr;

/// A row format. A table speaks one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// This crate's own, with fencing tokens and recovery by server time.
    #[default]
    LeaseholdV1,
    /// That of pydynox's distributed locks, to share a table and its keys with programs in Python.
    PydynoxV1,
}

/// What a row format can do: the rules that it has no place for are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Abilities {
    /// What versions are.
    pub versions: Versions,
    /// Whether a held row may say when it ends by server time, which is the second rule of a takeover. The first one,
    /// that it was observed unchanged for its lease, serves in every format.
    pub expires_at: bool,
    /// Whether a release deletes the row. Otherwise it stays, free and with its version, until it is swept.
    pub release_deletes: bool,
    /// Whether a holder may leave a state beside the row.
    pub state: bool,
    /// Whether the row may have attributes, and a holder's note, for people.
    pub notes: bool,
    /// Whether the row has hints for those who wait for it.
    pub hints: bool,
}

/// What a format's versions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Versions {
    /// Counters, which the store counts on with every attempt.
    Counted,
    /// UUIDs, a fresh one with every write.
    Opaque,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::LeaseholdV1, Self::PydynoxV1];

    /// Its name, as settings and the session spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeaseholdV1 => "leasehold/1",
            Self::PydynoxV1 => "pydynox/1",
        }
    }

    /// What it can do.
    #[must_use]
    pub const fn abilities(self) -> Abilities {
        match self {
            Self::LeaseholdV1 => Abilities {
                versions: Versions::Counted,
                expires_at: true,
                release_deletes: false,
                state: true,
                notes: true,
                hints: true,
            },
            Self::PydynoxV1 => Abilities {
                versions: Versions::Opaque,
                expires_at: false,
                release_deletes: true,
                state: false,
                notes: false,
                hints: false,
            },
        }
    }

    /// The names that its tables' key attributes must have, where the format leaves no choice: the partition key's, and
    /// no sort key.
    #[must_use]
    pub const fn fixed_key(self) -> Option<&'static str> {
        match self {
            Self::LeaseholdV1 => None,
            Self::PydynoxV1 => Some("key"),
        }
    }
}

impl Abilities {
    /// Whether a grant comes with a fencing token: only counters that outlive the release order one holder after another.
    #[must_use]
    pub const fn fencing_token(self) -> bool {
        matches!(self.versions, Versions::Counted) && !self.release_deletes
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// There is no row format of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Format::ALL.iter().map(|format| format!("`{format}`")).collect();
        write!(f, "{:?} is no row format that is known: write {}", self.0, known.join(" or "))
    }
}

impl std::error::Error for UnknownFormat {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_by_their_names() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        for unknown in ["", "pydynox", "PYDYNOX/1", "pydynox/2"] {
            let told = unknown.parse::<Format>().unwrap_err().to_string();
            assert!(told.contains("`leasehold/1` or `pydynox/1`"), "{told}");
        }
    }

    #[test]
    fn only_a_counter_that_outlives_the_release_is_a_fencing_token() {
        assert!(Format::LeaseholdV1.abilities().fencing_token());
        assert!(!Format::PydynoxV1.abilities().fencing_token());
    }
}
