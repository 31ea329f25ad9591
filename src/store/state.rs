//! The store's contract for states: what a holder leaves for the next one, in an item of its own beside the lock's row.

use std::time::Duration;

use crate::clock::Wall;
use crate::protocol::{Failure, OwnerId, Row, Unusable};
use crate::session::RawState;

/// What the key of a lock's state ends with, behind the lock's own key: so a namespace, and IAM's `LeadingKeys`, hold for
/// both.
pub const STATE_SUFFIX: &str = "#state";

/// The key of a lock's state.
#[must_use]
pub fn state_key(key: &str) -> String {
    format!("{key}{STATE_SUFFIX}")
}

/// One request about a lock's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateRequest {
    /// A consistent read.
    Read,
    /// A transaction: the state is written if the lock's row belongs to `owner` and the state is as it was seen.
    ///
    /// Sent again with the same content, it is applied once: `id` is its `ClientRequestToken`, and stands on the state
    /// as well.
    Write(StateWrite),
}

/// What a transaction writes, and on which condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWrite {
    /// Names the transaction, at each time that it is sent.
    pub id: OwnerId,
    /// Whose the lock's row must be.
    pub owner: OwnerId,
    /// The state's counter as it was seen.
    pub seen: SeenState,
    /// When it was decided on: the seed of a counter that is not there, and for people.
    pub at: Wall,
    /// The state; none takes away what is there.
    pub value: Option<RawState>,
    /// Epoch seconds after which DynamoDB may sweep it.
    pub ttl: Option<u64>,
    /// Whether the lock's row is freed by the same transaction, and when it may be swept then.
    pub release: Option<WithRelease>,
}

/// A release within a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithRelease {
    /// Epoch seconds after which DynamoDB may sweep the lock's row; `None` where no safe moment is known.
    pub ttl: Option<u64>,
    /// What to write to the row's hint `hold_ms`; `None` leaves it.
    pub hold: Option<Duration>,
}

/// What is known of a state's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenState {
    /// It was not read. Whatever it is, the owner's condition alone decides.
    Unread,
    /// There is no item.
    Absent,
    /// It is this.
    Counter(u64),
}

impl StateWrite {
    /// The counter that the state gets, where it is known before.
    #[must_use]
    pub fn counter(&self) -> Option<u64> {
        match self.seen {
            SeenState::Unread => None,
            // As with a row's version: a state that was swept goes on above its past.
            SeenState::Absent => Some(self.at.as_millis() + 1),
            SeenState::Counter(seen) => Some(seen + 1),
        }
    }
}

/// A store's answer about a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateAnswer {
    /// What came of it.
    pub outcome: StateOutcome,
    /// The answer's `Date` in seconds since the Unix epoch, if it has one that serves.
    pub date: Option<u64>,
    /// What it consumed.
    pub consumed: Consumed,
}

impl StateAnswer {
    /// An answer that tells neither when it was given nor what it consumed.
    #[must_use]
    pub const fn new(outcome: StateOutcome) -> Self {
        Self { outcome, date: None, consumed: Consumed { writes: None, reads: None } }
    }
}

/// What a request about a state consumed, in millionths of a capacity unit; `None` where the store does not tell. Nothing
/// is told of a transaction that was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumed {
    /// Write capacity.
    pub writes: Option<u64>,
    /// Read capacity: a read's, and that of a transaction which was applied before and is sent again.
    pub reads: Option<u64>,
}

/// What came of a request about a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateOutcome {
    /// What a read found.
    Read(StateItem),
    /// The transaction was applied, now or before.
    Written,
    /// Nothing was written: the lock's row is not this owner's. The row, as it was found.
    NotHeld(Row),
    /// Nothing was written: the state is not as it was seen. The state, as it was found.
    Changed(StateItem),
    /// No usable answer.
    Failed(Failure),
}

/// A state as it stands in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateItem {
    /// There is no item.
    Absent,
    /// There is one, with or without a state in it.
    Kept {
        /// One higher with every write.
        counter: u64,
        /// The state; none where it was taken away.
        value: Option<RawState>,
        /// Epoch seconds after which it no longer counts.
        ttl: Option<u64>,
    },
    /// It is not ours to touch.
    Unusable(Unusable),
}
