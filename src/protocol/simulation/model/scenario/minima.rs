//! Keys that stay held after the work is done.

use super::super::bounds::{Bounds, Fault, Kind};
use super::super::fact::Fact;
use super::{Scenario, place};
use crate::protocol::Mutant;
use crate::protocol::simulation::clock::{HOUR, SECOND};

/// A minimum by the slowest clock that may be, which the fastest one has to wait for.
fn minimum_of_9_seconds() -> Bounds {
    Bounds {
        places: vec![place(1, &[Kind::SLOW]), place(1, &[Kind::FAST])],
        minimum: Some(9 * SECOND),
        wait: 12 * SECOND,
        ..Bounds::calm(2)
    }
}

pub(super) fn calm() -> Scenario {
    use Fact as F;
    Scenario {
        name: "minima",
        about: "a key stays held after the work is done; requests and answers are late or lost",
        bounds: Bounds { faults: 1, kinds: vec![Fault::Slow, Fault::Broken], ..minimum_of_9_seconds() },
        shows: vec![F::Parked, F::ParkingFound, F::ParkingRepeated, F::ParkedTakenOver, F::Busy],
        notices: vec![
            Mutant::ParkingWithoutVersion,
            Mutant::ParkedForBareRest,
            Mutant::BelievedWhileParking,
            Mutant::UnknownParkingTakenForDone,
        ],
    }
}

pub(super) fn in_trouble() -> Scenario {
    use Fact as F;
    Scenario {
        name: "minima in trouble",
        about: "a key is to stay held; an environment vanishes and what it noted is freed, or a wall clock is set",
        bounds: Bounds {
            minimum: Some(4 * SECOND),
            faults: 1,
            kinds: vec![Fault::Vanish, Fault::Step],
            steps: vec![3 * SECOND as i64, -(HOUR as i64)],
            ..minimum_of_9_seconds()
        },
        shows: vec![F::Parked, F::MinimumOver, F::ParkedTakenOver],
        notices: vec![Mutant::ParkedUnderSameOwner, Mutant::MinimumByLargerClock],
    }
}
