//! The contender: one acquisition of one key, from the first attempt to a row taken or a verdict told.
//!
//! Call order: [`Contender::new`], [`start`](Contender::start), then for each event `handle_answer`, `handle_wakeup`
//! or `handle_cancel`, and after each of them `poll_action` until it is empty and `poll_wakeup` for the next moment to
//! come back. A needless or late wake-up does no harm. When [`is_finished`](Contender::is_finished) says so there is
//! nothing left to do; a verdict may be told before that, while cleanup goes on.

mod attempt;
mod ending;
mod queue;
mod reaction;
mod takeover;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::VecDeque;

use self::queue::Queue;
use super::{
    Action, Answer, Context, Epoch, Failure, HeldRow, Outcome, OwnerId, Polling, RequestId, Sample, Settings, Subject,
    Verdict,
};
use crate::clock::{Mono, Now, Wall};

/// How long an acquisition may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Nothing but the first attempt is sent after this.
    pub stop: Mono,
    /// No answer counts after this; `None` where the deadline is unknown.
    pub latest: Option<Mono>,
}

/// The state machine of one acquisition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    settings: Settings,
    subject: Subject,
    budget: Budget,
    epoch: Epoch,
    began: Now,
    /// Attempts that were sent and never answered: they may have landed, or still land.
    unknown: Vec<OwnerId>,
    in_flight: Option<InFlight>,
    /// When to act again, and what then.
    next: Option<(Mono, Next)>,
    /// What it knows of those who wait beside it, where it waits by tickets.
    queue: Option<Box<Queue>>,
    looks: u32,
    writes: u32,
    last_id: u32,
    /// The holder as last seen.
    held: Option<HeldRow>,
    /// Why the last request had no answer.
    last_failure: Option<Failure>,
    /// The verdict that waits for the cleanup's first answer.
    pending: Option<Verdict>,
    /// The attempts that the cleanup is to free.
    leftover: Vec<OwnerId>,
    /// How often the cleanup was sent.
    cleanups: u32,
    told: bool,
    cancelled: bool,
    finished: bool,
    /// What the mutant `OneOwnerForAllAttempts` keeps.
    #[cfg(feature = "simulation")]
    one_owner: Option<OwnerId>,
    actions: VecDeque<Action>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InFlight {
    id: RequestId,
    sent: Now,
    epoch: Epoch,
    /// It found a connection.
    warm: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Attempt(Attempt),
    Look,
    Ticket,
    Cleanup,
}

/// A write that would take the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    owner: OwnerId,
    expires_at: Option<Wall>,
    took_over: bool,
}

/// What the next wake-up is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
    /// A consistent read: the row was held when last seen.
    Look,
    /// An attempt: it may be free, or an attempt of mine may have landed.
    Attempt,
    /// The cleanup once more.
    Cleanup,
}

impl Contender {
    /// An acquisition of the lock `subject` for the session that began at `epoch`.
    #[must_use]
    pub fn new(settings: Settings, subject: Subject, budget: Budget, epoch: Epoch, now: Now) -> Self {
        let settings = settings.as_a_row_holds_them();
        Self {
            queue: (settings.polling == Polling::Tickets).then(|| Box::new(Queue::new(settings.rules))),
            settings,
            subject,
            budget,
            epoch,
            began: now,
            unknown: Vec::new(),
            in_flight: None,
            next: None,
            looks: 0,
            writes: 0,
            last_id: 0,
            held: None,
            last_failure: None,
            pending: None,
            leftover: Vec::new(),
            cleanups: 0,
            told: false,
            cancelled: false,
            finished: false,
            #[cfg(feature = "simulation")]
            one_owner: None,
            actions: VecDeque::new(),
        }
    }

    /// The same, where earlier attempts of this acquisition may have landed, or still land: the next one may replace them,
    /// and what is left of them is freed at the end.
    #[must_use]
    pub fn replacing(self, mut unknown: Vec<OwnerId>) -> Self {
        unknown.drain(..unknown.len().saturating_sub(reaction::MOST_UNKNOWN));
        Self { unknown, ..self }
    }

    /// The attempts that were sent and never answered.
    #[must_use]
    pub fn unknown(&self) -> &[OwnerId] {
        &self.unknown
    }

    /// Sends the first attempt, whatever the budget says about later ones.
    pub fn start(&mut self, cx: &mut Context<'_>) {
        cx.observations.pin(&self.subject);
        if self.is_past_latest(cx.now) {
            self.give_up(cx, Verdict::TooLate);
        } else {
            self.send_acquire(cx);
        }
    }

    /// What to do or tell next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_wakeup`](Self::handle_wakeup) at the latest.
    #[must_use]
    pub fn poll_wakeup(&self) -> Option<Mono> {
        if self.finished {
            return None;
        }
        match (&self.in_flight, self.next) {
            (Some(_), _) if !self.told => self.budget.latest,
            (None, Some((at, _))) => Some(at),
            _ => None,
        }
    }

    /// Whether nothing is left to do.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// The moment asked for has come.
    pub fn handle_wakeup(&mut self, cx: &mut Context<'_>) {
        if self.finished {
            return;
        }
        if self.in_flight.is_some() {
            // Whoever waits is told now; what is under way is awaited all the same, to be freed again.
            if self.is_past_latest(cx.now) {
                let verdict = self.pending.take().unwrap_or_else(|| self.verdict_at_end(cx));
                self.tell(verdict);
            }
            return;
        }
        if let Some((_, next)) = self.next.take_if(|(at, _)| cx.now.mono >= *at) {
            self.act(cx, next);
        }
    }

    /// Who asked for the lease no longer wants it.
    pub fn handle_cancel(&mut self, cx: &mut Context<'_>) {
        if self.finished || self.cancelled {
            return;
        }
        self.cancelled = true;
        self.tell(Verdict::Cancelled);
        // An attempt in flight is awaited first: a release that overtook it would free nothing. A cleanup goes on.
        if self.in_flight.is_none() && self.leftover.is_empty() {
            self.give_up(cx, Verdict::Cancelled);
        }
    }

    /// The store's answer to the request `id`, or its timeout.
    pub fn handle_answer(&mut self, cx: &mut Context<'_>, id: RequestId, answer: Answer) {
        let Some(in_flight) = self.in_flight.take_if(|in_flight| in_flight.id == id) else { return };
        let sample =
            answer.date.map(|date| Sample { date, sent: in_flight.sent, answered: cx.now, epoch: in_flight.epoch });
        let sample = sample.filter(|sample| cx.server_time.record(*sample));
        self.note_latency(&in_flight, cx.now, &answer.outcome);
        match in_flight.kind {
            Kind::Attempt(attempt) => self.handle_attempt(cx, in_flight.sent, attempt, sample, answer.outcome),
            Kind::Look => match answer.outcome {
                Outcome::Read { row } => self.handle_row(cx, in_flight.sent, row, true),
                Outcome::Failed(failure) => self.handle_failure(cx, failure, Next::Look),
                Outcome::Written { .. } | Outcome::Refused { .. } | Outcome::Numbered { .. } => {
                    self.schedule(cx, Next::Look);
                }
            },
            Kind::Ticket => self.handle_ticket(cx, in_flight.sent, answer.outcome),
            Kind::Cleanup => self.handle_cleanup(cx, &answer.outcome),
        }
    }
}
