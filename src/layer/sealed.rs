//! What keeps traits to this crate that are public only because they stand in bounds.

/// Implemented by what the builders' methods choose from, so that more may be asked of it with any release.
pub trait Sealed {}
