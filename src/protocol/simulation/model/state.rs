//! A state of the model: the row, the environments with their machines, and what is under way.

use std::sync::Arc;

use super::bounds::Bounds;
use super::fact::{Fact, Facts};
use crate::clock::{Mono, Now};
use crate::protocol::simulation::Violation;
use crate::protocol::simulation::clock::{Freeze, HOUR, Micros, PPM, SimClock};
use crate::protocol::simulation::keeper::End;
use crate::protocol::simulation::machine::Machine;
use crate::protocol::simulation::minimum::Minima;
use crate::protocol::simulation::store::{Store, Stored};
use crate::protocol::{Answer, Format, Hints, Observations, OwnerId, Request, RequestId, Rules, ServerTime, Validity};

/// The row format of the model's one table: the one that has the most rules.
pub(super) const FORMAT: Format = Format::LeaseholdV1;

/// Everything that decides what may happen next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) now: Micros,
    pub(super) store: Store,
    /// `None` where nobody will ever come again. Shared with the states before, so that a step copies only what it
    /// changes.
    pub(super) places: Vec<Option<Arc<Environment>>>,
    /// Writes that may still land although nobody waits for them.
    pub(super) strays: Vec<Request>,
    /// The highest token given out.
    pub(super) token: u64,
    /// What parked leases promise.
    pub(super) minima: Minima,
    pub(super) faults: u8,
    pub(super) quiet: u8,
    pub(super) swept: bool,
    /// Since when the row is nobody's.
    pub(super) free_since: Option<Micros>,
    pub(super) violation: Option<Violation>,
    /// What the last step showed.
    pub(super) facts: Facts,
}

/// Who is at a place: an environment with its keeper, or, before its first session, nobody yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Environment {
    pub(super) born: bool,
    /// Which of the place's kinds it is.
    pub(super) kind: u8,
    pub(super) clock: SimClock,
    pub(super) server_time: ServerTime,
    pub(super) observations: Observations,
    /// How many identities were given out here: they go on when an environment vanishes and another comes.
    pub(super) owners: u32,
    pub(super) sessions_left: u8,
    pub(super) sessions: Vec<Session>,
    /// How it is frozen, and until when.
    pub(super) frozen: Option<(Freeze, Micros)>,
    pub(super) cut: bool,
    /// Its monotonic clock stood still within this run, or its wall clock went back: never both.
    pub(super) mono_stopped: bool,
    pub(super) wall_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    pub(super) machine: Machine,
    /// When it began, by true time.
    pub(super) came: Micros,
    /// No renewal after this.
    pub(super) renews_until: Mono,
    pub(super) latest: Option<Mono>,
    pub(super) flight: Option<Flight>,
    pub(super) wake: Option<Mono>,
    pub(super) end: Option<End>,
    /// Nothing may be believed any more: refused, released or lost.
    pub(super) over: bool,
    pub(super) warned: bool,
    /// The handler's side asked for the release.
    pub(super) asked: bool,
    pub(super) release_sent: bool,
    /// When its last attempt was sent, where a minimum counts from it.
    pub(super) attempted: Micros,
    /// Whether its release is to keep a minimum, and under whom the row is parked.
    pub(super) keeps_minimum: bool,
    pub(super) parked: Option<OwnerId>,
}

/// A request under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) id: RequestId,
    pub(super) request: Request,
    pub(super) deadline: Mono,
    /// It is not carried out and answered at once; that is paid for.
    pub(super) slow: bool,
    /// The answer, once the store carried it out.
    pub(super) answer: Option<Answer>,
    /// Which rule a takeover rests on.
    pub(super) rests_on: Option<Fact>,
}

impl State {
    pub(super) fn new(bounds: &Bounds, rules: Rules) -> Self {
        let place = |sessions| Some(Arc::new(Environment::unborn(sessions, 0)));
        let mut store = Store::new(1, FORMAT, rules);
        store.rows[0] = bounds.hints.filter(|hints| *hints != Hints::default()).map(Stored::left_free);
        Self {
            now: bounds.begins,
            store,
            places: bounds.places.iter().map(|at| place(at.sessions)).collect(),
            strays: Vec::new(),
            token: 0,
            minima: Minima::default(),
            faults: bounds.faults,
            quiet: bounds.quiet,
            swept: false,
            free_since: Some(bounds.begins),
            violation: None,
            facts: Facts::default(),
        }
    }

    /// The invariant that the last step broke.
    #[must_use]
    pub const fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// What the last step showed to be possible.
    #[must_use]
    pub const fn facts(&self) -> Facts {
        self.facts
    }

    /// True time since the run began, in microseconds.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn environments(&self) -> impl Iterator<Item = &Environment> {
        self.places.iter().flatten().map(Arc::as_ref)
    }

    /// How many sessions believe that they hold the key. A frozen one is asked when it goes on, by the clocks it then has.
    pub(super) fn believers(&self) -> usize {
        self.environments()
            .filter(|at| at.frozen.is_none())
            .flat_map(|at| at.sessions.iter().map(|session| (session, at.clock.read(self.now))))
            .filter(|(session, now)| session.validity().is_some_and(|validity| !validity.left(*now).is_zero()))
            .count()
    }
}

impl Environment {
    pub(super) fn unborn(sessions_left: u8, owners: u32) -> Self {
        Self {
            born: false,
            kind: 0,
            clock: SimClock::exact(HOUR, 0, PPM, PPM),
            server_time: ServerTime::new(),
            observations: Observations::new(),
            owners,
            sessions_left,
            sessions: Vec::new(),
            frozen: None,
            cut: false,
            mono_stopped: false,
            wall_back: false,
        }
    }

    pub(super) fn read(&self, at: Micros) -> Now {
        self.clock.read(at)
    }
}

impl Session {
    pub(super) fn validity(&self) -> Option<Validity> {
        match &self.machine {
            Machine::Holder(holder) => holder.validity(),
            Machine::Contender(_) | Machine::Done => None,
        }
    }

    /// The handler works under the lease, or does not know yet that it is lost.
    pub(super) fn works(&self) -> bool {
        self.end == Some(End::Granted) && !self.asked
    }
}
