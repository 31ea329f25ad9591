//! The bounds that are checked as a matter of course: each makes some hazards possible, and names what it must show.

mod minima;
mod tickets;

use super::bounds::{Bounds, Fault, Kind, Place};
use super::fact::Fact;
use crate::protocol::Mutant;
use crate::protocol::simulation::clock::{DAY, Freeze, HOUR, MS, SECOND};

/// Bounds with a name, and what exploring them must come to.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    /// What it is about, in a line.
    pub about: &'static str,
    /// How far it goes.
    pub bounds: Bounds,
    /// What must be shown to happen in it.
    pub shows: Vec<Fact>,
    /// The broken rules that must be noticed in it.
    pub notices: Vec<Mutant>,
}

/// All of them.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    vec![
        network(),
        limits(),
        clocks(),
        crashes(),
        one_keeper(),
        server_time(),
        dateless(),
        astray(),
        margins(),
        between_sessions(),
        sweeps(),
        wrong_seeds(),
        three(),
        minima::calm(),
        minima::in_trouble(),
        tickets::late_and_lost(),
        tickets::far_from_its_turn(),
        tickets::overtaken(),
    ]
}

fn place(sessions: u8, kinds: &[Kind]) -> Place {
    Place { sessions, lanes: 1, kinds: kinds.to_vec() }
}

fn network() -> Scenario {
    use Fact as F;
    Scenario {
        name: "network",
        about: "two contenders; requests and answers are late or lost, connections break",
        bounds: Bounds { faults: 1, kinds: vec![Fault::Slow, Fault::Broken, Fault::Throttled], ..Bounds::calm(2) },
        shows: vec![
            F::Granted,
            F::Confirmed,
            F::Renewed,
            F::Busy,
            F::ObservedTakeover,
            F::LostRace,
            F::OwnAttemptReplaced,
            F::AttemptLandedLate,
            F::LateAttemptRefused,
            F::RenewalLandedLate,
            F::ReleaseLandedLate,
            F::LateWriteRefused,
            F::Adopted,
            F::CleanedUp,
            F::LostMaxHold,
            F::Secured,
        ],
        notices: vec![
            Mutant::TakeoverWithoutVersion,
            Mutant::RenewalWithoutVersion,
            Mutant::TtlLeftOnHeldRow,
            Mutant::ObservationFromSend,
        ],
    }
}

fn limits() -> Scenario {
    use Fact as F;
    Scenario {
        name: "limits",
        about: "a holder with the slowest clocks that may be and a contender with the fastest, two late or lost answers",
        bounds: Bounds {
            places: vec![place(1, &[Kind::SLOW]), place(1, &[Kind::FAST])],
            faults: 2,
            kinds: vec![Fault::Slow],
            ..Bounds::calm(2)
        },
        shows: vec![F::LostMaxHold, F::ObservedTakeover, F::Adopted],
        notices: vec![
            Mutant::WholeLease,
            Mutant::ValidityFromAnswer,
            Mutant::AdoptionExtendsValidity,
            Mutant::ObservationFromSend,
            Mutant::LossRevived,
        ],
    }
}

fn clocks() -> Scenario {
    use Fact as F;
    Scenario {
        name: "clocks",
        about: "an environment freezes, with clocks that stop or go on, or a wall clock is set forward or back",
        bounds: Bounds {
            faults: 1,
            kinds: vec![
                Fault::Freeze(Freeze::Paused),
                Fault::Freeze(Freeze::MonoStops),
                Fault::Freeze(Freeze::WallStops),
                Fault::Step,
            ],
            frozen_for: vec![2 * SECOND, 7 * SECOND],
            steps: vec![HOUR as i64, -(HOUR as i64)],
            ..Bounds::calm(2)
        },
        shows: vec![
            F::LostWhileFrozen,
            F::HeldThroughFreeze,
            F::LostExpired,
            F::AnsweredAfterLoss,
            F::TooLate,
            F::ObservedTakeover,
        ],
        notices: vec![Mutant::HolderBySmallerClock, Mutant::ContenderByLargerClock],
    }
}

fn crashes() -> Scenario {
    use Fact as F;
    Scenario {
        name: "crashes",
        about: "a handler dies, an environment vanishes with what it had under way, an acquisition is cancelled",
        bounds: Bounds {
            places: vec![place(2, &[Kind::RIGHT]), place(1, &[Kind::RIGHT])],
            faults: 1,
            kinds: vec![Fault::Vanish, Fault::Abandon, Fault::Cancel],
            hold: 3 * SECOND,
            latest: Some(8 * SECOND),
            ..Bounds::calm(2)
        },
        shows: vec![F::Abandoned, F::Cancelled, F::AttemptLandedLate, F::ReleaseLandedLate],
        notices: vec![Mutant::ReleaseWithoutOwner],
    }
}

fn one_keeper() -> Scenario {
    Scenario {
        name: "one keeper",
        about: "two sessions at once in one environment, as on Managed Instances",
        bounds: Bounds {
            places: vec![Place { sessions: 2, lanes: 2, kinds: vec![Kind::RIGHT] }],
            faults: 1,
            kinds: vec![Fault::Slow, Fault::Broken, Fault::Freeze(Freeze::Paused)],
            frozen_for: vec![3 * SECOND],
            ..Bounds::calm(1)
        },
        shows: vec![Fact::OwnAttemptReplaced],
        notices: vec![Mutant::UnknownAttemptsPerKeeper],
    }
}

fn server_time() -> Scenario {
    use Fact as F;
    Scenario {
        name: "server time",
        about: "takeover by DynamoDB's Date; a request is late or lost, an answer has no Date, a holder is cut off",
        bounds: Bounds {
            places: vec![place(1, &[Kind::DATED]); 2],
            lease: 60 * SECOND,
            wait: 8 * SECOND,
            hold: 45 * SECOND,
            faults: 1,
            kinds: vec![Fault::Slow, Fault::Dateless, Fault::Cut],
            ..Bounds::calm(2)
        },
        shows: vec![F::ExpiredTakeover, F::Confirmed],
        notices: vec![],
    }
}

fn dateless() -> Scenario {
    use Fact as F;
    Scenario {
        name: "dateless",
        about: "two answers without a Date",
        bounds: Bounds {
            kinds: vec![Fault::Dateless],
            faults: 2,
            hold: 25 * SECOND,
            wait: 20 * SECOND,
            ..server_time().bounds
        },
        shows: vec![F::ExpiredTakeover, F::Confirmed],
        notices: vec![Mutant::OldExpiresAtKept],
    }
}

fn astray() -> Scenario {
    use Fact as F;
    Scenario {
        name: "astray",
        about: "connections break twice, and what was sent over them may land at any time",
        bounds: Bounds {
            places: vec![place(1, &[Kind::DATED]); 2],
            wait: 5 * SECOND,
            hold: 11 * SECOND,
            faults: 2,
            kinds: vec![Fault::Broken],
            ..Bounds::calm(2)
        },
        shows: vec![F::OwnAttemptReplaced, F::AttemptLandedLate, F::LateAttemptRefused, F::ExpiredTakeover],
        notices: vec![Mutant::OneOwnerForAllAttempts],
    }
}

fn margins() -> Scenario {
    use Fact as F;
    let behind = Kind {
        name: "slow and behind",
        mono: Kind::SLOW.mono,
        wall: Kind::SLOW.wall,
        ahead: -27_000_000,
        skew: -500_000,
        ..Kind::DATED
    };
    let fast = Kind { name: "fast", mono: Kind::FAST.mono, wall: Kind::FAST.wall, skew: 499_999, ..Kind::DATED };
    Scenario {
        name: "margins",
        about: "a first grant that rests on a slow wall clock 27 s behind, front ends that disagree by a second",
        bounds: Bounds {
            places: vec![place(1, &[behind]), place(1, &[fast])],
            lease: 60 * SECOND,
            wait: 8 * SECOND,
            hold: 10 * SECOND,
            begins: 999 * MS,
            faults: 1,
            kinds: vec![Fault::Slow],
            // Between the end of the contender's grace by its front end and that by the holder's.
            grain: Some(38_600 * MS),
            ..Bounds::calm(2)
        },
        shows: vec![F::ExpiredTakeover, F::LostMaxHold],
        notices: vec![Mutant::DateGranularityDropped],
    }
}

fn between_sessions() -> Scenario {
    use Fact as F;
    Scenario {
        name: "between sessions",
        about: "an environment is frozen whole between two invocations and knows nothing of the time that went by",
        bounds: Bounds {
            places: vec![place(2, &[Kind::DATED]), place(1, &[Kind::DATED])],
            faults: 2,
            kinds: vec![Fault::Freeze(Freeze::BothStop), Fault::Dateless],
            frozen_for: vec![20 * SECOND],
            hold: 3 * SECOND,
            wait: 3 * SECOND,
            ..Bounds::calm(2)
        },
        shows: vec![F::Confirmed, F::ExpiredTakeover],
        notices: vec![Mutant::AnswerFromBeforeFreeze],
    }
}

fn sweeps() -> Scenario {
    use Fact as F;
    Scenario {
        name: "sweeps",
        about: "a free row is swept and made anew, without DynamoDB's Date",
        bounds: Bounds { faults: 1, kinds: vec![Fault::Slow], hold: 3 * SECOND, quiet: 1, ..Bounds::calm(2) },
        shows: vec![F::Swept, F::Reseeded],
        notices: vec![Mutant::SeedZero, Mutant::TtlLeftOnHeldRow],
    }
}

fn wrong_seeds() -> Scenario {
    use Fact as F;
    let behind = Kind { name: "a month behind", ahead: -30 * DAY as i64, ..Kind::DATED };
    Scenario {
        name: "wrong seeds",
        about: "rows made by a wall clock that is a month behind, swept and made anew",
        bounds: Bounds {
            places: vec![place(1, &[Kind::DATED]), place(1, &[behind])],
            faults: 1,
            kinds: vec![Fault::Slow, Fault::Vanish],
            hold: 3 * SECOND,
            quiet: 1,
            ..Bounds::calm(2)
        },
        shows: vec![F::Swept, F::Raised],
        notices: vec![Mutant::LowSeedNotRaised],
    }
}

fn three() -> Scenario {
    use Fact as F;
    Scenario {
        name: "three",
        about: "three contenders; an environment vanishes",
        bounds: Bounds { faults: 1, kinds: vec![Fault::Vanish], hold: 3 * SECOND, ..Bounds::calm(3) },
        shows: vec![F::ObservedTakeover, F::LostRace, F::Abandoned],
        notices: vec![Mutant::ReleaseWithoutOwner],
    }
}
