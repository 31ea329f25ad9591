//! What a session's connection has brought so far.

use super::heard_lease::HeardLease;
pub(crate) use super::heard_lease::{Answer, Grant, Released};
use super::lost;
use super::state::States;
use crate::session::{AnswerTo as _, ErrorKind, FailKind, FromKeeper, RowState, VersionRange};

/// The one look that a layer makes in a session, in place of an acquisition.
pub(super) const LOOK: u64 = 1;

/// How a row stands, or why that could not be told.
pub(crate) type Looked = Result<RowState, (FailKind, String)>;

/// Which of the keys that an invocation locks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The layer's own: its owner and its token are the lease's.
    Main,
    /// The one that is taken beside it.
    Also,
}

impl Which {
    /// What the lines about it carry.
    pub(super) const fn id(self) -> u64 {
        match self {
            Self::Main => 1,
            Self::Also => 2,
        }
    }
}

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The other side speaks other versions.
    Version(String),
    /// The other side is gone, or no longer makes sense.
    Gone(String),
    /// This side is done with it.
    Closed,
}

/// How a lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The keeper said so.
    Told(Which, String),
    /// The keeper is gone.
    KeeperGone(String),
}

/// What a session owes its keeper at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// The lease that it holds.
    Lease,
    /// That it no longer wants the lease it asked for.
    Cancellation,
}

/// Everything that was heard.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The session versions that were offered.
    offered: VersionRange,
    began: bool,
    /// The answer to `inspect`, once it was asked.
    pub(super) look: Option<Option<Looked>>,
    pub(super) broken: Option<Broken>,
    /// What was asked for, in its order.
    pub(super) leases: Vec<HeardLease>,
    pub(super) states: States,
}

impl Heard {
    /// Nothing was heard yet.
    pub(super) fn new(offered: VersionRange) -> Self {
        let states = States::default();
        Self { offered, began: false, look: None, broken: None, leases: Vec::new(), states }
    }

    /// Takes in one line.
    pub(super) fn hear(&mut self, line: FromKeeper) {
        match line {
            FromKeeper::Began { version } => match self.offered.pick(VersionRange { min: version, max: version }) {
                Some(_) => self.began = true,
                None => self.break_off(Broken::Version(format!("the keeper answered with session version {version}"))),
            },
            // A message that the keeper does not know, after it picked the version, is another release's as well. And
            // before anything was begun it can only be about `begin`, which no keeper of a version near ours refuses.
            FromKeeper::Error { kind, message }
                if !self.began || matches!(kind, ErrorKind::Versions | ErrorKind::Message) =>
            {
                self.break_off(Broken::Version(message));
            }
            FromKeeper::Error { message, .. } => self.break_off(Broken::Gone(message)),
            FromKeeper::Inspected(inspected) => self.answer_look(inspected.id, Ok(inspected.row)),
            FromKeeper::Failed { id, kind, message } if self.look.is_some() => {
                self.answer_look(id, Err((kind, message)))
            }
            line @ (FromKeeper::State { .. } | FromKeeper::StateSaved { .. } | FromKeeper::StateFailed { .. }) => {
                self.states.hear(line);
            }
            // What is about no acquisition of ours, or answers another question, has nothing of ours rest on it.
            line => {
                if let Some(lease) = self.leases.iter_mut().find(|lease| line.id() == Some(lease.which.id())) {
                    lease.hear(line);
                }
            }
        }
    }

    /// Whether it is known which version is spoken.
    pub(super) const fn knows_version(&self) -> bool {
        self.began || self.offered.min == self.offered.max
    }

    fn answer_look(&mut self, id: u64, looked: Looked) {
        if let (LOOK, Some(look)) = (id, &mut self.look) {
            look.get_or_insert(looked);
        }
    }

    pub(super) fn break_off(&mut self, broken: Broken) {
        if self.broken.is_none() && matches!(broken, Broken::Gone(_)) {
            let held = self.leases.iter().filter(|lease| lease.released.is_none());
            held.filter_map(HeardLease::grant).for_each(|grant| lost::note(grant.owner));
        }
        self.broken.get_or_insert(broken);
    }

    /// The lease on this key, if one was granted.
    pub(super) fn grant(&self, which: Which) -> Option<Grant> {
        self.leases.iter().find(|lease| lease.which == which)?.grant()
    }

    /// Whether a lease is at risk, or worse.
    pub(super) fn is_at_risk(&self) -> bool {
        self.broken.is_some() || self.leases.iter().any(|lease| lease.at_risk || lease.lost.is_some())
    }

    /// Whether what is held was given back, or is on its way.
    pub(super) fn is_releasing(&self) -> bool {
        self.leases.iter().any(|lease| lease.releasing)
    }

    /// How a granted lease was lost. The loss of one of two is the loss of both.
    pub(super) fn loss(&self) -> Option<Loss> {
        let mut granted = self.leases.iter().filter(|lease| lease.grant().is_some()).peekable();
        granted.peek()?;
        if let Some((which, reason)) = granted.find_map(|lease| Some((lease.which, lease.lost.clone()?))) {
            return Some(Loss::Told(which, reason));
        }
        match &self.broken {
            Some(Broken::Gone(reason) | Broken::Version(reason)) if !self.is_releasing() => {
                Some(Loss::KeeperGone(reason.clone()))
            }
            _ => None,
        }
    }

    /// What has to be sent to give back what is held; `None` where there is nothing to give. Where a lease that was asked
    /// for is still to come, no work was begun under the others.
    pub(super) fn owes(&self) -> Option<Owed> {
        if self.broken.is_some() || !self.leases.iter().any(HeardLease::is_open) {
            return None;
        }
        let complete = self.leases.iter().all(|lease| lease.grant().is_some());
        Some(if complete { Owed::Lease } else { Owed::Cancellation })
    }

    /// The end of a release that was sent.
    pub(super) fn released(&self) -> Option<Released> {
        let gone = match &self.broken {
            Some(Broken::Gone(reason) | Broken::Version(reason)) => Some(reason),
            _ => None,
        };
        let mut ends = Released::Done;
        for lease in &self.leases {
            match lease.ended(gone)? {
                Released::Done => {}
                failed @ Released::Failed(_) => ends = failed,
            }
        }
        (!self.leases.is_empty() || gone.is_some()).then_some(ends)
    }
}
