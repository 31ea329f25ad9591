//! The handle that a handler can ask: what it holds, whether it still does, and until when.

#[cfg(feature = "dynamodb")]
mod condition;
#[cfg(feature = "dynamodb")]
mod fence;
mod guard;
mod hold;
mod keys;
mod metrics;
mod progress;
mod scope;
mod state;
#[cfg(feature = "dynamodb")]
mod transaction;

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::timeout;

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
use crate::error::{Error, KeeperGone, LeaseLost, NoFencingToken, NoLease, Tokenless, Unconfirmed, Unlocked};
use crate::keeper::client::{Broken, Grant, KeeperClient, Loss, Session, Which};
use crate::key::LockKey;
use crate::metrics::COUNTERS;
use crate::protocol::{FencingToken, OwnerId};
use crate::session::{CheckAnswer, Table};

/// How long the keeper gets to tell its counts, which wait for nothing.
const COUNTED_WITHIN: Duration = Duration::from_secs(1);

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

    /// The lease of the innermost layer around the running handler.
    ///
    /// # Errors
    ///
    /// [`NoLease`] outside of a handler under a layer, in a task that the handler spawned, and where the layer was told to
    /// run this invocation unlocked.
    pub fn current() -> Result<Self, Error> {
        Ok(Scope::current()?)
    }

    /// The lease of the innermost layer with this name, where several are stacked; a layer's name is its key template
    /// unless set.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # fn f() -> Result<(), Error> {
    /// let tenant = Lease::named("tenants:{tenant}")?;
    /// tenant.ensure_held()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoLease`] as with [`current`](Self::current), and where no layer around the handler has the name.
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(Scope::named(name)?)
    }

    /// What is locked, as it stands on the row: behind its namespace, and hashed where
    /// [`hashed_keys`](crate::LeaseLayerBuilder::hashed_keys) is set. What was hashed is not kept.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.0.keys.main()
    }

    /// The fencing token, if there is one: it only grows, from each holder of a key to the next.
    ///
    /// Hand it to the systems that the work writes to; one that remembers the highest it saw can refuse a writer whose
    /// lease went to somebody else. With the row format `leasehold/1` there always is one in mode `enforce`; in `observe`
    /// there may be none, in `off` there is none. The format `pydynox/1` has none at all. Work that can't do without one
    /// asks for [`fencing_token`](Self::fencing_token).
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.grant()?.token
    }

    /// The fencing token, for work that can't do without one.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # fn f() -> Result<(), Error> {
    /// let fence = Lease::current()?.fencing_token()?.get();
    /// # let _ = fence;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoFencingToken`] where the table's row format has none, and in the modes `observe` and `off` where no lease was
    /// granted.
    pub fn fencing_token(&self) -> Result<FencingToken, Error> {
        let tokenless = match self.grant() {
            Some(Grant { token: Some(token), .. }) => return Ok(token),
            Some(_) => Tokenless::Format(self.0.table.format.clone()),
            None => Tokenless::NotGranted,
        };
        Err(NoFencingToken { key: self.key().clone(), tokenless }.into())
    }

    /// The identity of this acquisition, as it stands on the row; there always is one in mode `enforce`.
    #[must_use]
    pub fn owner(&self) -> Option<OwnerId> {
        self.grant().map(|grant| grant.owner)
    }

    /// Makes sure that the lease is held at this moment, before a step that can't be taken back.
    ///
    /// It asks the keeper, a process or thread of its own, and blocks for that: some hundred microseconds, 50 ms at most.
    /// So it is right even in code that has not yielded since the grant. In the modes `observe` and `off` the answer is
    /// always yes, and what it would have been is counted.
    ///
    /// # Errors
    ///
    /// [`LeaseLost`] or [`KeeperGone`] when it is lost, for good; [`Unconfirmed`] when no answer came, and it may be held
    /// or not; [`NoLease`] when it was given back.
    pub fn ensure_held(&self) -> Result<(), Error> {
        self.valid_for().map(drop)
    }

    /// How long the lease is valid without a further renewal, asked like [`ensure_held`](Self::ensure_held) and counted
    /// from before the question: a step that takes less is safe to begin. In the modes `observe` and `off` that is
    /// without end.
    ///
    /// # Errors
    ///
    /// As [`ensure_held`](Self::ensure_held).
    pub fn valid_for(&self) -> Result<Duration, Error> {
        let Some(link) = &self.0.link else { return Ok(Duration::MAX) };
        let asked = self.ask(link);
        if let Err(error @ Error::Unconfirmed(_)) = &asked {
            COUNTERS.unconfirmed.add_one();
            if link.enforced {
                tracing::warn!(%error, "a lease could not be confirmed");
            }
        }
        match asked {
            Err(error) if !link.enforced => {
                tracing::debug!(%error, "observed: a handler asked for its lease and would have been refused");
                Ok(Duration::MAX)
            }
            asked => asked,
        }
    }

    /// Waits until a third of the lease's validity is left and it was not renewed; always before it is lost.
    ///
    /// Race it against the work, to stop at a clean place. A renewal may yet come: then a later call waits again.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: a later call tells at once what this one would have told.
    pub async fn at_risk(&self) {
        match &self.0.link {
            Some(link) => poll_fn(|cx| link.session.poll_at_risk(cx)).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the lease is no longer held, and tells why: [`LeaseLost`], [`KeeperGone`], or [`NoLease`] once it was
    /// given back.
    ///
    /// With the default [`OnLoss::Cancel`](crate::OnLoss::Cancel) the handler's own future need not wait for it; a task
    /// that it spawned, or a handler that is only signalled, does. In mode `off` it never ends.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: a later call tells at once what this one would have told.
    pub async fn lost(&self) -> Error {
        let Some(link) = &self.0.link else { return std::future::pending().await };
        match poll_fn(|cx| link.session.poll_over(cx)).await {
            Some(loss) => self.error(loss),
            None => given_back(),
        }
    }

    /// Says that the work gets on, for a lease with [`max_silence`](crate::LeaseLayerBuilder::max_silence): one whose
    /// handler has been silent for that long is renewed no more.
    ///
    /// Call it wherever the work has made a step, as often as you like, from any thread and from code that blocks: a line is
    /// written at most ten times in a `max_silence`, and nothing waits. It does not tell whether the lease is held; ask
    /// [`ensure_held`](Self::ensure_held) for that. Without a `max_silence` it does nothing.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # fn import(_: &str) {}
    /// # fn f(lines: &[&str]) -> Result<(), Error> {
    /// let lease = Lease::current()?;
    /// for line in lines {
    ///     import(line);
    ///     lease.progress();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn progress(&self) {
        if let (Some(link), Some(progress)) = (&self.0.link, &self.0.progress)
            && progress.is_due(link.clock.now().mono)
        {
            link.session.progress();
        }
    }

    /// Keeps the lease for work that outlives the handler's future: a streaming body, or a spawned task.
    ///
    /// The lease is given back when the handler's future and all guards are gone, and the extension holds the environment
    /// for that long; the response does not wait.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # async fn write_the_report() {}
    /// # async fn f() -> Result<(), Error> {
    /// let guard = Lease::current()?.guard()?;
    /// tokio::spawn(async move {
    ///     write_the_report().await;
    ///     drop(guard);
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoLease`] when the lease was given back already.
    pub fn guard(&self) -> Result<LeaseGuard, Error> {
        match &self.0.link {
            None => Ok(LeaseGuard::new(self.clone(), None)),
            Some(link) => match link.hold.upgrade() {
                Some(hold) => Ok(LeaseGuard::new(self.clone(), Some(hold))),
                None => Err(given_back()),
            },
        }
    }

    /// What this lease has taken up to now: requests, waiting, failures, and capacity as far as DynamoDB told.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # async fn f() -> Result<(), Error> {
    /// let metrics = Lease::current()?.metrics().await?;
    /// tracing::info!(waited = ?metrics.waited, writes = metrics.write_requests, renewals = metrics.renewals, "locked");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A lease that was lost has its counts still. In the modes `observe` and `off` they are zero where no lease was asked
    /// for.
    ///
    /// # Errors
    ///
    /// [`KeeperGone`] when the keeper is gone or does not answer within a second; [`NoLease`] once the lease was given
    /// back.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub async fn metrics(&self) -> Result<LeaseMetrics, Error> {
        let Some(link) = &self.0.link else { return Ok(LeaseMetrics::default()) };
        if link.session.is_given_back() {
            return Err(given_back());
        }
        let asked = link.session.count();
        match timeout(COUNTED_WITHIN, poll_fn(|cx| link.session.poll_counted(cx, &asked))).await {
            Ok(Ok(counted)) => Ok(LeaseMetrics::new(&counted)),
            Ok(Err(Broken::Closed)) => Err(given_back()),
            Ok(Err(Broken::Gone(reason) | Broken::Version(reason))) => Err(KeeperGone { reason }.into()),
            Err(_) => Err(KeeperGone { reason: "it did not tell its counts in time".to_owned() }.into()),
        }
    }

    /// Whether this is the lease on this row.
    pub(crate) fn is_on(&self, table: &Table, key: &LockKey) -> bool {
        self.0.keys.in_order().any(|(_, locked)| locked == key) && self.0.table == *table
    }

    /// How it was lost, as far as the keeper has said by now; never in a mode that refuses nothing.
    pub(crate) fn loss(&self) -> Option<Error> {
        let link = self.0.link.as_ref().filter(|link| link.enforced)?;
        link.session.look();
        link.session.loss().map(|loss| self.error(loss))
    }

    /// A part of the work under this lease was ended before it was done.
    pub(crate) fn cut_off(&self) {
        let hold = self.0.link.as_ref().and_then(|link| link.hold.upgrade());
        if let Some(hold) = hold {
            hold.cut_off();
        }
    }

    pub(crate) fn error(&self, loss: Loss) -> Error {
        match loss {
            Loss::Told(which, reason) => LeaseLost { key: self.0.keys.get(which).clone(), reason }.into(),
            Loss::KeeperGone(reason) => KeeperGone { reason }.into(),
        }
    }

    #[cfg(feature = "dynamodb")]
    fn table(&self) -> &Table {
        &self.0.table
    }

    fn grant(&self) -> Option<Grant> {
        self.0.link.as_ref()?.session.grant(Which::Main)
    }

    fn ask(&self, link: &Link) -> Result<Duration, Error> {
        let session = &link.session;
        if let Some(loss) = session.loss() {
            return Err(self.error(loss));
        }
        if session.is_given_back() {
            return Err(given_back());
        }
        let before = link.clock.now();
        let mut valid_for = Duration::MAX;
        for (which, _) in self.0.keys.in_order() {
            valid_for = valid_for.min(self.ask_about(link, which)?);
        }
        // All of them counted from before the first question.
        let elapsed = link.clock.now().larger_elapsed(before);
        match valid_for.checked_sub(elapsed) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(self.unconfirmed("its validity ended while the keeper was asked")),
        }
    }

    /// How long the lease on one of the keys is valid, counted from before the question.
    fn ask_about(&self, link: &Link, which: Which) -> Result<Duration, Error> {
        let session = &link.session;
        let Some(grant) = session.grant(which) else { return Err(self.unconfirmed("it was not granted yet")) };
        match link.keeper.check(session.place(), grant.owner) {
            Ok(CheckAnswer::Held { valid_for_ms }) => Ok(Duration::from_millis(valid_for_ms)),
            Ok(CheckAnswer::Lost { reason }) => Err(self.error(Loss::Told(which, reason))),
            Ok(CheckAnswer::Unknown) => {
                let reason = "the keeper knows no such lease, so it was restarted or gave it back".to_owned();
                Err(self.error(Loss::Told(which, reason)))
            }
            // The session may have more to say: its end means that there is no keeper any more.
            Err(reason) => {
                session.look();
                Err(session.loss().map_or_else(|| self.unconfirmed(reason), |loss| self.error(loss)))
            }
        }
    }

    fn unconfirmed(&self, reason: impl Into<String>) -> Error {
        Unconfirmed { key: self.key().clone(), reason: reason.into() }.into()
    }
}

fn given_back() -> Error {
    NoLease { unlocked: Unlocked::GivenBack }.into()
}
