//! Leases taken by hand: inside a handler where one layer does not fit, and in programs that are no Lambda function.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lambda_runtime::Context;
use tokio::time::timeout;
use uuid::Uuid;

use super::acquisition::Acquisition;
use super::answers::Refuse;
use super::builder::LeaseLayerBuilder;
use super::core::Core;
use super::held_by_hand::{Held, Note};
use super::held_lease::HeldLease;
use super::inspect::{KeyState, inspect};
use super::within::{Invocation, Within};
use crate::error::{AlreadyHeld, Error, KeyInvalid, SettingsError};
use crate::keeper::client::Grant;
use crate::key::LockKey;
use crate::lease::{Hold, Scope};
use crate::metrics::COUNTERS;
use crate::session::ReleaseReason;
use crate::settings::Mode;

/// How long the drop of a program's lease waits for the row: it blocks, and may be the last thing that the program does.
const ROW_WITHIN: Duration = Duration::from_millis(250);

/// Takes leases by hand, with the settings and the keeper of a layer.
///
/// The keeper is the extension's, or a thread of this process, as with a layer; so a lease is renewed while its holder
/// blocks, and freed when its holder dies. Clones share the keeper.
///
/// ```no_run
/// use std::time::Duration;
///
/// use leasehold::Leasehold;
///
/// # async fn import() {}
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Leasehold::builder().table("locks").build()?;
/// let lease = locks.acquire("imports:nightly", Duration::from_secs(10)).await?;
/// import().await;
/// lease.ensure_held()?; // before a step that can't be taken back
/// lease.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Leasehold {
    pub(super) core: Arc<Core>,
    within: Within,
}

/// Says that there is no layer: keys are named where leases are taken.
#[derive(Clone, Copy, Debug)]
pub struct ByHand;

impl Leasehold {
    /// Begins with the settings, each of which has the variable that a layer's has.
    ///
    /// What only a layer does (a longest wait of its own, answers, what becomes of a handler) is not there to be set, and
    /// its variables mean nothing here:
    ///
    /// ```compile_fail,E0599
    /// # use std::time::Duration;
    /// # use leasehold::Leasehold;
    /// let locks = Leasehold::builder().table("locks").max_wait(Duration::from_secs(1)).build(); // `acquire` takes the wait
    /// ```
    pub fn builder() -> LeaseLayerBuilder<(), ByHand> {
        LeaseLayerBuilder::new(ByHand, Refuse)
    }

    fn new(core: Core) -> Self {
        let mut context = Context::default();
        context.request_id = Uuid::new_v4().to_string();
        Self { core: Arc::new(core), within: Within::Program(Arc::new(context)) }
    }

    /// The same for one invocation: the wait never eats what its `reserve` keeps, its rows name it, and a key that it
    /// holds already is `AlreadyHeld` at once.
    #[must_use]
    pub fn for_invocation(&self, context: &Context) -> Self {
        self.core.note_remaining(context);
        let held = Held::of(self.core.keeper_name(), &context.request_id);
        let invocation = Invocation { context: context.clone(), around: Scope::around(), held };
        Self { core: self.core.clone(), within: Within::Invocation(Arc::new(invocation)) }
    }

    /// Takes the lease on a key, and waits for it so long at most; a zero wait tries once. A namespace of the settings
    /// stands before the key.
    ///
    /// In mode `observe` nothing is waited for or refused, in mode `off` nothing is done.
    ///
    /// # Errors
    ///
    /// [`LeaseBusy`](crate::error::LeaseBusy) when somebody else held it throughout;
    /// [`AlreadyHeld`] when this invocation holds it; whatever a layer refuses with.
    ///
    /// # Cancellation
    ///
    /// Dropping it takes the request back, and waits by blocking until the keeper has heard of it: some hundred
    /// microseconds, 250 ms at most.
    pub async fn acquire(&self, key: impl Into<String>, wait: Duration) -> Result<HeldLease, Error> {
        let key = self.key(key.into())?;
        match self.core.mode() {
            Mode::Enforce => self.take(key, wait).await,
            Mode::Observe => match self.take(key.clone(), Duration::ZERO).await {
                Ok(lease) => Ok(lease),
                Err(error) => {
                    COUNTERS.would_have_refused.add_one();
                    let error_type = error.error_type();
                    tracing::info!(%key, error_type, %error, "observed: the lease would have been waited for or refused");
                    Ok(self.detached(key))
                }
            },
            Mode::Off => Ok(self.detached(key)),
        }
    }

    /// Takes the lease if nobody else holds it at this moment; `None` if somebody does.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), but for `LeaseBusy`.
    ///
    /// # Cancellation
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self, key: impl Into<String>) -> Result<Option<HeldLease>, Error> {
        match self.acquire(key, Duration::ZERO).await {
            Ok(lease) => Ok(Some(lease)),
            Err(Error::LeaseBusy(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks at a key without taking it: one consistent read, which needs `dynamodb:GetItem` and nothing else.
    ///
    /// It waits for nobody, changes nothing, and works in every mode. What it shows may be over a moment later, so it is
    /// for people and dashboards, not for decisions: to work on a key, take its lease.
    ///
    /// ```
    /// use leasehold::{Error, KeyState, Leasehold};
    ///
    /// # async fn f(locks: &Leasehold) -> Result<(), Error> {
    /// match locks.inspect("imports:nightly").await? {
    ///     KeyState::Held { holder, retry_after, .. } => println!("held by {holder:?}, whose lease can end in {retry_after:?}"),
    ///     state => println!("not held: {state:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ForeignRow`](crate::error::ForeignRow) and [`MalformedRow`](crate::error::MalformedRow) where the row is no lock
    /// of this format; what DynamoDB or the keeper have against the read, as with [`acquire`](Self::acquire). It is sent
    /// once: what may pass is left to the caller to try again.
    ///
    /// # Cancellation
    ///
    /// Nothing is left behind.
    pub async fn inspect(&self, key: impl Into<String>) -> Result<KeyState, Error> {
        let key = self.key(key.into())?;
        inspect(&self.core, self.within.context(), key).await
    }

    async fn take(&self, key: LockKey, wait: Duration) -> Result<HeldLease, Error> {
        let table = &self.core.settings.table;
        let note = self.within.note(table, &key).ok_or_else(|| AlreadyHeld { key: key.clone() })?;
        if self.core.is_held_around(&key) || self.within.is_held_around(table, &key) {
            return Err(AlreadyHeld { key }.into());
        }
        let context = self.within.context();
        let planned = self.core.plan_within(context, wait)?;
        let hold = self.core.begin(context)?;
        let mut acquisition = Acquisition::new(&self.core, hold.session().clone(), key.clone(), &planned, context);
        let answer = match timeout(Core::patience(&planned), poll_fn(|cx| acquisition.poll(cx))).await {
            Ok(answer) => answer,
            Err(_) => poll_fn(|cx| Poll::Ready(acquisition.give_up(cx))).await,
        };
        match answer {
            Ok(grant) => self.granted(key, grant, hold, note),
            Err(error) => {
                // It is told, not waited for.
                Arc::into_inner(hold).inspect(|hold| hold.let_go(ReleaseReason::Cancelled));
                if matches!(error, Error::LeaseBusy(_)) {
                    COUNTERS.busy.add_one();
                } else {
                    COUNTERS.refused.add_one();
                }
                Err(error)
            }
        }
    }

    fn granted(&self, key: LockKey, grant: Grant, hold: Arc<Hold>, note: Note) -> Result<HeldLease, Error> {
        let lease = self.core.lease(key, &hold);
        // Read together with the grant: the work must not even begin.
        if let Some(loss) = hold.session().loss() {
            COUNTERS.refused.add_one();
            return Err(lease.error(loss));
        }
        COUNTERS.granted.add_one();
        tracing::debug!(key = %lease.key(), waited = ?grant.waited, "the lease is held");
        // From here on a drop is an orderly end, unless it comes of a panic.
        hold.finish();
        if matches!(self.within, Within::Program(_)) {
            hold.frees_row_within(ROW_WITHIN);
        }
        Ok(HeldLease { lease, hold: Some(hold), _note: note })
    }

    fn detached(&self, key: LockKey) -> HeldLease {
        HeldLease { lease: self.core.detached(key), hold: None, _note: Note::none() }
    }

    fn key(&self, key: String) -> Result<LockKey, Error> {
        let key = LockKey::new(key).map_err(KeyInvalid::by_hand)?;
        let key = match &self.core.settings.namespace {
            None => key,
            Some(namespace) => LockKey::new(format!("{namespace}/{key}")).map_err(KeyInvalid::by_hand)?,
        };
        Ok(self.core.on_the_row(key))
    }
}

impl LeaseLayerBuilder<(), ByHand> {
    /// Checks everything.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is, in the code's settings and in the environment's.
    pub fn build(self) -> Result<Leasehold, SettingsError> {
        let (keys, rest) = self.without_keys();
        let plan = rest.plan("by hand".to_owned(), Ok(keys), Vec::new())?;
        plan.core.hello();
        Ok(Leasehold::new(plan.core))
    }
}
