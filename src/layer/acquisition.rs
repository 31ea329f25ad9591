//! From a session just begun to the answer about the lease.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::core::{Core, Planned};
use crate::clock::{Clock, Mono};
use crate::error::{Error, GrantTooLate, KeeperGone, LeaseBusy, VersionMismatch, refused};
use crate::keeper::client::{Answer, Broken, Grant, Session};
use crate::key::LockKey;
use crate::session::Acquire;

/// One acquisition under way.
#[derive(Debug)]
pub(super) struct Acquisition {
    session: Arc<Session>,
    key: LockKey,
    /// Sent once the keeper has begun: before that it is not known which version it speaks.
    unsent: Option<Box<Acquire>>,
    latest: Option<Mono>,
    clock: Arc<dyn Clock>,
}

impl Acquisition {
    pub(super) fn new(
        core: &Core,
        session: Arc<Session>,
        key: LockKey,
        planned: &Planned,
        context: &lambda_runtime::Context,
    ) -> Self {
        let unsent = Some(core.acquire(&key, planned, context));
        Self { session, key, unsent, latest: planned.budget.latest, clock: core.clock.clone() }
    }

    pub(super) const fn key(&self) -> &LockKey {
        &self.key
    }

    /// Waits for the lease, or for why there is none.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Grant, Error>> {
        let session = &self.session;
        if self.unsent.is_some() {
            if let Err(broken) = ready!(session.poll_began(cx)) {
                return Poll::Ready(Err(gone(broken)));
            }
            if let Some(acquire) = self.unsent.take() {
                session.acquire(acquire);
            }
        }
        Poll::Ready(match ready!(session.poll_answer(cx)) {
            Err(broken) => Err(gone(broken)),
            Ok(Answer::Granted(grant)) => self.in_time(grant),
            Ok(Answer::Busy { holder, waited, attempts, retry_after }) => {
                Err(LeaseBusy { key: self.key.clone(), holder, waited, attempts, retry_after }.into())
            }
            Ok(Answer::Failed { kind, message }) => Err(refused(self.key.clone(), kind, message)),
        })
    }

    /// No answer came in time; unless it is there and nobody has read it yet, as after a freeze.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_>) -> Result<Grant, Error> {
        self.session.look();
        match self.poll(cx) {
            Poll::Ready(answer) => answer,
            Poll::Pending => Err(KeeperGone { reason: "it did not answer in time".to_owned() }.into()),
        }
    }

    /// The keeper drops late grants by itself; but it does not know for how long its line lay unread.
    fn in_time(&self, grant: Grant) -> Result<Grant, Error> {
        match self.latest {
            Some(latest) if self.clock.now().mono >= latest => {
                let reason = "it was read only after that".to_owned();
                Err(GrantTooLate { key: self.key.clone(), reason }.into())
            }
            _ => Ok(grant),
        }
    }
}

pub(super) fn gone(broken: Broken) -> Error {
    match broken {
        Broken::Version(reason) => VersionMismatch { reason }.into(),
        Broken::Gone(reason) => KeeperGone { reason }.into(),
        Broken::Closed => KeeperGone { reason: "the session was closed".to_owned() }.into(),
    }
}
