//! What is asked and told without a lease's being taken or given back: how a row stands, and what a lease has cost.

use serde::{Deserialize, Serialize};
use serde_json::Error;

use super::acquire::{Table, yes};
use super::fields::{Fields, unknown};
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspected {
    /// Which.
    pub id: u64,
    /// How the row stands.
    #[serde(flatten)]
    pub row: RowState,
}

impl Inspected {
    pub(super) fn read(line: &mut Fields) -> Result<Self, Error> {
        Ok(Self { id: line.need("id")?, row: RowState::read(line)? })
    }
}

/// How a row stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<u64>,
        /// How long the lease lasts unrenewed.
        lease_ms: u64,
        /// For how long this keeper has seen the row so, at least; 0 at its first look.
        unchanged_for_ms: u64,
        /// When the holder's lease can end.
        retry_after_ms: u64,
        /// What the row says about its holder.
        #[serde(skip_serializing_if = "Option::is_none")]
        holder: Option<HolderInfo>,
    },
}

impl RowState {
    fn read(line: &mut Fields) -> Result<Self, Error> {
        Ok(match line.need::<String>("state")?.as_str() {
            "absent" => Self::Absent,
            "free" => Self::Free { version: line.need("version")? },
            "held" => Self::Held {
                owner: line.need("owner")?,
                version: line.or_default("version")?,
                lease_ms: line.need("lease_ms")?,
                unchanged_for_ms: line.need("unchanged_for_ms")?,
                retry_after_ms: line.need("retry_after_ms")?,
                holder: line.holder()?,
            },
            other => return Err(unknown("state", other, &["absent", "free", "held"])),
        })
    }
}

/// What a lease has taken up to now, its acquisition included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_unit_millionths: Option<u64>,
    /// What the reads consumed, in millionths of a read capacity unit, as far as DynamoDB told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_unit_millionths: Option<u64>,
}

impl Counted {
    pub(super) fn read(line: &mut Fields) -> Result<Self, Error> {
        Ok(Self {
            id: line.need("id")?,
            waited_ms: line.need("waited_ms")?,
            write_requests: line.need("write_requests")?,
            read_requests: line.need("read_requests")?,
            attempts: line.need("attempts")?,
            attempts_refused: line.need("attempts_refused")?,
            attempts_unknown: line.need("attempts_unknown")?,
            grants_undone: line.need("grants_undone")?,
            takeovers: line.need("takeovers")?,
            renewals: line.need("renewals")?,
            renewal_failures: line.need("renewal_failures")?,
            conditional_failures: line.need("conditional_failures")?,
            request_failures: line.need("request_failures")?,
            cleanup_failures: line.need("cleanup_failures")?,
            write_unit_millionths: line.or_default("write_unit_millionths")?,
            read_unit_millionths: line.or_default("read_unit_millionths")?,
        })
    }
}
