//! What is asked and told without a lease's being taken or given back: how a row stands, and what a lease has cost.

use serde::{Deserialize, Serialize};

use super::acquire::{Table, yes};
use crate::protocol::{HolderInfo, OwnerId};

/// A look at a row: one consistent read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspect {
    /// Names the look within its session.
    pub id: u64,
    /// What may be locked.
    pub key: String,
    /// Where its row is.
    pub table: Table,
    /// Whether DynamoDB's `Date` headers serve.
    #[serde(default = "yes")]
    pub server_time: bool,
}

/// What a look showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspected {
    /// Which.
    pub id: u64,
    /// How the row stands.
    #[serde(flatten)]
    pub row: RowState,
}

/// How a row stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum RowState {
    /// There is none.
    Absent,
    /// Nobody holds it.
    Free {
        /// The row's version.
        version: u64,
    },
    /// Somebody holds it.
    Held {
        /// Whose it is.
        owner: OwnerId,
        /// The row's version, where the row format counts them: no lower than its holder's fencing token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u64>,
        /// How long the lease lasts unrenewed.
        lease_ms: u64,
        /// For how long this keeper has seen the row so, at least; 0 at its first look.
        unchanged_for_ms: u64,
        /// When the holder's lease can end.
        retry_after_ms: u64,
        /// What the row says about its holder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<HolderInfo>,
    },
}

/// What a lease has taken up to now, its acquisition included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Which.
    pub id: u64,
    /// How long was waited for the lease.
    pub waited_ms: u64,
    /// Writes that were sent.
    pub write_requests: u64,
    /// Reads that were sent.
    pub read_requests: u64,
    /// Of the writes, those that would have taken the row.
    pub attempts: u64,
    /// Attempts that were refused, by the row or by DynamoDB.
    pub attempts_refused: u64,
    /// Attempts of which it is not known whether they were applied.
    pub attempts_unknown: u64,
    /// Attempts that were applied, and whose lease was over before it could be granted.
    pub grants_undone: u64,
    /// Attempts that took the row over from a holder whose lease had ended.
    pub takeovers: u64,
    /// Renewals that were answered with success.
    pub renewals: u64,
    /// Renewals that were not.
    pub renewal_failures: u64,
    /// Writes whose condition did not hold.
    pub conditional_failures: u64,
    /// Requests that DynamoDB did not serve, or did not answer in time.
    pub request_failures: u64,
    /// Of these, releases: of attempts that were given up, and of the lease itself.
    pub cleanup_failures: u64,
    /// What the writes consumed, in millionths of a write capacity unit, as far as DynamoDB told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_unit_millionths: Option<u64>,
    /// What the reads consumed, in millionths of a read capacity unit, as far as DynamoDB told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_unit_millionths: Option<u64>,
}
