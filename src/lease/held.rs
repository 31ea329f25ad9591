//! Whether a lease is held: asked for, waited for, or as far as the keeper has said.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Lease, Link, given_back};
use crate::error::{Error, KeeperGone, LeaseLost, Unconfirmed};
use crate::keeper::client::{Loss, Which};
use crate::metrics::COUNTERS;
use crate::session::CheckAnswer;

/// How long after a question without an answer the next one is asked.
const ASK_AGAIN: Duration = Duration::from_millis(50);

impl Lease {
    /// Makes sure that the lease is held at this moment, before a step that can't be taken back.
    ///
    /// It asks the keeper, a process or thread of its own, and blocks for that: some hundred microseconds, 50 ms at most.
    /// So it is right even in code that has not yielded since the grant. In the modes `observe` and `off` the answer is
    /// always yes, and what it would have been is counted.
    ///
    /// # Errors
    ///
    /// [`LeaseLost`] or [`KeeperGone`] when it is lost, for good; [`Unconfirmed`] when no answer came, and it may be held
    /// or not; [`NoLease`](crate::error::NoLease) when it was given back.
    pub fn ensure_held(&self) -> Result<(), Error> {
        self.valid_for().map(drop)
    }

    /// Like [`ensure_held`](Self::ensure_held), but where no answer comes it asks again, for so long: on a busy machine, or
    /// with a small share of a processor, one may take more than 50 ms. It yields between the questions. A loss is told at once.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn work(lease: leasehold::Lease) -> Result<(), leasehold::Error> {
    /// lease.ensure_held_within(Duration::from_secs(1)).await?; // before a step that can't be taken back
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ensure_held`](Self::ensure_held); [`Unconfirmed`] when the time is over.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: it only asks.
    pub async fn ensure_held_within(&self, limit: Duration) -> Result<(), Error> {
        let Some(link) = &self.0.link else { return Ok(()) };
        let began = Instant::now();
        loop {
            let asked = self.ask(link);
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() || !matches!(asked, Err(Error::Unconfirmed(_))) {
                return told(link, asked).map(drop);
            }
            sleep(ASK_AGAIN.min(left)).await;
        }
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
        told(link, self.ask(link))
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

    /// Waits until the lease is no longer held, and tells why: [`LeaseLost`], [`KeeperGone`], or
    /// [`NoLease`](crate::error::NoLease) once it was given back.
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

    /// How it was lost, as far as the keeper has said by now; never in a mode that refuses nothing.
    pub(crate) fn loss(&self) -> Option<Error> {
        let link = self.0.link.as_ref().filter(|link| link.enforced)?;
        link.session.look();
        link.session.loss().map(|loss| self.error(loss))
    }

    pub(crate) fn error(&self, loss: Loss) -> Error {
        match loss {
            Loss::Told(which, reason) => LeaseLost { key: self.0.keys.get(which).clone(), reason }.into(),
            Loss::KeeperGone(reason) => KeeperGone { reason }.into(),
        }
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

/// What a handler is told of an answer.
fn told(link: &Link, asked: Result<Duration, Error>) -> Result<Duration, Error> {
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
