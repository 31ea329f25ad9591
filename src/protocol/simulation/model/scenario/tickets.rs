//! Contenders that wait by tickets.

use std::time::Duration;

use super::super::bounds::{Bounds, Fault};
use super::super::fact::Fact;
use super::Scenario;
use crate::protocol::simulation::clock::{MS, SECOND};
use crate::protocol::{Hints, Mutant};

/// Leases of two seconds, which keep the looks of who is next few.
fn waiting(hints: Hints) -> Bounds {
    Bounds { hints: Some(hints), lease: 2 * SECOND, wait: 2_500 * MS, hold: 1_500 * MS, ..Bounds::calm(2) }
}

pub(super) fn late_and_lost() -> Scenario {
    use Fact as F;
    Scenario {
        name: "tickets",
        about: "contenders wait by tickets; requests are late or lost, a free row is swept",
        bounds: Bounds {
            faults: 1,
            kinds: vec![Fault::Slow],
            quiet: 1,
            // So that who is next looks every tenth of a second.
            ..waiting(Hints { hold: Some(Duration::from_secs(2)), ..Hints::default() })
        },
        shows: vec![F::Ticket, F::TicketRefused, F::TicketBurnt, F::Swept, F::ObservedTakeover, F::Busy],
        notices: vec![Mutant::TicketOnAnyRow, Mutant::AcquireInTurnOnly, Mutant::ReleaseDropsVersion],
    }
}

pub(super) fn far_from_its_turn() -> Scenario {
    use Fact as F;
    let hold = Some(Duration::from_secs(6));
    Scenario {
        name: "far from its turn",
        about: "nine tickets of contenders that are gone, holds that are usually long; an environment vanishes",
        bounds: Bounds {
            faults: 1,
            kinds: vec![Fault::Vanish],
            ..waiting(Hints { tickets: Some(9), served: Some(0), hold, ..Hints::default() })
        },
        shows: vec![F::Ticket, F::ObservedTakeover, F::Abandoned],
        notices: vec![Mutant::FreeRowLeftToOthers, Mutant::SleepsPastTakeover],
    }
}

pub(super) fn overtaken() -> Scenario {
    use Fact as F;
    Scenario {
        name: "overtaken",
        about: "turns that are counted far ahead of the tickets; an environment vanishes",
        bounds: Bounds {
            faults: 1,
            kinds: vec![Fault::Vanish],
            lease: 6 * SECOND,
            wait: 7 * SECOND,
            ..waiting(Hints { tickets: Some(9), served: Some(1_000_000), ..Hints::default() })
        },
        shows: vec![F::Ticket, F::ObservedTakeover, F::Abandoned],
        notices: vec![Mutant::ServedRunsAhead],
    }
}
