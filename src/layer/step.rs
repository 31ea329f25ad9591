//! What comes after an event was read and the handler is ready: the lease first, the handler at once, or neither.

use std::sync::Arc;

use lambda_runtime::Context;

use super::acquisition::Acquisition;
use super::core::Core;
use super::watch::Watch;
use crate::error::{AlreadyHeld, Error, Unlocked};
use crate::key::LockKey;
use crate::lease::{Hold, Lease};
use crate::metrics::COUNTERS;
use crate::settings::{MissingPath, Mode};

/// An invocation's session, unless the layer is off, and its key.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) hold: Option<Result<Arc<Hold>, Error>>,
    pub(super) key: Result<LockKey, Error>,
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
    let Opened { hold, key } = opened;
    let Some(hold) = hold else { return Ok(off(core, key)) };
    if core.mode() == Mode::Enforce {
        enforce(core, hold?, key, context)
    } else {
        Ok(observe(core, hold, key, context))
    }
}

/// The handler runs unlocked within a session, so that its environment is held for it all the same.
pub(super) fn unlocked(hold: Arc<Hold>, why: Unlocked) -> Step {
    COUNTERS.unlocked.add_one();
    tracing::warn!(reason = %why, "the handler runs unlocked");
    Step::Run { watch: Watch::Session(hold), lease: Err(why) }
}

fn off(core: &Core, key: Result<LockKey, Error>) -> Step {
    Step::Run { watch: Watch::Nothing, lease: key.map(|key| core.detached(key)).map_err(|_| Unlocked::NoKey) }
}

fn enforce(core: &Core, hold: Arc<Hold>, key: Result<LockKey, Error>, context: &Context) -> Result<Step, Error> {
    let key = match key {
        Err(error) if may_lack_it(core, &error) => return Ok(unlocked(hold, Unlocked::MissingPath)),
        key => key?,
    };
    if core.is_held_around(&key) {
        return Err(AlreadyHeld { key }.into());
    }
    let planned = core.plan(context)?;
    let acquisition = Acquisition::new(core, hold.session().clone(), key, &planned, context);
    Ok(Step::Acquire { hold, acquisition, patience: Core::patience(&planned) })
}

fn observe(core: &Core, hold: Result<Arc<Hold>, Error>, key: Result<LockKey, Error>, context: &Context) -> Step {
    let key = match key {
        Ok(key) => key,
        Err(error) => {
            let lacks_it = may_lack_it(core, &error);
            let why = if lacks_it { Unlocked::MissingPath } else { Unlocked::NoKey };
            if !lacks_it {
                would_refuse(&error);
            }
            return Step::Run { watch: hold.map_or(Watch::Nothing, Watch::Session), lease: Err(why) };
        }
    };
    let hold = match hold {
        Ok(hold) => hold,
        Err(error) => {
            would_refuse(&error);
            return Step::Run { watch: Watch::Nothing, lease: Ok(core.detached(key)) };
        }
    };
    let planned = if core.is_held_around(&key) {
        Err(AlreadyHeld { key: key.clone() }.into())
    } else {
        core.plan(context).map_err(Error::from)
    };
    match planned {
        Ok(planned) => {
            let acquisition = Some(Acquisition::new(core, hold.session().clone(), key.clone(), &planned, context));
            let lease = core.lease(key, &hold);
            Step::Run {
                watch: Watch::Observed { hold, acquisition, lease: lease.clone(), is_lost: false },
                lease: Ok(lease),
            }
        }
        Err(error) => {
            would_refuse(&error);
            Step::Run { watch: Watch::Session(hold), lease: Ok(core.detached(key)) }
        }
    }
}

/// Whether the handler may run unlocked for want of a key.
pub(super) fn may_lack_it(core: &Core, error: &Error) -> bool {
    core.settings.missing_path == MissingPath::RunUnlocked
        && matches!(error, Error::KeyNotFound(_) | Error::RouteNotMatched(_))
}

fn would_refuse(error: &Error) {
    COUNTERS.would_have_refused.add_one();
    tracing::info!(%error, "observed: the invocation would have been refused");
}
