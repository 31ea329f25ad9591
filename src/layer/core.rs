//! What a layer knows, whatever its handler: settings, keeper, clock; and what follows from them for one invocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lambda_runtime::Context;

use crate::budget::{Budget, Deadline};
use crate::clock::{Clock, Now, SystemClock};
use crate::error::{DeadlineTooClose, Error, Unlocked};
use crate::keeper::client::{KeeperClient, KeeperName};
use crate::key::LockKey;
use crate::lease::{Hold, Keys, Lease, Scope, heard_within};
use crate::protocol::HolderInfo;
use crate::session::Acquire;
use crate::settings::{Mode, OnLoss, Release, Settings};

/// How much longer than the budget the keeper gets to answer before it counts as gone. With a known deadline it gives up
/// by itself when the work can't begin any more.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same without a deadline: the last attempt's own timeout, and a release of what it may have left behind.
const PATIENCE_WITHOUT_DEADLINE: Duration = Duration::from_secs(15);

/// A layer without its closures.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    name: Arc<str>,
    keeper: Arc<KeeperClient>,
    reserve_warned: AtomicBool,
    /// The most that was left when an invocation began, in milliseconds.
    most_left_ms: AtomicU64,
}

/// A budget, and the moment from which it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) budget: Budget,
    now: Now,
}

/// When a handler is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeLimit {
    pub(super) within: Duration,
    pub(super) margin: Duration,
}

impl Core {
    pub(super) fn new(settings: Settings, name: String) -> Self {
        let keeper = Arc::new(KeeperClient::new(&settings));
        let clock = clock(&settings);
        Self {
            settings,
            clock,
            name: name.into(),
            keeper,
            reserve_warned: AtomicBool::new(false),
            most_left_ms: AtomicU64::new(0),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// Tells the extension that a layer is there.
    pub(super) fn hello(&self) {
        if self.mode() != Mode::Off {
            self.keeper.hello();
        }
    }

    /// Begins this invocation's session.
    pub(super) fn begin(&self, context: &Context) -> Result<Arc<Hold>, Error> {
        self.note_remaining(context);
        let hold = begin(&self.keeper, context)?;
        self.take_over(&hold);
        Ok(hold)
    }

    /// What this layer's settings say about a session, whoever began it.
    pub(super) fn take_over(&self, hold: &Hold) {
        if let Some(minimum) = self.settings.hold_at_least {
            hold.hold_at_least(minimum);
        }
    }

    /// The way to this layer's keeper.
    #[cfg(feature = "http")]
    pub(super) const fn keeper(&self) -> &Arc<KeeperClient> {
        &self.keeper
    }

    /// Which keeper it asks.
    pub(super) fn keeper_name(&self) -> KeeperName {
        self.keeper.name()
    }

    /// An invocation begins: what is left of it now is what its work can have at most.
    pub(super) fn note_remaining(&self, context: &Context) {
        let left = Deadline::from_epoch_ms(context.deadline).remaining(self.clock.now().wall);
        self.most_left_ms.fetch_max(left.map_or(0, millis), Ordering::Relaxed);
    }

    /// The most that was left when an invocation began. It tells one that is late from one that is like all others.
    pub(super) fn most_left(&self) -> Duration {
        Duration::from_millis(self.most_left_ms.load(Ordering::Relaxed)).max(Scope::most_left())
    }

    /// How long this invocation may take to get its lease, from now on.
    pub(super) fn plan(&self, context: &Context) -> Result<Planned, DeadlineTooClose> {
        self.plan_within(context, self.settings.max_wait)
    }

    /// The same, with another longest wait than the settings'.
    pub(super) fn plan_within(&self, context: &Context, max_wait: Duration) -> Result<Planned, DeadlineTooClose> {
        let reserve = self.settings.reserve;
        let now = self.clock.now();
        let budget = Budget::plan(now, Deadline::from_epoch_ms(context.deadline), reserve, max_wait)
            .map_err(|error| error.of_invocations_with(self.most_left()))?;
        if budget.reserve_defaulted && !self.reserve_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                layer = self.name(),
                "no `reserve` is set, so 80 % of an invocation's time are kept for the work: set what it needs \
                 (LEASEHOLD_RESERVE)"
            );
        }
        Ok(Planned { budget, now })
    }

    /// The line that asks for the lease.
    pub(super) fn acquire(&self, key: &LockKey, planned: &Planned, context: &Context) -> Box<Acquire> {
        let settings = &self.settings;
        let Planned { budget, now } = *planned;
        Box::new(Acquire {
            // The session gives it its own.
            id: 0,
            key: key.as_str().to_owned(),
            table: settings.table.clone(),
            lease_ms: millis(settings.lease_duration),
            wait_ms: millis(budget.wait(now)),
            answer_within_ms: budget.answer_within(now).map(millis),
            polling: settings.polling.in_millis(),
            on_crash: settings.on_crash,
            server_time: settings.server_time,
            max_hold_ms: millis(settings.max_hold),
            max_silence_ms: settings.max_silence.map(|silence| millis(heard_within(silence))),
            state_retention_ms: settings.state_retention.map(millis),
            attributes: settings.attributes.clone(),
            holder: HolderInfo {
                function: context.env_config.function_name.clone(),
                version: context.env_config.version.clone(),
                request_id: context.request_id.clone(),
                template: self.name.to_string(),
                note: settings.holder_note.clone(),
                acquired_at: None,
                parked: false,
            },
        })
    }

    /// A key as it stands on its row, and is told from here on: behind its namespace, hashed if the settings say so.
    pub(super) fn on_the_row(&self, key: LockKey) -> LockKey {
        let Some(hash) = &self.settings.key_hash else { return key };
        let text = key.as_str();
        let split = self.settings.namespace.as_ref().and_then(|namespace| {
            let own = text.strip_prefix(namespace.as_str())?.strip_prefix('/')?;
            Some((namespace, LockKey::new(own).ok()?))
        });
        match split {
            None => hash.of(&key),
            Some((namespace, own)) => hash.of(&own).behind(namespace),
        }
    }

    /// Whether what stands in the event is not to be told, as keys may be made of it.
    pub(super) const fn hides_values(&self) -> bool {
        self.settings.key_hash.is_some()
    }

    /// An error about an event's key, without what stands in the event where that is not to be told.
    pub(super) fn hide(&self, error: Error) -> Error {
        match error {
            Error::KeyInvalid(invalid) if self.hides_values() => invalid.without_value().into(),
            Error::RouteNotMatched(not_matched) if self.hides_values() => not_matched.without_path().into(),
            error => error,
        }
    }

    /// After how long without an answer the keeper counts as gone.
    pub(super) fn patience(planned: &Planned) -> Duration {
        let Planned { budget, now } = *planned;
        match (budget.answer_within(now), budget.reserve) {
            // Not all of the reserve goes: an error is to be answered before the deadline.
            (Some(within), Some(reserve)) => within + PATIENCE.min(reserve / 4),
            _ => budget.wait(now) + PATIENCE_WITHOUT_DEADLINE,
        }
    }

    /// Whether a response is held back until the row is free.
    pub(super) fn releases_before_response(&self) -> bool {
        self.settings.release == Release::BeforeResponse
    }

    /// Whether a response that was ready when a loss was seen becomes the loss.
    pub(super) fn takes_back_answers(&self) -> bool {
        self.settings.on_loss == OnLoss::Cancel && !self.settings.keep_finished_response
    }

    /// When the handler is to be ended, if it is.
    pub(super) fn time_limit(&self, context: &Context) -> Option<TimeLimit> {
        if self.mode() != Mode::Enforce {
            return None;
        }
        let at_the_deadline = self.settings.managed_instances.then_some(Duration::ZERO);
        let margin = self.settings.end_before_deadline.or(at_the_deadline)?;
        let remaining = Deadline::from_epoch_ms(context.deadline).remaining(self.clock.now().wall)?;
        Some(TimeLimit { within: remaining.saturating_sub(margin), margin })
    }

    /// The handle for a handler under a lease of this session.
    pub(super) fn lease(&self, keys: impl Into<Keys>, hold: &Arc<Hold>) -> Lease {
        let (enforced, settings) = (self.mode() == Mode::Enforce, &self.settings);
        let lease =
            Lease::new(keys.into(), settings.table.clone(), hold, self.keeper.clone(), self.clock.clone(), enforced);
        lease.telling_of_progress_within(settings.max_silence)
    }

    /// The handle for a handler without a session, in a mode that refuses nothing.
    pub(super) fn detached(&self, keys: impl Into<Keys>) -> Lease {
        Lease::detached(keys.into(), self.settings.table.clone())
    }

    /// The scope that the handler runs in.
    pub(super) fn scope(&self, lease: Result<Lease, Unlocked>) -> Scope {
        Scope::enter(self.name.clone(), lease, self.most_left())
    }

    /// Whether a layer around this one has taken this row for the same invocation.
    pub(super) fn is_held_around(&self, key: &LockKey) -> bool {
        Scope::holds(|lease| lease.is_on(&self.settings.table, key))
    }
}

/// Begins an invocation's session with this keeper.
pub(super) fn begin(keeper: &KeeperClient, context: &Context) -> Result<Arc<Hold>, Error> {
    let deadline_ms = match Deadline::from_epoch_ms(context.deadline) {
        Deadline::Known(deadline) => Some(deadline.as_millis()),
        Deadline::Unknown => None,
    };
    let session = keeper.begin(&context.request_id, deadline_ms)?;
    Ok(Arc::new(Hold::new(Arc::new(session))))
}

/// The clock that the settings ask for: the system's, but for a test double.
fn clock(settings: &Settings) -> Arc<dyn Clock> {
    #[cfg(feature = "testing")]
    if let Some(double) = &settings.double {
        return Arc::new(double.clock());
    }
    let _ = settings;
    Arc::new(SystemClock::new())
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
