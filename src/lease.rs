//! The handle that a handler can ask: what it holds, whether it still does, and until when.

// The documentation of `Lease` goes in this order.
mod current;

mod token;

mod held;

mod guard;

#[cfg(feature = "dynamodb")]
mod transaction;

#[cfg(feature = "dynamodb")]
mod condition;

#[cfg(feature = "dynamodb")]
mod fence;

mod state;

mod progress;

mod metrics;

mod hold;
mod keys;
mod scope;

use std::sync::{Arc, Weak};
use std::time::Duration;

pub use self::guard::LeaseGuard;
pub(crate) use self::hold::{Hold, note_release};
pub(crate) use self::keys::Keys;
pub use self::metrics::LeaseMetrics;
use self::progress::Progress;
pub(crate) use self::progress::heard_within;
pub(crate) use self::scope::{SCOPE, Scope};
#[cfg(feature = "dynamodb")]
pub use self::transaction::{GuardedTransaction, TransactionError};
use crate::clock::Clock;
use crate::error::{Error, NoLease, Unlocked};
use crate::keeper::client::{KeeperClient, Session};
use crate::key::LockKey;
use crate::session::Table;

/// The lease that a handler runs under.
///
/// Get it with [`Lease::current`] in the handler, to hand the fencing token on, or to make sure of the lease before a step
/// that can't be taken back. Most handlers need none of it: they run under the lease, or not at all.
///
/// A `Lease` is a handle and keeps nothing: the lease lasts until the handler's future and every [`guard`](Self::guard)
/// are gone, whoever still has a handle. In the modes `observe` and `off` the handle is there all the same, says that all
/// is well and has no token: an operator's switch must not make handlers fail.
///
/// ```
/// use lambda_runtime::{Error, LambdaEvent};
/// use leasehold::Lease;
/// use serde_json::{Value, json};
///
/// async fn handler(event: LambdaEvent<Value>) -> Result<Value, Error> {
///     let lease = Lease::current()?;
///     let charge = json!({ "order": event.payload["orderId"], "fence": lease.token() });
///     lease.ensure_held()?; // the charge can't be taken back
///     Ok(charge)
/// }
/// # let _ = handler;
/// ```
#[derive(Clone, Debug)]
pub struct Lease(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keys: Keys,
    table: Table,
    link: Option<Link>,
    /// When the keeper is told of progress, where it wants to hear of it.
    progress: Option<Progress>,
}

/// What connects a lease to its keeper; there is none in mode `off`, or where there would have been none in `observe`.
#[derive(Debug)]
struct Link {
    /// Whether the mode is `enforce`: otherwise nothing that is found out may refuse the handler anything.
    enforced: bool,
    session: Arc<Session>,
    hold: Weak<Hold>,
    keeper: Arc<KeeperClient>,
    clock: Arc<dyn Clock>,
}

impl Lease {
    pub(crate) fn new(
        keys: Keys,
        table: Table,
        hold: &Arc<Hold>,
        keeper: Arc<KeeperClient>,
        clock: Arc<dyn Clock>,
        enforced: bool,
    ) -> Self {
        let session = hold.session().clone();
        let link = Link { enforced, session, hold: Arc::downgrade(hold), keeper, clock };
        Self(Arc::new(Inner { keys, table, link: Some(link), progress: None }))
    }

    /// The same, new lease, whose keeper wants to hear of progress this often.
    pub(crate) fn telling_of_progress_within(mut self, max_silence: Option<Duration>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.progress = max_silence.map(Progress::new);
        }
        self
    }

    /// A lease that nobody keeps, for modes in which nothing may depend on it.
    pub(crate) fn detached(keys: Keys, table: Table) -> Self {
        Self(Arc::new(Inner { keys, table, link: None, progress: None }))
    }

    /// Whether this is the lease on this row.
    pub(crate) fn is_on(&self, table: &Table, key: &LockKey) -> bool {
        self.0.keys.in_order().any(|(_, locked)| locked == key) && self.0.table == *table
    }

    /// A part of the work under this lease was ended before it was done.
    pub(crate) fn cut_off(&self) {
        let hold = self.0.link.as_ref().and_then(|link| link.hold.upgrade());
        if let Some(hold) = hold {
            hold.cut_off();
        }
    }

    #[cfg(feature = "dynamodb")]
    fn table(&self) -> &Table {
        &self.0.table
    }
}

fn given_back() -> Error {
    NoLease { unlocked: Unlocked::GivenBack }.into()
}
