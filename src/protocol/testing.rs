//! A rig for the machines' own tests: hand-moved clocks, counted identities, answers made up.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use super::{
    Action, Answer, Context, Entropy, Failure, FailureKind, HeldRow, Hints, HolderInfo, Observations, Outcome, OwnerId,
    Request, RequestId, Row, ServerTime, Version,
};
use crate::clock::{Clock, ManualClock, Now, Wall};

/// The server's time when a test begins; the rig's own wall clock agrees with it.
pub(super) const BEGIN: u64 = 1_750_000_000;

#[derive(Debug)]
pub(super) struct Rig {
    pub(super) clock: ManualClock,
    pub(super) server_time: ServerTime,
    pub(super) observations: Observations,
    pub(super) warm: bool,
    entropy: Counted,
}

/// Identities 1, 2, 3, …, and no jitter.
#[derive(Debug, Default)]
struct Counted(u128);

impl Entropy for Counted {
    fn owner(&mut self) -> OwnerId {
        self.0 += 1;
        OwnerId::from_u128(self.0)
    }

    fn fraction(&mut self) -> f64 {
        0.5
    }
}

impl Rig {
    pub(super) fn new() -> Self {
        Self {
            clock: ManualClock::at(Wall::from_epoch(Duration::from_secs(BEGIN))),
            server_time: ServerTime::new(),
            observations: Observations::new(),
            warm: true,
            entropy: Counted::default(),
        }
    }

    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    pub(super) fn advance(&self, millis: u64) {
        self.clock.advance(ms(millis));
    }

    pub(super) fn cx(&mut self) -> Context<'_> {
        Context {
            now: self.clock.now(),
            server_time: &mut self.server_time,
            observations: &mut self.observations,
            entropy: &mut self.entropy,
            client_is_warm: self.warm,
        }
    }
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn owner(number: u128) -> OwnerId {
    OwnerId::from_u128(number)
}

/// Somebody else's row.
pub(super) fn held(number: u128, version: u64, lease: u64) -> Row {
    Row::Held(HeldRow {
        owner: owner(number),
        version: Version::Counter(version),
        lease: ms(lease),
        expires_at: None,
        holder: Some(Box::new(HolderInfo { function: format!("function-{number}"), ..HolderInfo::default() })),
        hints: Hints::default(),
    })
}

/// Answers with the server's time at the begin of the test.
pub(super) fn written(version: u64) -> Answer {
    Answer::new(Outcome::written(Version::Counter(version)), Some(BEGIN))
}

pub(super) fn refused(row: Row) -> Answer {
    Answer::new(Outcome::Refused { row }, Some(BEGIN))
}

pub(super) fn read(row: Row) -> Answer {
    Answer::new(Outcome::Read { row }, Some(BEGIN))
}

pub(super) fn failed(kind: FailureKind) -> Answer {
    Answer::new(Outcome::Failed(Failure::new(kind, "made up")), None)
}

/// The request that this action sends.
#[track_caller]
pub(super) fn sent(action: Option<Action>) -> (RequestId, Request, Duration) {
    match action {
        Some(Action::Send { id, request, timeout }) => (id, request, timeout),
        other => panic!("not a request: {other:?}"),
    }
}
