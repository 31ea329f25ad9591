//! Watching a session while the handler runs: for the loss of its lease, or, in mode `observe`, for everything.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::acquisition::Acquisition;
use super::step::would_run_unlocked;
use crate::error::Error;
use crate::keeper::client::{Grant, Loss};
use crate::lease::{Hold, Lease};
use crate::metrics::COUNTERS;
use crate::settings::{OnLoss, OnUnavailable};

/// What runs beside a handler. Dropped with the handler's future, after it, it gives back what is held.
#[derive(Debug, Default)]
pub(super) enum Watch {
    /// Nothing: the layer is off, or there is no keeper in mode `observe`.
    #[default]
    Nothing,
    /// A session without a lease: the extension holds the environment for it.
    Session(Arc<Hold>),
    /// A lease that the handler depends on.
    Lease { hold: Arc<Hold>, lease: Lease, on_loss: OnLoss, is_lost: bool },
    /// A lease that the handler does not depend on, or will not: taken in the background.
    Observed {
        hold: Arc<Hold>,
        acquisition: Option<Acquisition>,
        lease: Lease,
        on_unavailable: OnUnavailable,
        is_lost: bool,
    },
}

impl Watch {
    /// Waits for a loss that is to cancel the handler.
    pub(super) fn poll_cancelled(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        match self {
            Self::Lease { hold, lease, on_loss, is_lost: is_lost @ false } => {
                let Poll::Ready(loss) = hold.session().poll_lost(cx) else { return Poll::Pending };
                *is_lost = true;
                let error = note_loss(lease, loss);
                if *on_loss == OnLoss::Cancel { Poll::Ready(error) } else { Poll::Pending }
            }
            Self::Observed { hold, acquisition, lease, on_unavailable, is_lost } => {
                if let Some(under_way) = acquisition {
                    let Poll::Ready(answer) = under_way.poll(cx) else { return Poll::Pending };
                    observe(under_way, &answer, *on_unavailable);
                    if answer.is_err() {
                        // Of two keys the first may be held.
                        hold.give_up();
                    }
                    *acquisition = None;
                }
                if !*is_lost && let Poll::Ready(loss) = hold.session().poll_lost(cx) {
                    *is_lost = true;
                    COUNTERS.would_have_lost.add_one();
                    let error = lease.error(loss);
                    tracing::warn!(key = %lease.key(), %error, "observed: the lease was lost");
                }
                Poll::Pending
            }
            Self::Nothing | Self::Session(_) | Self::Lease { .. } => Poll::Pending,
        }
    }

    /// A loss that is there to be seen in the moment in which the handler came to its end.
    pub(super) fn loss_at_the_end(&mut self) -> Option<Error> {
        let Self::Lease { hold, lease, is_lost, .. } = self else { return None };
        hold.session().look();
        let loss = hold.session().loss()?;
        if std::mem::replace(is_lost, true) { Some(lease.error(loss)) } else { Some(note_loss(lease, loss)) }
    }

    /// The handler came to its end, well or not; what it held is to be given back.
    pub(super) fn finish(self, succeeded: bool) -> Option<Arc<Hold>> {
        if let (true, Self::Session(hold) | Self::Lease { hold, .. } | Self::Observed { hold, .. }) = (succeeded, &self)
        {
            hold.succeed();
        }
        match self {
            Self::Nothing => None,
            Self::Session(hold) | Self::Lease { hold, .. } => {
                hold.finish();
                Some(hold)
            }
            Self::Observed { hold, acquisition, .. } => {
                if let Some(under_way) = acquisition {
                    COUNTERS.would_have_waited.add_one();
                    tracing::info!(key = %under_way.key(), "observed: the invocation would still have waited");
                }
                hold.finish();
                // It is not waited for. Where guards have a share, the last of them gives it back.
                Arc::into_inner(hold).inspect(|hold| hold.let_go(hold.reason_at_the_end()));
                None
            }
        }
    }

    /// The handler was ended; what it held is to be given back as after a crash.
    pub(super) fn abandon(self) -> Option<Arc<Hold>> {
        match self {
            Self::Session(hold) | Self::Lease { hold, .. } => Some(hold),
            observed => observed.finish(false),
        }
    }
}

fn note_loss(lease: &Lease, loss: Loss) -> Error {
    COUNTERS.losses.add_one();
    let error = lease.error(loss);
    tracing::error!(key = %lease.key(), %error, "the lease was lost while the handler ran");
    error
}

/// Counts and logs what an acquisition in the background would have meant.
fn observe(acquisition: &Acquisition, answer: &Result<Grant, Error>, on_unavailable: OnUnavailable) {
    let key = acquisition.key();
    match answer {
        // The first write took it, and nobody was ahead of it.
        Ok(grant) if grant.attempts <= 1 && grant.queued.is_zero() => {}
        Ok(grant) => {
            COUNTERS.would_have_waited.add_one();
            tracing::info!(%key, waited = ?grant.waited, "observed: the invocation would have waited for the lease");
        }
        Err(error) if error.is_unavailable() && on_unavailable == OnUnavailable::RunUnlocked => {
            would_run_unlocked(error);
        }
        Err(error) => {
            COUNTERS.would_have_refused.add_one();
            tracing::info!(%key, error_type = error.error_type(), %error, "observed: the invocation would have been refused");
        }
    }
}
