//! The requests of one lease that are not answered yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{self, JoinSet};

use super::flights::Flight;
use super::lease_counts::LeaseCounts;
use super::shared::{Shared, set};
use super::tally::Tally;
use crate::protocol::{Answer, Failure, FailureKind, Outcome, OwnerId, Request, RequestId, Version};
use crate::store::{Lock, StateAnswer, StateOutcome, StateRequest, StateWrite};

/// What a request was for, as far as the keeper cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Attempt(OwnerId),
    Renewal,
    Release,
    Look,
    Ticket,
}

impl Purpose {
    pub(super) const fn of(request: &Request) -> Self {
        match request {
            Request::Acquire { owner, .. } | Request::TakeOver { owner, .. } => Self::Attempt(*owner),
            Request::Renew { .. } => Self::Renewal,
            // Parking is a way back as well: a freeze waits for it, and so does whoever asked for it.
            Request::Release { .. } | Request::Park { .. } => Self::Release,
            Request::Read => Self::Look,
            Request::Ticket => Self::Ticket,
        }
    }

    /// As it stands in the log.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Attempt(_) => "attempt",
            Self::Renewal => "renew",
            Self::Release => "release",
            Self::Look => "look",
            Self::Ticket => "ticket",
        }
    }
}

/// An answer, with what it answers.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) id: RequestId,
    pub(super) purpose: Purpose,
    pub(super) answer: Answer,
    /// What came of a release that was sent together with a state: it stands for the answer's outcome.
    pub(super) left: Option<StateOutcome>,
    /// A write's flight, which ends when this is dropped.
    pub(super) flight: Option<Flight>,
}

/// Requests, each in a task of its own so that several can be under way; dropping this ends them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    tasks: JoinSet<(Answer, Option<StateOutcome>, Option<Flight>)>,
    sent: Vec<(task::Id, RequestId, Purpose)>,
    /// Set when nobody wants the row any more.
    unwanted: watch::Sender<bool>,
    tally: Arc<Tally>,
    counts: Arc<LeaseCounts>,
}

impl Requests {
    /// Those of a lease whose requests are counted here.
    pub(super) fn new(tally: Arc<Tally>, counts: Arc<LeaseCounts>) -> Self {
        Self { tally, counts, ..Self::default() }
    }

    /// Sends a request; a write is in flight when this returns, by the flight it is given or one of its own.
    pub(super) fn send(
        &mut self,
        shared: &Arc<Shared>,
        lock: &Arc<Lock>,
        id: RequestId,
        request: Request,
        limit: Duration,
        flight: Option<Flight>,
    ) {
        let purpose = Purpose::of(&request);
        let mut flight = flight.or_else(|| (purpose != Purpose::Look).then(|| shared.wire.owe()));
        let (shared, lock) = (shared.clone(), lock.clone());
        let (tally, counts) = (self.tally.clone(), self.counts.clone());
        let mut unwanted = self.unwanted.subscribe();
        let withdrawn = async move {
            match purpose {
                Purpose::Attempt(_) | Purpose::Look | Purpose::Ticket => set(&mut unwanted).await,
                Purpose::Renewal | Purpose::Release => std::future::pending().await,
            }
        };
        let handle = self.tasks.spawn(async move {
            let counts = Some((&*tally, &*counts));
            let answer = shared.wire.send(&lock, request, limit, flight.as_mut(), counts, withdrawn).await;
            (answer, None, flight)
        });
        self.sent.push((handle.id(), id, purpose));
    }

    /// Sends a release together with a state; it is in flight when this returns.
    pub(super) fn send_leaving(
        &mut self,
        shared: &Arc<Shared>,
        lock: &Arc<Lock>,
        id: RequestId,
        write: StateWrite,
        limit: Duration,
        flight: Option<Flight>,
    ) {
        let mut flight = flight.unwrap_or_else(|| shared.wire.owe());
        let (shared, lock) = (shared.clone(), lock.clone());
        let (tally, counts) = (self.tally.clone(), self.counts.clone());
        let handle = self.tasks.spawn(async move {
            let (write, counts) = (StateRequest::Write(write), (&*tally, &*counts));
            let sent = shared.wire.send_state(&lock, write, limit, Some(&mut flight), counts);
            let StateAnswer { outcome, date, .. } = sent.await;
            let answer = Answer::new(Outcome::written(Version::Counter(0)), date);
            (answer, Some(outcome), Some(flight))
        });
        self.sent.push((handle.id(), id, Purpose::Release));
    }

    /// Nobody wants the row any more: attempts, tickets and looks that still wait for their turn are answered as not sent.
    pub(super) fn withdraw(&self) {
        self.unwanted.send_replace(true);
    }

    /// The next answer; `None` when nothing is under way.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Option<Arrived> {
        loop {
            let (task, answer, left, flight) = match self.tasks.join_next_with_id().await? {
                Ok((task, (answer, left, flight))) => (task, answer, left, flight),
                // A store that panics has not answered; the write may have been applied.
                Err(error) => {
                    let failure = Failure::new(FailureKind::Connection, format!("the store failed: {error}"));
                    (error.id(), Answer::new(Outcome::Failed(failure), None), None, None)
                }
            };
            if let Some(at) = self.sent.iter().position(|(sent, ..)| *sent == task) {
                let (_, id, purpose) = self.sent.swap_remove(at);
                return Some(Arrived { id, purpose, answer, left, flight });
            }
        }
    }

    /// Whether one of this purpose is not answered.
    pub(super) fn under_way(&self, purpose: Purpose) -> bool {
        self.sent.iter().any(|(.., sent)| *sent == purpose)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}
