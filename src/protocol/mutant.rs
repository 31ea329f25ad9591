//! Rules of the protocol that a test can switch off, to show that the simulation would notice.
//!
//! Outside the feature `simulation` every rule always holds and asking costs nothing.

use std::fmt;
use std::str::FromStr;

use super::{Abilities, Format, Versions};

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A release does not look at the owner.
    ReleaseWithoutOwner,
    /// A takeover does not look at the version.
    TakeoverWithoutVersion,
    /// A renewal does not look at the version.
    RenewalWithoutVersion,
    /// Every attempt of an acquisition has the same owner id.
    OneOwnerForAllAttempts,
    /// An acquisition may replace unknown attempts of others in its keeper.
    UnknownAttemptsPerKeeper,
    /// Validity runs from the answer, not from before the request was sent.
    ValidityFromAnswer,
    /// Validity runs to the lease's end, not to 90 % of it.
    WholeLease,
    /// A holder takes the smaller of elapsed monotonic and wall time.
    HolderBySmallerClock,
    /// A contender takes the larger of elapsed monotonic and wall time.
    ContenderByLargerClock,
    /// An observation counts from when its request was sent.
    ObservationFromSend,
    /// Adopting a version of one's own late write extends validity.
    AdoptionExtendsValidity,
    /// A success that comes after the loss revives the lease.
    LossRevived,
    /// An acquisition leaves `ttl` on the row.
    TtlLeftOnHeldRow,
    /// A renewal without server time leaves the old `expires_at`.
    OldExpiresAtKept,
    /// The whole second that `Date` can hide is not added.
    DateGranularityDropped,
    /// An answer to a request from before the session began serves it.
    AnswerFromBeforeFreeze,
    /// A new row's version starts at 0.
    SeedZero,
    /// A version that a wrong clock seeded is not raised before the grant.
    LowSeedNotRaised,
    /// A parked row keeps its holder's identity.
    ParkedUnderSameOwner,
    /// Parking does not look at the version.
    ParkingWithoutVersion,
    /// What is left of a minimum is reckoned by the larger of elapsed monotonic and wall time.
    MinimumByLargerClock,
    /// A row is parked for what is left of the minimum and no longer, whatever clocks may be off.
    ParkedForBareRest,
    /// The lease is still believed once the row's parking was sent.
    BelievedWhileParking,
    /// A parking that was never answered is not sent again.
    UnknownParkingTakenForDone,
    /// A ticket is written whether anybody holds the row or not.
    TicketOnAnyRow,
    /// Nobody may take a free row before its turn.
    AcquireInTurnOnly,
    /// A release that tells how long its hold took leaves no version behind.
    ReleaseDropsVersion,
    /// Who waits leaves a free row to those before it, even if none of them takes it.
    FreeRowLeftToOthers,
    /// Who waits sleeps until its turn may have come, even if the row may be taken over before that.
    SleepsPastTakeover,
    /// An acquisition counts `served` far ahead, and who is overtaken looks the more seldom the further that is.
    ServedRunsAhead,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 30] = [
        Self::ReleaseWithoutOwner,
        Self::TakeoverWithoutVersion,
        Self::RenewalWithoutVersion,
        Self::OneOwnerForAllAttempts,
        Self::UnknownAttemptsPerKeeper,
        Self::ValidityFromAnswer,
        Self::WholeLease,
        Self::HolderBySmallerClock,
        Self::ContenderByLargerClock,
        Self::ObservationFromSend,
        Self::AdoptionExtendsValidity,
        Self::LossRevived,
        Self::TtlLeftOnHeldRow,
        Self::OldExpiresAtKept,
        Self::DateGranularityDropped,
        Self::AnswerFromBeforeFreeze,
        Self::SeedZero,
        Self::LowSeedNotRaised,
        Self::ParkedUnderSameOwner,
        Self::ParkingWithoutVersion,
        Self::MinimumByLargerClock,
        Self::ParkedForBareRest,
        Self::BelievedWhileParking,
        Self::UnknownParkingTakenForDone,
        Self::TicketOnAnyRow,
        Self::AcquireInTurnOnly,
        Self::ReleaseDropsVersion,
        Self::FreeRowLeftToOthers,
        Self::SleepsPastTakeover,
        Self::ServedRunsAhead,
    ];

    /// Whether the format has a place for the rule at all.
    #[must_use]
    pub const fn applies_to(self, format: Format) -> bool {
        let Abilities { versions, expires_at, release_deletes, hints, .. } = format.abilities();
        match self {
            // A version that is fresh with every write can't be written twice.
            Self::SeedZero | Self::LowSeedNotRaised | Self::ParkingWithoutVersion => {
                matches!(versions, Versions::Counted)
            }
            Self::TicketOnAnyRow
            | Self::AcquireInTurnOnly
            | Self::ReleaseDropsVersion
            | Self::FreeRowLeftToOthers
            | Self::SleepsPastTakeover
            | Self::ServedRunsAhead => hints,
            Self::TtlLeftOnHeldRow => !release_deletes,
            Self::OldExpiresAtKept | Self::DateGranularityDropped | Self::AnswerFromBeforeFreeze => expires_at,
            _ => true,
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// There is no mutant of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no mutant is called `{0}`")]
pub struct UnknownMutant(String);

impl FromStr for Mutant {
    type Err = UnknownMutant;

    fn from_str(name: &str) -> Result<Self, UnknownMutant> {
        Self::ALL
            .into_iter()
            .find(|mutant| mutant.to_string().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownMutant(name.to_owned()))
    }
}

/// Which rules hold: all of them, but for at most one in a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    #[cfg(feature = "simulation")]
    broken: Option<Mutant>,
}

impl Rules {
    /// All rules but one.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub const fn without(mutant: Mutant) -> Self {
        Self { broken: Some(mutant) }
    }

    /// Whether this rule is switched off.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub fn broken(self, mutant: Mutant) -> bool {
        self.broken == Some(mutant)
    }

    /// Whether this rule is switched off: never.
    #[cfg(not(feature = "simulation"))]
    #[must_use]
    pub const fn broken(self, _mutant: Mutant) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_go_by_their_names() {
        for mutant in Mutant::ALL {
            assert_eq!(mutant.to_string().parse(), Ok(mutant));
        }
        assert_eq!("seedzero".parse(), Ok(Mutant::SeedZero));
        assert!("None".parse::<Mutant>().is_err());
    }
}
