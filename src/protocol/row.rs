//! A lock's row as the protocol sees it.

use std::time::Duration;

use super::{Format, HolderInfo, OwnerId, Version};
use crate::clock::{Now, Wall};

/// The state of a lock's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeldRow {
    /// Whose it is.
    pub owner: OwnerId,
    /// Another one with every write that gives or extends the lease.
    pub version: Version,
    /// How long the lease lasts unrenewed.
    pub lease: Duration,
    /// When it ends by server time, where the holder could tell.
    pub expires_at: Option<Wall>,
    /// What people are told.
    pub holder: Option<Box<HolderInfo>>,
}

/// Why a row is never written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unusable {
    /// Another program's row, or another row format's.
    #[error(
        "the row is not a lock of the format `{expected}`: {}; it is left alone, so take a table or a `namespace` of its own \
         for these locks{}", found(*.expected, .format), also(*.expected, .format)
    )]
    Foreign {
        /// The format that it should be in.
        expected: Format,
        /// What the row says about its format, if it says anything.
        format: Option<String>,
    },
    /// A row of our format that does not hold what the format asks for.
    #[error("the row's attribute `{attribute}` {found}; look at the row and delete it once nobody works on its key")]
    Malformed {
        /// The attribute that is wrong.
        attribute: String,
        /// What was found there.
        found: String,
    },
}

fn found(expected: Format, format: &Option<String>) -> String {
    match (expected, format) {
        (Format::LeaseholdV1, Some(format)) => format!("its `format` is `{format}`"),
        (Format::LeaseholdV1, None) => "it has no attribute `format`".to_owned(),
        (Format::PydynoxV1, Some(format)) => format!("it says `{format}`"),
        (Format::PydynoxV1, None) => "it has no attribute `protocol`".to_owned(),
    }
}

/// A later release's row may well be in the right table, and so may one of the usual format.
fn also(expected: Format, format: &Option<String>) -> &'static str {
    match (expected, format) {
        (Format::LeaseholdV1, Some(format)) if format.starts_with("leasehold/") => {
            ", or deploy the release that wrote it, function and extension, everywhere"
        }
        (Format::PydynoxV1, Some(format)) if format.starts_with("leasehold/") => {
            ", or set `format` to what the table speaks"
        }
        _ => "",
    }
}

/// How long DynamoDB keeps a free row.
const FREE_ROW_SECONDS: u64 = 7 * 24 * 60 * 60;

/// Until when a free row stays, in epoch seconds: it counts from the row's version as well, so that a wrong clock
/// never has a row swept while a new one could be seeded below its past.
pub(crate) fn free_until(now: Now, version: u64) -> u64 {
    (now.wall.as_millis() / 1000).max(version / 1000).saturating_add(FREE_ROW_SECONDS)
}

/// The next whole millisecond, which is what a row can hold: an `expires_at` must not be written too early.
pub(super) fn rounded_up(wall: Wall) -> Wall {
    let floor = Wall::from_millis(wall.as_millis());
    if floor < wall { floor + Duration::from_millis(1) } else { floor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_row_stays_a_week_beyond_its_version_and_the_clock() {
        let now = Now { wall: Wall::from_millis(5_000_999), ..Now::default() };
        assert_eq!(free_until(now, 1), 5_000 + 604_800);
        assert_eq!(free_until(now, 9_000_999), 9_000 + 604_800);
    }

    #[test]
    fn what_a_row_can_not_hold_is_rounded_up() {
        let exact = Wall::from_millis(17);
        assert_eq!(rounded_up(exact), exact);
        assert_eq!(rounded_up(exact + Duration::from_nanos(1)), Wall::from_millis(18));
    }
}
