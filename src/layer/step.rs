//! What comes after an event was read and the handler is ready: the lease first, the handler at once, or neither.

use std::sync::Arc;

use lambda_runtime::Context;

use super::acquisition::Acquisition;
use super::core::Core;
use super::held_by_hand::Held;
use super::watch::Watch;
use crate::error::{AlreadyHeld, Error, Unlocked};
use crate::key::LockKey;
use crate::lease::{Hold, Keys, Lease};
use crate::metrics::COUNTERS;
use crate::settings::{MissingPath, Mode};

/// An invocation's session, unless the layer is off, and its key.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) hold: Option<Result<Arc<Hold>, Error>>,
    pub(super) key: Result<LockKey, Error>,
    /// The key that is to be locked beside it, if there is to be one.
    pub(super) also: Option<Result<LockKey, Error>>,
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum Step {
    /// Ask for the lease, and give up on the keeper after this long.
    Acquire { hold: Arc<Hold>, acquisition: Acquisition, patience: std::time::Duration },
    /// Run the handler.
    Run { watch: Watch, lease: Result<Lease, Unlocked> },
}

/// Decides.
///
/// # Errors
///
/// When the mode is `enforce` and there is to be no lease.
pub(super) fn decide(core: &Core, opened: Opened, context: &Context) -> Result<Step, Error> {
    let Opened { hold, key, also } = opened;
    let keys = keys(core, key, also).map_err(|error| core.hide(error));
    let Some(hold) = hold else { return Ok(off(core, keys)) };
    if core.mode() == Mode::Enforce {
        enforce(core, hold?, keys, context)
    } else {
        Ok(observe(core, hold, keys, context))
    }
}

/// The keys as they stand on their rows. An event that makes no second key takes the first alone, where it may lack one.
fn keys(core: &Core, key: Result<LockKey, Error>, also: Option<Result<LockKey, Error>>) -> Result<Keys, Error> {
    let main = core.on_the_row(key?);
    let also = match also {
        Some(Err(error)) if may_lack_it(core, &error) => None,
        also => also.transpose()?.map(|also| core.on_the_row(also)),
    };
    Ok(Keys::new(main, also))
}

/// That none of the keys is held by a layer around this one, or by hand in a handler around it.
fn not_held_around(core: &Core, keys: &Keys, context: &Context) -> Result<(), AlreadyHeld> {
    let by_hand = |key| Held::is_held_around(core.keeper_name(), &context.request_id, &core.settings.table, key);
    match keys.in_order().find(|(_, key)| core.is_held_around(key) || by_hand(key)) {
        Some((_, key)) => Err(AlreadyHeld { key: key.clone() }),
        None => Ok(()),
    }
}

/// The handler runs unlocked within a session, so that its environment is held for it all the same.
pub(super) fn unlocked(hold: Arc<Hold>, why: Unlocked) -> Step {
    match why {
        Unlocked::Unavailable => COUNTERS.unlocked_unavailable.add_one(),
        _ => COUNTERS.unlocked_missing_path.add_one(),
    }
    tracing::warn!(reason = %why, "the handler runs unlocked");
    Step::Run { watch: Watch::Session(hold), lease: Err(why) }
}

fn off(core: &Core, keys: Result<Keys, Error>) -> Step {
    Step::Run { watch: Watch::Nothing, lease: keys.map(|keys| core.detached(keys)).map_err(|_| Unlocked::NoKey) }
}

fn enforce(core: &Core, hold: Arc<Hold>, keys: Result<Keys, Error>, context: &Context) -> Result<Step, Error> {
    let keys = match keys {
        Err(error) if may_lack_it(core, &error) => return Ok(unlocked(hold, Unlocked::MissingPath)),
        keys => keys?,
    };
    not_held_around(core, &keys, context)?;
    let planned = core.plan(context)?;
    let acquisition = Acquisition::new(core, hold.session().clone(), keys, &planned, context);
    Ok(Step::Acquire { hold, acquisition, patience: Core::patience(&planned) })
}

fn observe(core: &Core, hold: Result<Arc<Hold>, Error>, keys: Result<Keys, Error>, context: &Context) -> Step {
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => {
            let lacks_it = may_lack_it(core, &error);
            let why = if lacks_it { Unlocked::MissingPath } else { Unlocked::NoKey };
            if lacks_it {
                would_run_unlocked(&error);
            } else {
                would_refuse(&error);
            }
            return Step::Run { watch: hold.map_or(Watch::Nothing, Watch::Session), lease: Err(why) };
        }
    };
    let hold = match hold {
        Ok(hold) => hold,
        Err(error) => {
            would_refuse(&error);
            return Step::Run { watch: Watch::Nothing, lease: Ok(core.detached(keys)) };
        }
    };
    let planned = match not_held_around(core, &keys, context) {
        Ok(()) => core.plan(context).map_err(Error::from),
        Err(held) => Err(held.into()),
    };
    match planned {
        Ok(planned) => {
            let acquisition = Some(Acquisition::new(core, hold.session().clone(), keys.clone(), &planned, context));
            let lease = core.lease(keys, &hold);
            Step::Run {
                watch: Watch::Observed {
                    hold,
                    acquisition,
                    lease: lease.clone(),
                    on_unavailable: core.settings.on_unavailable,
                    is_lost: false,
                },
                lease: Ok(lease),
            }
        }
        Err(error) => {
            would_refuse(&error);
            Step::Run { watch: Watch::Session(hold), lease: Ok(core.detached(keys)) }
        }
    }
}

/// Whether the handler may run unlocked for want of a key.
pub(super) fn may_lack_it(core: &Core, error: &Error) -> bool {
    core.settings.missing_path == MissingPath::RunUnlocked
        && matches!(error, Error::KeyNotFound(_) | Error::RouteNotMatched(_))
}

/// In mode `observe`: the handler would have run without a lock.
pub(super) fn would_run_unlocked(error: &Error) {
    COUNTERS.would_have_run_unlocked.add_one();
    tracing::info!(%error, "observed: the invocation would have run unlocked");
}

fn would_refuse(error: &Error) {
    COUNTERS.would_have_refused.add_one();
    tracing::info!(error_type = error.error_type(), %error, "observed: the invocation would have been refused");
}
