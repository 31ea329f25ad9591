//! From a session just begun to the answer about the lease.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::core::{Core, Planned, millis};
use super::wait_span::WaitSpan;
use crate::budget::Budget;
use crate::clock::Clock;
use crate::error::{Error, GrantTooLate, KeeperGone, LeaseBusy, LeaseLost, VersionMismatch, refused};
use crate::keeper::client::{Answer, Broken, Grant, Loss, Session, Which};
use crate::key::LockKey;
use crate::lease::Keys;
use crate::session::Acquire;

/// One acquisition under way: of one key, or of two, one after the other.
#[derive(Debug)]
pub(super) struct Acquisition {
    session: Arc<Session>,
    keys: Keys,
    /// What is still to be asked for, the next one last. The first is sent once it is known which version is spoken.
    unsent: Vec<(Which, Box<Acquire>)>,
    /// What was asked for and not answered yet.
    asked: Option<Which>,
    /// What was waited, and with how many writes, for the keys that are held already.
    waited: Duration,
    attempts: u32,
    queued: Duration,
    budget: Budget,
    clock: Arc<dyn Clock>,
    span: WaitSpan,
}

impl Acquisition {
    pub(super) fn new(
        core: &Core,
        session: Arc<Session>,
        keys: impl Into<Keys>,
        planned: &Planned,
        context: &lambda_runtime::Context,
    ) -> Self {
        let keys = keys.into();
        let unsent = keys.in_order().rev().map(|(which, key)| (which, core.acquire(key, planned, context))).collect();
        let (waited, attempts, queued) = (Duration::ZERO, 0, Duration::ZERO);
        let (budget, clock, span) = (planned.budget, core.clock.clone(), WaitSpan::begin(core, context));
        Self { session, unsent, asked: None, waited, attempts, queued, budget, clock, span, keys }
    }

    pub(super) const fn key(&self) -> &LockKey {
        self.keys.main()
    }

    pub(super) const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Waits for the lease, or for why there is none.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Grant, Error>> {
        let span = self.span.clone();
        let answer = ready!(span.within(|| self.poll_answer(cx)));
        drop(span);
        self.span.end(&answer);
        Poll::Ready(answer)
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Grant, Error>> {
        loop {
            let which = match self.asked {
                Some(which) => which,
                None => match ready!(self.poll_sent(cx)) {
                    Ok(which) => which,
                    Err(broken) => return Poll::Ready(Err(gone(broken))),
                },
            };
            let Poll::Ready(answer) = self.session.poll_answer(cx) else {
                // What is held already may be lost while the other one is waited for.
                return self.session.loss().map_or(Poll::Pending, |loss| Poll::Ready(Err(self.lost(loss))));
            };
            let key = || self.keys.get(which).clone();
            let grant = match answer {
                Err(broken) => return Poll::Ready(Err(gone(broken))),
                Ok(Answer::Granted(grant)) => grant,
                Ok(Answer::Busy { holder, waited, attempts, retry_after }) => {
                    let (waited, attempts) = (self.waited + waited, self.attempts.saturating_add(attempts));
                    return Poll::Ready(Err(LeaseBusy { key: key(), holder, waited, attempts, retry_after }.into()));
                }
                Ok(Answer::Failed { kind, message }) => return Poll::Ready(Err(refused(key(), kind, message))),
            };
            if let Err(late) = self.in_time(which) {
                return Poll::Ready(Err(late.into()));
            }
            self.asked = None;
            self.waited += grant.waited;
            self.queued += grant.queued;
            // Of two first writes that both took their row, neither had to wait.
            self.attempts += if self.attempts == 0 { grant.attempts } else { grant.attempts.saturating_sub(1) };
            if self.unsent.is_empty() {
                let main = self.session.grant(Which::Main).unwrap_or(grant);
                return Poll::Ready(Ok(Grant {
                    waited: self.waited,
                    attempts: self.attempts,
                    queued: self.queued,
                    ..main
                }));
            }
        }
    }

    /// Asks for the next key, with what is left of the time for all of them.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<Which, Broken>> {
        if let Err(broken) = ready!(self.session.poll_version(cx)) {
            return Poll::Ready(Err(broken));
        }
        let Some((which, mut acquire)) = self.unsent.pop() else { return Poll::Pending };
        if self.attempts > 0 {
            let now = self.clock.now();
            acquire.wait_ms = millis(self.budget.wait(now));
            acquire.answer_within_ms = self.budget.answer_within(now).map(millis);
        }
        self.session.acquire(which, acquire);
        self.asked = Some(which);
        Poll::Ready(Ok(which))
    }

    /// No answer came in time; unless it is there and nobody has read it yet, as after a freeze.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_>) -> Result<Grant, Error> {
        self.session.look();
        match self.poll(cx) {
            Poll::Ready(answer) => answer,
            Poll::Pending => {
                let answer = Err(KeeperGone { reason: "it did not answer in time".to_owned() }.into());
                self.span.end(&answer);
                answer
            }
        }
    }

    /// The keeper drops late grants by itself; but it does not know for how long its line lay unread.
    fn in_time(&self, which: Which) -> Result<(), GrantTooLate> {
        match self.budget.latest {
            Some(latest) if self.clock.now().mono >= latest => {
                let reason = "it was read only after that".to_owned();
                Err(GrantTooLate { key: self.keys.get(which).clone(), reason })
            }
            _ => Ok(()),
        }
    }

    fn lost(&self, loss: Loss) -> Error {
        match loss {
            Loss::Told(which, reason) => LeaseLost { key: self.keys.get(which).clone(), reason }.into(),
            Loss::KeeperGone(reason) => KeeperGone { reason }.into(),
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
