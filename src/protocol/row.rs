//! A lock's row as the protocol sees it.

use std::time::Duration;

use super::{HolderInfo, OwnerId};
use crate::clock::Wall;

/// The state of a lock's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// There is none: never locked, or swept.
    Absent,
    /// Nobody holds it; its version goes on from here.
    Free {
        /// The row's version.
        version: u64,
    },
    /// Somebody holds it.
    Held(HeldRow),
    /// It is not ours to touch.
    Unusable(Unusable),
}

/// A held row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// Whose it is.
    pub owner: OwnerId,
    /// One higher with every write that gives or extends the lease.
    pub version: u64,
    /// How long the lease lasts unrenewed.
    pub lease: Duration,
    /// When it ends by server time, where the holder could tell.
    pub expires_at: Option<Wall>,
    /// What people are told.
    pub holder: Option<Box<HolderInfo>>,
}

/// Why a row is never written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Another program's row, or another row format's.
    #[error(
        "the row is not in the format `leasehold/1` but {}: use a table or a namespace of its own for these locks",
        .format.as_ref().map_or_else(|| "has no `format` attribute".to_owned(), |f| format!("in `{f}`"))
    )]
    Foreign {
        /// What its `format` attribute says, if it has one.
        format: Option<String>,
    },
    /// A row of our format that does not hold what the format asks for.
    #[error(
        "the row's attribute `{attribute}` {found}: look at the row and delete it by hand if nobody works under it"
    )]
    Malformed {
        /// The attribute that is wrong.
        attribute: String,
        /// What was found there.
        found: String,
    },
}
