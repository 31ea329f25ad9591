//! The moves of one invocation: what happened in a stage, and what follows from it.

use std::sync::Arc;
use std::time::Duration;

use lambda_runtime::LambdaEvent;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tower::Service;

use super::acquisition::Acquisition;
use super::core::{Core, TimeLimit};
use super::ending::CONFIRM_WITHIN;
use super::key_source::{KeySource, by_template};
use super::step::{Opened, Step, decide, unlocked};
use super::watch::Watch;
use super::{Plan, payload};
use crate::error::{Error, InvocationError, OutOfTime, Unlocked};
use crate::keeper::client::Grant;
use crate::lease::{Hold, Lease};
use crate::metrics::COUNTERS;
use crate::protocol::FencingToken;
use crate::session::ReleaseReason;
use crate::settings::{Mode, OnUnavailable};

/// A keeper on the same machine confirms in well under a millisecond.
const SHORTEST_CONFIRMATION: Duration = Duration::from_millis(50);

/// What a handler under a layer answers with.
pub(super) type Answer<S, T> =
    Result<<S as Service<LambdaEvent<T>>>::Response, InvocationError<<S as Service<LambdaEvent<T>>>::Error>>;

/// A handler and what it is to be called with.
#[derive(Debug)]
pub(super) struct Call<S, T> {
    pub(super) service: S,
    pub(super) event: LambdaEvent<T>,
}

/// What follows.
pub(super) enum Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    /// Wait until the handler is ready.
    GetReady(Call<S, T>, Opened),
    /// Ask for the lease.
    Acquire { call: Call<S, T>, acquisition: Acquisition, hold: Arc<Hold>, patience: Duration },
    /// Run the handler.
    Run { call: Call<S, T>, watch: Watch, lease: Result<Lease, Unlocked> },
    /// Drop what is left of the handler, give back what is held, wait so long for the keeper to confirm, then answer.
    End { hold: Option<Arc<Hold>>, reason: ReleaseReason, confirm_within: Duration, answer: Answer<S, T> },
    /// Answer.
    Answer(Answer<S, T>),
}

/// The first poll: the session begins before anything else, lock or not.
pub(super) fn begin<S, T, K, B>(plan: &Plan<K, B>, service: S, event: LambdaEvent<Box<RawValue>>) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
    T: DeserializeOwned,
    K: KeySource<T>,
{
    let core = &plan.core;
    let hold = (core.mode() != Mode::Off).then(|| core.begin(&event.context));
    match payload::deserialize::<T>(event, core.hides_values()) {
        Ok((raw, event)) => {
            let namespace = core.settings.namespace.as_ref();
            let key = plan.keys.key(raw.get(), &event, namespace);
            let also = core.settings.also.as_ref();
            let also = also.map(|template| by_template(template, raw.get(), &event.context, namespace));
            Move::GetReady(Call { service, event }, Opened { hold, key, also })
        }
        Err(error) => refuse(error.into()),
    }
}

/// The handler is ready, or never will be.
pub(super) fn readied<S, T, K, B>(
    plan: &Plan<K, B>,
    is_ready: Result<(), S::Error>,
    call: Call<S, T>,
    opened: Opened,
) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    if let Err(error) = is_ready {
        return Move::Answer(Err(InvocationError::Handler(error)));
    }
    match decide(&plan.core, opened, &call.event.context) {
        Ok(step) => follow(step, call),
        Err(error) => refuse(error),
    }
}

/// The lease is there, or there will be none.
pub(super) fn answered<S, T, K, B>(
    plan: &Plan<K, B>,
    answer: Result<Grant, Error>,
    acquisition: &Acquisition,
    call: Call<S, T>,
    hold: Arc<Hold>,
) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    match granted(&plan.core, answer, acquisition, hold) {
        Ok(step) => follow(step, call),
        Err(error) => Move::Answer(Err(error.into())),
    }
}

/// What an answer means, whatever the handler: compiled once and not for each.
fn granted(
    core: &Core,
    answer: Result<Grant, Error>,
    acquisition: &Acquisition,
    hold: Arc<Hold>,
) -> Result<Step, Error> {
    let error = match answer {
        Ok(grant) => {
            let lease = core.lease(acquisition.keys().clone(), &hold);
            // Read together with the grant: the handler must not even begin.
            if let Some(loss) = hold.session().loss() {
                COUNTERS.refused.add_one();
                return Err(lease.error(loss));
            }
            COUNTERS.granted.add_one();
            let token = grant.token.map(FencingToken::get);
            tracing::debug!(key = %lease.key(), token, waited = ?grant.waited, "the lease is held");
            let on_loss = core.settings.on_loss;
            let watch = Watch::Lease { hold, lease: lease.clone(), on_loss, is_lost: false };
            return Ok(Step::Run { watch, lease: Ok(lease) });
        }
        Err(error) if error.is_unavailable() && core.settings.on_unavailable == OnUnavailable::RunUnlocked => {
            tracing::warn!(%error, "no lease could be had");
            // Of two keys the first may be held.
            hold.give_up();
            return Ok(unlocked(hold, Unlocked::Unavailable));
        }
        Err(error) => error,
    };
    // A keeper that did not answer, or too late, may not confirm either: it is told, not waited for.
    Arc::into_inner(hold).inspect(|hold| hold.let_go(ReleaseReason::Cancelled));
    if matches!(error, Error::LeaseBusy(_)) {
        COUNTERS.busy.add_one();
        tracing::info!(%error, "the key is busy");
    } else {
        COUNTERS.refused.add_one();
    }
    Err(error)
}

/// The handler has answered.
pub(super) fn finished<S, T, K, B>(
    plan: &Plan<K, B>,
    answer: Result<S::Response, S::Error>,
    mut watch: Watch,
) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    let answer = match (answer, watch.loss_at_the_end()) {
        (Ok(_), Some(loss)) if plan.core.takes_back_answers() => Err(loss.into()),
        (Ok(response), loss) => {
            if loss.is_some() {
                COUNTERS.responses_kept_after_loss.add_one();
            }
            Ok(response)
        }
        // The handler's own error says at least as much, and may come of the loss.
        (Err(error), _) => Err(InvocationError::Handler(error)),
    };
    // A run that failed may be tried again at once.
    let hold = watch.finish(answer.is_ok());
    let reason = hold.as_ref().map_or(ReleaseReason::Finished, |hold| hold.reason_at_the_end());
    Move::End { hold, reason, confirm_within: CONFIRM_WITHIN, answer }
}

/// The lease is lost: the handler is ended before it has answered.
pub(super) fn lost<S, T>(error: Error, watch: Watch) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    cancel(error, watch, CONFIRM_WITHIN)
}

/// The handler's time is over before it has answered.
pub(super) fn out_of_time<S, T>(limit: Option<TimeLimit>, watch: Watch) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    COUNTERS.out_of_time.add_one();
    let margin = limit.map_or(Duration::ZERO, |limit| limit.margin);
    // The answer has to come before the deadline as well.
    cancel(OutOfTime { margin }.into(), watch, (margin / 2).clamp(SHORTEST_CONFIRMATION, CONFIRM_WITHIN))
}

fn cancel<S, T>(error: Error, watch: Watch, confirm_within: Duration) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    Move::End { hold: watch.abandon(), reason: ReleaseReason::Dropped, confirm_within, answer: Err(error.into()) }
}

fn refuse<S, T>(error: Error) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    COUNTERS.refused.add_one();
    Move::Answer(Err(error.into()))
}

fn follow<S, T>(step: Step, call: Call<S, T>) -> Move<S, T>
where
    S: Service<LambdaEvent<T>>,
{
    match step {
        Step::Acquire { hold, acquisition, patience } => Move::Acquire { call, acquisition, hold, patience },
        Step::Run { watch, lease } => Move::Run { call, watch, lease },
    }
}
