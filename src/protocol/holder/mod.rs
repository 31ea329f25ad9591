//! The holder: one lease, from the row taken to the row freed or the lease lost.
//!
//! Call order: [`Holder::new`], [`start`](Holder::start), then `handle_answer`, `handle_wakeup`, `handle_release` and
//! `handle_park` as they come, and after each of them `poll_action` until it is empty and `poll_wakeup` for the next moment to come
//! back. Whatever comes after a gap, the first act is to look whether the lease is still valid. A needless or late
//! wake-up does no harm; [`validity`](Holder::validity) may be asked at any time, without one.

mod grant;
mod parking;
mod release;
mod renewal;
#[cfg(test)]
mod tests;
mod validity;

use std::collections::VecDeque;
use std::time::Duration;

use super::timing::{REQUEST_TIMEOUT, request_timeout, usual_timeout};
use super::{
    Acquired, Action, Answer, Context, Epoch, Failure, Hints, LossReason, Mutant, Outcome, OwnerId, Request, RequestId,
    Sample, Settings, Verdict, Version,
};
use crate::clock::{Mono, Now};

pub use validity::Validity;

/// When a holder renews no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Renewals {
    /// No renewal is sent after this moment.
    pub until: Mono,
    /// What the lease's end is put down to when it comes after that.
    pub then: LossReason,
    /// The moment at which the work is over for certain: there is no need for a renewal once validity covers it. `None`
    /// where no deadline is known.
    pub covered_by: Option<Mono>,
}

/// The state machine of one lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    settings: Settings,
    acquired: Acquired,
    renewals: Renewals,
    /// No grant counts after this. Where the deadline is unknown, what comes before the grant may take as long as one
    /// more request.
    latest: Option<Mono>,
    version: Version,
    validity: Validity,
    /// When the work under it may have begun.
    begun: Mono,
    /// What the release tells those who wait of how long a hold takes.
    tells: Option<Duration>,
    phase: Phase,
    in_flight: Option<InFlight>,
    /// When the next renewal, or release, is due.
    next: Mono,
    retries: u32,
    at_risk: bool,
    last_failure: Option<Failure>,
    last_id: u32,
    actions: VecDeque<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The row is taken, but a renewal must be answered before anybody may be told.
    Confirming,
    Held,
    /// No longer believed; the row may still be this owner's.
    Lost {
        row_may_be_mine: bool,
    },
    Releasing,
    /// No longer believed: the row is to stay held, for nobody, until the minimum is over.
    Parking {
        parked: OwnerId,
        minimum: Duration,
    },
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InFlight {
    id: RequestId,
    sent: Now,
    epoch: Epoch,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Renewal { new_version: Version },
    Release,
    Parking,
}

impl Holder {
    /// The lease on a row that a contender took. `settings.lease` must be the lease that was written.
    #[must_use]
    pub fn new(settings: Settings, acquired: Acquired, renewals: Renewals, latest: Option<Mono>) -> Self {
        let settings = settings.as_a_row_holds_them();
        Self {
            settings,
            renewals,
            latest,
            version: acquired.version,
            validity: Validity::first(&settings, &acquired),
            begun: acquired.sent.mono,
            tells: None,
            phase: Phase::Confirming,
            in_flight: None,
            next: acquired.sent.mono,
            retries: 0,
            at_risk: false,
            last_failure: None,
            last_id: 0,
            actions: VecDeque::new(),
            acquired,
        }
    }

    /// Moves the end of renewals, in either direction: one that was passed already lets them go on, for as long as the
    /// lease is valid.
    pub const fn limit_renewals(&mut self, renewals: Renewals) {
        self.renewals = renewals;
    }

    /// Grants the lease, or sends the renewal that has to be answered first; with `unwanted`, frees it.
    pub fn start(&mut self, cx: &mut Context<'_>, unwanted: bool) {
        (self.next, self.begun) = (cx.now.mono, cx.now.mono);
        self.latest = self.latest.or_else(|| Some(cx.now.mono + REQUEST_TIMEOUT));
        if unwanted {
            self.free(cx);
        } else if self.needs_confirmation(cx) {
            self.renew(cx);
        } else {
            self.grant(cx);
        }
    }

    /// What to do or tell next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_wakeup`](Self::handle_wakeup) at the latest.
    #[must_use]
    pub fn poll_wakeup(&self, now: Now) -> Option<Mono> {
        let request = self.in_flight.is_none().then_some(self.next);
        match self.phase {
            Phase::Confirming => [request, self.latest].into_iter().flatten().min(),
            Phase::Held => {
                let end = now.mono + self.validity.left(now).max(Duration::from_millis(1));
                let risk = (!self.at_risk).then(|| self.risk_at(now));
                let renewal = request.filter(|at| *at > now.mono || self.renewal_wanted(now));
                // Validity shrinks when the wall clock jumps, so it is looked at again now and then.
                let again = now.mono + self.settings.lease / 3;
                [Some(end), Some(again), risk, renewal].into_iter().flatten().min()
            }
            Phase::Releasing | Phase::Parking { .. } => request,
            Phase::Lost { .. } | Phase::Ended => None,
        }
    }

    /// How long the lease may be believed; `None` before the grant and after a release, a parking or a loss.
    #[must_use]
    pub fn validity(&self) -> Option<Validity> {
        let still =
            matches!(self.phase, Phase::Parking { .. }) && self.settings.rules.broken(Mutant::BelievedWhileParking);
        (self.phase == Phase::Held || still).then_some(self.validity)
    }

    /// Whose lease it is.
    #[must_use]
    pub const fn owner(&self) -> OwnerId {
        self.acquired.owner
    }

    /// Whether nothing is left to do.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The moment asked for has come.
    pub fn handle_wakeup(&mut self, cx: &mut Context<'_>) {
        self.check(cx.now);
        let due = self.in_flight.is_none() && cx.now.mono >= self.next;
        match self.phase {
            Phase::Confirming if self.is_past_latest(cx.now) => self.fail_grant(cx),
            Phase::Confirming if due => self.renew(cx),
            Phase::Held => {
                self.tell_risk(cx.now);
                if due && self.renewal_wanted(cx.now) {
                    self.renew(cx);
                }
            }
            Phase::Releasing if due => self.send_release(cx),
            Phase::Parking { parked, minimum } if due => self.park(cx, parked, minimum),
            Phase::Confirming | Phase::Releasing | Phase::Parking { .. } | Phase::Lost { .. } | Phase::Ended => {}
        }
    }

    /// The work is done: the row is freed, and says how long such work takes. No renewal is sent from here on. Before the
    /// grant this cancels the acquisition.
    pub fn handle_release(&mut self, cx: &mut Context<'_>) {
        let held = self.phase == Phase::Held && !self.validity.left(cx.now).is_zero();
        if held && self.settings.format.abilities().hints {
            let hold = cx.now.mono.since(self.begun);
            self.tells = Some(Hints::after_a_hold(self.acquired.usual_hold, hold));
        }
        self.handle_unwanted(cx);
    }

    /// The lease is no longer wanted, whatever became of the work: the row is freed. What such an end took tells nobody
    /// anything. Before the grant this cancels the acquisition.
    pub fn handle_unwanted(&mut self, cx: &mut Context<'_>) {
        match self.phase {
            Phase::Confirming => {
                self.actions.push_back(Action::Verdict(Verdict::Cancelled));
                self.free(cx);
            }
            Phase::Held | Phase::Lost { row_may_be_mine: true } => self.free(cx),
            Phase::Lost { row_may_be_mine: false } => self.end(Ok(())),
            Phase::Releasing | Phase::Parking { .. } | Phase::Ended => {}
        }
    }

    /// The work is done, and the key is to stay held until `minimum` after it was acquired: the row is parked, or freed
    /// where that much time has passed. From here on the lease is believed no longer. What is not held, or lost, is
    /// released.
    pub fn handle_park(&mut self, cx: &mut Context<'_>, minimum: Duration) {
        self.check(cx.now);
        if self.phase == Phase::Held {
            self.begin_parking(cx, minimum);
        } else {
            self.handle_unwanted(cx);
        }
    }

    /// Lets go of the lease without freeing the row, and without a word: it ends by itself.
    pub fn handle_abandon(&mut self) {
        self.phase = Phase::Ended;
        self.in_flight = None;
    }

    /// The store's answer to the request `id`, or its timeout.
    pub fn handle_answer(&mut self, cx: &mut Context<'_>, id: RequestId, answer: Answer) {
        // After a gap the first act is this check: what an answer says about a lease that is over no longer counts,
        // but for the time it tells.
        if let Some(in_flight) = self.in_flight.as_ref().filter(|in_flight| in_flight.id == id)
            && let Some(date) = answer.date
        {
            cx.server_time.record(Sample { date, sent: in_flight.sent, answered: cx.now, epoch: in_flight.epoch });
        }
        self.check(cx.now);
        let Some(in_flight) = self.in_flight.take_if(|in_flight| in_flight.id == id) else { return };
        match (self.phase, in_flight.kind) {
            (Phase::Confirming | Phase::Held, Kind::Renewal { new_version }) => {
                self.handle_renewal(cx, in_flight.sent, new_version, answer.outcome);
            }
            (Phase::Lost { .. }, Kind::Renewal { new_version })
                if self.may_revive() && matches!(answer.outcome, Outcome::Written { .. }) =>
            {
                self.phase = Phase::Held;
                self.extend(in_flight.sent, new_version);
            }
            (Phase::Releasing, Kind::Release) => self.handle_released(cx, answer.outcome),
            (Phase::Parking { parked, minimum }, Kind::Parking) => {
                self.handle_parked(cx, parked, minimum, answer.outcome);
            }
            _ => {}
        }
        if self.phase == Phase::Held {
            self.tell_risk(cx.now);
        }
    }

    fn send(&mut self, cx: &mut Context<'_>, kind: Kind, request: Request) {
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let left = match (kind, self.phase) {
            (Kind::Renewal { .. }, Phase::Confirming) => {
                self.latest.map_or(Duration::MAX, |latest| latest.since(cx.now.mono))
            }
            (Kind::Renewal { .. }, _) => self.validity.left(cx.now),
            (Kind::Release | Kind::Parking, _) => Duration::MAX,
        };
        let timeout = request_timeout(usual_timeout(self.settings.lease), left, cx.client_is_warm);
        self.in_flight = Some(InFlight { id, sent: cx.now, epoch: cx.server_time.epoch(), kind });
        self.actions.push_back(Action::Send { id, request, timeout });
    }

    fn is_past_latest(&self, now: Now) -> bool {
        self.latest.is_some_and(|latest| now.mono >= latest)
    }
}
