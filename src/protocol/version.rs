//! A row's version: what changes with every write that gives or extends a lease.

use std::fmt;

use uuid::Uuid;

use super::Entropy;

/// A row's version, of whichever kind its format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// One higher with every write: it orders the holders, and what it is at acquisition is the fencing token.
    Counter(u64),
    /// The bits of a UUID that no row had before: it tells two states of a row apart and says nothing of their order.
    Opaque(u128),
}

impl Version {
    /// The opaque version that is written so; `None` where it is another spelling, for a condition compares the text.
    #[must_use]
    pub fn parse_opaque(text: &str) -> Option<Self> {
        let version = Self::Opaque(Uuid::try_parse(text).ok()?.as_u128());
        (version.to_string() == text).then_some(version)
    }

    /// The counter, where it is one.
    #[must_use]
    pub const fn counter(self) -> Option<u64> {
        match self {
            Self::Counter(counter) => Some(counter),
            Self::Opaque(_) => None,
        }
    }

    /// The version that follows this one, of the same kind.
    pub(super) fn next(self, entropy: &mut dyn Entropy) -> Self {
        match self {
            Self::Counter(counter) => Self::Counter(counter.saturating_add(1)),
            Self::Opaque(_) => entropy.version(),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(counter) => counter.fmt(f),
            Self::Opaque(bits) => Uuid::from_u128(*bits).hyphenated().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_spelling_is_an_opaque_version() {
        const TEXT: &str = "0a1b2c3d-0000-4000-8000-0123456789ab";
        assert_eq!(Version::parse_opaque(TEXT).map(|version| version.to_string()).as_deref(), Some(TEXT));
        for other in [TEXT.to_uppercase(), TEXT.replace('-', ""), format!("{{{TEXT}}}"), String::new()] {
            assert_eq!(Version::parse_opaque(&other), None, "{other}");
        }
    }
}
