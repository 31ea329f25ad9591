//! The parties: environments with their keepers, and the sessions in them.

use super::clock::{Micros, SimClock};
use super::machine::Machine;
use super::queue::Event;
use crate::clock::{Mono, Now};
use crate::protocol::{Answer, Epoch, Observations, OwnerId, Request, RequestId, ServerTime, Settings};

/// One environment: its clocks, and what its keeper remembers.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) clock: SimClock,
    pub(super) observations: Observations,
    pub(super) server_time: ServerTime,
    pub(super) uses_server_time: bool,
    /// How far the clock of the front end it talks to is off.
    pub(super) skew: i64,
    pub(super) warm: bool,
    /// Nothing it is answered has a `Date` that serves, in its present session.
    pub(super) dateless: bool,
    pub(super) alive: bool,
    pub(super) frozen: bool,
    /// What came while it was frozen.
    pub(super) deferred: Vec<Event>,
    pub(super) sessions_left: u64,
    pub(super) open: u64,
    /// Until when nothing it sends arrives, and from when on.
    pub(super) cut: (Micros, Micros),
    /// When its monotonic clock last stood still, and when its wall clock last went back.
    pub(super) mono_stopped: Option<Micros>,
    pub(super) wall_back: Option<Micros>,
}

impl Keeper {
    pub(super) fn cut_for(&self, at: Micros) -> Option<Micros> {
        (self.cut.0 <= at && at < self.cut.1).then(|| self.cut.1 - at)
    }
}

/// How an acquisition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Granted,
    Refused,
}

/// How a handler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It returns, or crashes and the keeper frees the row on its behalf.
    Release,
    /// It returns, and its key is to stay held for so long after its acquisition.
    Park(Micros),
    /// It crashes, and the row is left to end by itself.
    Abandon,
    /// The whole environment is gone without a word.
    Vanish,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) keeper: usize,
    pub(super) key: usize,
    pub(super) settings: Settings,
    pub(super) epoch: Epoch,
    pub(super) machine: Machine,
    /// The attempts before the one that took the row which were never answered.
    pub(super) unanswered: Vec<OwnerId>,
    pub(super) end: Option<End>,
    /// Nothing may be believed any more: refused, released, lost or given up.
    pub(super) over: bool,
    pub(super) warned: bool,
    pub(super) release_sent: bool,
    /// When its last attempt was sent, and how fast its clock ran then.
    pub(super) attempted: (Micros, u64),
    /// The minimum that its release is to keep, since it was asked for, and under whom the row is parked.
    pub(super) parking: Option<(Micros, Option<OwnerId>)>,
    /// The handler still waits or works.
    pub(super) open: bool,
    pub(super) wake: Option<Mono>,
    pub(super) began: Now,
    /// When it began, by true time.
    pub(super) came: Micros,
    pub(super) stop: Mono,
    pub(super) latest: Option<Mono>,
    pub(super) hold: Micros,
    pub(super) ending: Ending,
    /// Something went wrong on the way: a request, a freeze, a step of the clock.
    pub(super) disturbed: bool,
    pub(super) frozen: bool,
    /// Requests that had no answer yet.
    pub(super) waiting: u32,
    pub(super) renewals: (Option<Micros>, Option<Micros>),
    /// For the last contender: by when the row must be its own.
    pub(super) due: Option<Micros>,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) session: usize,
    pub(super) id: RequestId,
    pub(super) request: Request,
    pub(super) fate: super::network::Fate,
    pub(super) deadline: Mono,
    pub(super) answer: Option<Answer>,
    /// The machine had its one answer.
    pub(super) settled: bool,
}
