//! The session versions that each side speaks, and what is said where they have none in common.

use serde::{Deserialize, Serialize};

/// The session version that this release speaks; it also serves the one before, once there is one.
pub const VERSION: u32 = 1;

/// The session versions that a side can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    /// The lowest.
    pub min: u32,
    /// The highest.
    pub max: u32,
}

impl VersionRange {
    /// What this release speaks.
    pub const SPOKEN: Self = Self { min: VERSION, max: VERSION };

    /// The highest version that both ranges hold.
    #[must_use]
    pub fn pick(self, other: Self) -> Option<u32> {
        let highest = self.max.min(other.max);
        (highest >= self.min && highest >= other.min).then_some(highest)
    }

    /// Why a keeper that speaks these versions serves no layer that offers those, and which of the two to upgrade.
    #[cfg(any(test, feature = "in-process"))]
    pub(crate) fn refusal(self, offered: Self) -> String {
        let what_to_do = if offered.min > offered.max {
            "the layer's range is empty".to_owned()
        } else if offered.max < self.min {
            format!("the layer is the older one: build the function with a release that speaks version {}", self.min)
        } else {
            format!("the keeper is the older one: deploy an extension that speaks version {}", offered.min)
        };
        format!(
            "no session version in common: the layer offers {} to {}, this keeper speaks {} to {}; {what_to_do}",
            offered.min, offered.max, self.min, self.max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(min: u32, max: u32) -> VersionRange {
        VersionRange { min, max }
    }

    #[test]
    fn the_highest_version_that_both_speak_is_picked() {
        for (here, there, picked) in [
            (range(1, 1), range(1, 1), Some(1)),
            (range(1, 2), range(1, 1), Some(1)),
            (range(1, 2), range(2, 3), Some(2)),
            (range(1, 3), range(2, 2), Some(2)),
            (range(2, 3), range(1, 2), Some(2)),
            (range(1, 1), range(2, 3), None),
            (range(2, 3), range(1, 1), None),
            (range(1, 5), range(4, 2), None),
        ] {
            assert_eq!(here.pick(there), picked, "{here:?} {there:?}");
            assert_eq!(there.pick(here), picked, "{there:?} {here:?}");
        }
    }

    #[test]
    fn a_refusal_says_which_side_is_the_older() {
        let older_layer = range(2, 3).refusal(range(1, 1));
        assert!(older_layer.ends_with("build the function with a release that speaks version 2"), "{older_layer}");
        let older_keeper = range(1, 1).refusal(range(2, 3));
        assert!(older_keeper.ends_with("deploy an extension that speaks version 2"), "{older_keeper}");
        assert!(range(1, 1).refusal(range(3, 1)).ends_with("the layer's range is empty"));
    }
}
