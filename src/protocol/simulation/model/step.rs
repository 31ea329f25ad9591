//! One thing that may happen next.

use std::fmt;

use crate::protocol::simulation::clock::{Freeze, Micros};

/// One thing that happens at one moment, or the passing of time to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A session begins at a place; where nobody is yet, in an environment of that kind.
    Begin {
        /// The place.
        place: u8,
        /// Which of its kinds.
        kind: u8,
    },
    /// Something happens to a session.
    Session {
        /// The place.
        place: u8,
        /// Which of its sessions.
        session: u8,
        /// What happens.
        what: What,
    },
    /// An environment is frozen.
    Freeze {
        /// The place.
        place: u8,
        /// What becomes of its clocks.
        how: Freeze,
        /// For how long, in microseconds.
        long: Micros,
    },
    /// It goes on.
    Thaw {
        /// The place.
        place: u8,
    },
    /// An environment's wall clock is stepped.
    StepWall {
        /// The place.
        place: u8,
        /// By how many microseconds.
        by: i64,
    },
    /// Nothing that an environment sends arrives any more.
    Cut {
        /// The place.
        place: u8,
    },
    /// What it sends arrives again.
    Mend {
        /// The place.
        place: u8,
    },
    /// An environment vanishes.
    Vanish {
        /// The place.
        place: u8,
    },
    /// A write lands that nobody waits for any more.
    Land {
        /// Which one.
        stray: u8,
    },
    /// The row is swept.
    Sweep,
    /// Nobody comes until the row's `ttl` is over.
    Quiet,
    /// Time passes until this moment.
    Pass {
        /// In true microseconds.
        until: Micros,
    },
}

/// What happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Its request is carried out and answered at once.
    RoundTrip,
    /// The same, but the answer has no `Date`.
    DatelessRoundTrip,
    /// Its request is carried out; the answer stays on its way.
    Apply,
    /// The answer comes.
    Answer,
    /// Its request is turned away.
    Throttle,
    /// Its connection breaks.
    Break,
    /// Its request's time is over.
    TimeOut,
    /// The moment has come that its machine asked for.
    Wake,
    /// The handler is done: the lease is given back.
    Finish,
    /// The handler is dead: the row is left.
    Abandon,
    /// Who waits no longer wants the lease.
    Cancel,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |micros: Micros| micros as f64 / 1e6;
        match *self {
            Self::Begin { place, .. } => write!(f, "a session begins at place {place}"),
            Self::Session { place, session, what } => write!(f, "place {place}, session {session}: {what}"),
            Self::Freeze { place, how, long } => {
                write!(f, "place {place} is frozen for {:.3} s, clocks: {how:?}", seconds(long))
            }
            Self::Thaw { place } => write!(f, "place {place} goes on"),
            Self::StepWall { place, by } => {
                write!(f, "place {place}: the wall clock is stepped by {:+.3} s", by as f64 / 1e6)
            }
            Self::Cut { place } => write!(f, "place {place} is cut off from the store"),
            Self::Mend { place } => write!(f, "place {place} reaches the store again"),
            Self::Vanish { place } => write!(f, "place {place} vanishes"),
            Self::Land { stray } => write!(f, "late write {stray} lands"),
            Self::Sweep => f.write_str("the row is swept"),
            Self::Quiet => f.write_str("nobody comes until the row's ttl is over"),
            Self::Pass { until } => write!(f, "time passes until {:.6} s", seconds(until)),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundTrip => "the request is carried out and answered",
            Self::DatelessRoundTrip => "the request is carried out and answered without a Date",
            Self::Apply => "the request is carried out, its answer on the way",
            Self::Answer => "the answer comes",
            Self::Throttle => "the request is throttled",
            Self::Break => "the connection breaks",
            Self::TimeOut => "the request times out",
            Self::Wake => "wakes up",
            Self::Finish => "the handler is done",
            Self::Abandon => "the handler dies, the row is left to end by itself",
            Self::Cancel => "the acquisition is cancelled",
        })
    }
}
