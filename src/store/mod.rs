//! The store's contract: who keeps the rows.
//!
//! [`DynamoDb`] keeps them in DynamoDB tables. What a row looks like and by which condition it is written is a format's
//! business (`row_format`, and a file a format); what an error means is sorted in one place (`errors`); a set of connections is
//! given up as a whole (`connection`); whose certificates it believes stands in `https`, whose credentials it signs with in
//! `credentials`.

mod attributes;
mod connection;
mod credentials;
mod dynamodb;
mod errors;
mod https;
mod leasehold_state_v1;
mod leasehold_v1;
mod pydynox_v1;
mod row_format;
mod state;
mod state_transaction;
mod text;
mod usage;
mod witness;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::protocol::{Answer, Failure, FailureKind, HolderInfo, Request};
use crate::session::Table;

pub use dynamodb::{DynamoDb, FoundRow, Look, Page, Position, Scan};
pub use state::{
    Consumed, STATE_SUFFIX, SeenState, StateAnswer, StateItem, StateOutcome, StateRequest, StateWrite, WithRelease,
    state_key,
};
pub use usage::StoreUsage;

/// A client that believes whom the store believes, and keeps its connections.
pub(crate) fn https_client() -> aws_smithy_runtime_api::client::http::SharedHttpClient {
    https::Trust::from_env().client()
}

/// The same, for requests that are seldom made.
pub(crate) fn https_client_for_credentials() -> aws_smithy_runtime_api::client::http::SharedHttpClient {
    https::Trust::from_env().client_for_credentials()
}

/// What an error that came by such a client tells of the way.
pub(crate) fn unreached(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    https::Unreached::in_error(error).map(ToString::to_string)
}

/// One lock: where its row is, and what people are told by it while it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The table.
    pub table: Table,
    /// The key, 1 to 2,048 bytes.
    pub key: String,
    /// Written to the row by an attempt, with the moment of that attempt.
    pub holder: HolderInfo,
    /// Attributes that the row has for people while it is held, beside the format's own.
    pub attributes: BTreeMap<String, String>,
}

/// Keeps the rows, and changes each by one conditional request at a time.
///
/// # The compare-and-set duty
///
/// A write is applied if and only if the condition that [`Request`] describes holds at the moment at which it is
/// applied, as one indivisible step; a read is consistent. A request is sent once: the protocol alone retries, for only
/// it knows what an unknown outcome means. An answer that comes after `timeout` is dropped, and one that is there when
/// the timer fires is looked at first: after a freeze both happen at once.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Sends one request and waits at most `timeout` for its answer. What it consumed is told with the answer, where the
    /// table's service tells it; asking for that costs nothing.
    ///
    /// # Cancellation
    ///
    /// A write may be applied all the same: its outcome is unknown.
    fn send(&self, lock: &Lock, request: Request, timeout: Duration) -> impl Future<Output = Answer> + Send;

    /// Sends one request about the lock's state, on the same duty: a transaction is applied as a whole or not at all. One
    /// that is sent again with the same id and content is applied once.
    ///
    /// A store that keeps no states need not have it.
    ///
    /// # Cancellation
    ///
    /// A transaction may be applied all the same.
    fn send_state(
        &self,
        lock: &Lock,
        request: StateRequest,
        timeout: Duration,
    ) -> impl Future<Output = StateAnswer> + Send {
        let _ = (lock, request, timeout);
        let failure = Failure::new(FailureKind::Rejected, "this store keeps no states");
        std::future::ready(StateAnswer::new(StateOutcome::Failed(failure)))
    }

    /// Makes the connection ahead of the first request, as far as that goes without knowing a table.
    fn warm_up(&self) -> impl Future<Output = ()> + Send;

    /// Drops all pooled connections, so that the next request is sent on a new one and nothing that an old one holds
    /// back can be delivered later.
    fn drop_connections(&self);
}
