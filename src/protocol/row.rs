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
        /// What it says for those who wait.
        hints: Hints,
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
    /// What it says for those who wait.
    pub hints: Hints,
}

/// What a row says for those who wait for it: when it makes sense to look again, and nothing else. No condition looks at it,
/// so it may be wrong in any way; what makes no sense is taken for absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hints {
    /// How many tickets were taken.
    pub tickets: Option<u64>,
    /// Whether something stands in the place of `tickets` that is no such number: the next one would be none either.
    pub uncountable: bool,
    /// Whose turn it was last: the highest ticket with which the row was taken, as far as those who took it knew.
    pub served: Option<u64>,
    /// How long the work under a lease takes, as a moving average.
    pub hold: Option<Duration>,
}

impl Hints {
    /// The longest hold that is worth a hint.
    pub const LONGEST_HOLD: Duration = Duration::from_secs(24 * 60 * 60);

    /// The average once one more hold is over: it moves a quarter of the way.
    #[must_use]
    pub fn after_a_hold(usual: Option<Duration>, hold: Duration) -> Duration {
        let moved = usual.map_or(hold, |usual| usual.mul_f64(0.75) + hold.min(Self::LONGEST_HOLD) / 4);
        // To the millisecond that is nearest: by halves it would never get there.
        let millis = (moved.min(Self::LONGEST_HOLD) + Duration::from_micros(500)).as_millis();
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
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
    fn the_usual_hold_moves_a_quarter_of_the_way() {
        let ms = Duration::from_millis;
        assert_eq!(Hints::after_a_hold(None, Duration::from_micros(20_400)), ms(20));
        assert_eq!(Hints::after_a_hold(Some(ms(20)), ms(100)), ms(40));
        assert_eq!(Hints::after_a_hold(Some(ms(100)), ms(20)), ms(80));
        assert_eq!(Hints::after_a_hold(Some(ms(20)), Duration::MAX), ms(21_600_015), "a day at most");
        let settled = (0..50).fold(ms(1_000), |usual, _| Hints::after_a_hold(Some(usual), ms(20)));
        assert!(settled <= ms(22), "{settled:?}");
    }

    #[test]
    fn what_a_row_can_not_hold_is_rounded_up() {
        let exact = Wall::from_millis(17);
        assert_eq!(rounded_up(exact), exact);
        assert_eq!(rounded_up(exact + Duration::from_nanos(1)), Wall::from_millis(18));
    }
}
