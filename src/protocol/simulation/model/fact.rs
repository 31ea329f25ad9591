//! What happened in a step that is worth showing to be possible.

use std::fmt;

use super::state::State;

macro_rules! facts {
    ($($name:ident: $words:literal,)*) => {
        /// Something that a model shows to be possible, so that its silence about violations means something.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fact {
            $(#[doc = concat!("In words: ", $words, ".")] $name,)*
        }

        impl Fact {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What it is, in words.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }

            /// Whether a state's last step shows it, as a function that a checker may keep beside its model `M`.
            #[must_use]
            pub fn shown<M>(self) -> fn(&M, &State) -> bool {
                match self { $(Self::$name => |_, state| state.facts().has(Self::$name),)* }
            }
        }
    };
}

facts! {
    Granted: "a lease is granted",
    Confirmed: "a renewal is answered before the grant",
    Raised: "a version seeded by a wrong clock is raised before the grant",
    Renewed: "a lease is renewed",
    Busy: "a contender is told that the key is busy",
    TooLate: "a grant comes too late and is given back",
    Cancelled: "an acquisition is cancelled",
    ObservedTakeover: "a row is taken over because it stayed unchanged for its lease",
    ExpiredTakeover: "a row is taken over because server time is past its end",
    LostRace: "a takeover is refused because the row changed",
    OwnAttemptReplaced: "an attempt replaces an earlier one of its own that landed unseen",
    AttemptLandedLate: "an attempt lands when nobody waits for its answer any more",
    LateAttemptRefused: "an attempt that comes late is refused",
    RenewalLandedLate: "a renewal lands after its timeout",
    ReleaseLandedLate: "a release lands after its timeout",
    LateWriteRefused: "a renewal or release that comes late is refused",
    Adopted: "a holder adopts the version of its own late renewal",
    CleanedUp: "who gives up frees an attempt that had landed",
    AnsweredAfterLoss: "a renewal is answered after the lease was lost",
    LostExpired: "a lease is lost because no renewal was answered in time",
    LostMaxHold: "a lease is lost because it was held for as long as is allowed",
    LostWhileFrozen: "a lease is over when its holder wakes from a freeze",
    HeldThroughFreeze: "a lease is still held when its holder wakes from a freeze",
    Secured: "a lease at risk is secured by a renewal",
    Parked: "a row is parked",
    ParkingFound: "a parking that landed unseen is found on the row",
    ParkingRepeated: "a parking is refused by an own late renewal, and sent again",
    MinimumOver: "a minimum is over when the work is, and the row is freed",
    ParkedTakenOver: "a parked row is taken over",
    Swept: "a free row is swept",
    Reseeded: "a row is made anew after a sweep",
    Abandoned: "an abandoned row is taken by another",
    Ticket: "a ticket is taken",
    TicketRefused: "a ticket finds that nobody holds the row",
    TicketBurnt: "a ticket lands when nobody waits for its answer any more",
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A set of facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Facts(u64);

impl Facts {
    pub(super) fn add(&mut self, fact: Fact) {
        self.0 |= 1 << fact as u32;
    }

    /// Whether this is one of them.
    #[must_use]
    pub const fn has(self, fact: Fact) -> bool {
        self.0 & (1 << fact as u32) != 0
    }
}
