//! The holder: one lease, from the row taken to the row freed or the lease lost.
//!
//! Call order: [`Holder::new`], [`start`](Holder::start), then `handle_answer`, `handle_wakeup` and `handle_release` as
//! they come, and after each of them `poll_action` until it is empty and `poll_wakeup` for the next moment to come
//! back. Whatever comes after a gap, the first act is to look whether the lease is still valid. A needless or late
//! wake-up does no harm; [`validity`](Holder::validity) may be asked at any time, without one.

use std::collections::VecDeque;
use std::time::Duration;

use super::contender::{
    COLD_REQUEST_TIMEOUT, HOLDER_GRACE, REQUEST_TIMEOUT, SHORTEST_REQUEST_TIMEOUT, free_until, rounded_up,
};
use super::server_time::shown_after;
use super::{
    Acquired, Action, Answer, Context, Failure, FailureKind, FencingToken, LossReason, Mutant, Outcome, OwnerId,
    Request, RequestId, Row, Sample, Settings, Verdict,
};
use crate::clock::{Mono, Now, Wall};

/// The part of the lease that a holder believes in: two clocks within 5 % of real time stay within 1/0.9 of each other.
const BELIEVED_PERCENT: u32 = 90;
/// A version this far below server time was seeded by a wrong clock, or the row has not been used for long.
const LOW_VERSION: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest delay before a request that is not a renewal is sent again.
const LONGEST_RETRY: Duration = Duration::from_millis(500);

/// When a holder renews no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewals {
    /// No renewal is sent after this moment.
    pub until: Mono,
    /// What the lease's end is put down to when it comes after that.
    pub then: LossReason,
    /// The moment at which the work is over for certain: there is no need for a renewal once validity covers it. `None`
    /// where no deadline is known.
    pub covered_by: Option<Mono>,
}

/// How long a lease may be believed, as a value that needs no machine: what `ensure_held` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    anchor: Now,
    length: Duration,
    by_smaller: bool,
}

impl Validity {
    /// What is left of it at `now`; zero when it is over.
    #[must_use]
    pub fn left(&self, now: Now) -> Duration {
        let elapsed = if self.by_smaller { now.smaller_elapsed(self.anchor) } else { now.larger_elapsed(self.anchor) };
        self.length.saturating_sub(elapsed)
    }
}

/// The state machine of one lease.
#[derive(Debug)]
pub struct Holder {
    settings: Settings,
    acquired: Acquired,
    renewals: Renewals,
    /// No grant counts after this. Where the deadline is unknown, what comes before the grant may take as long as one
    /// more request.
    latest: Option<Mono>,
    version: u64,
    validity: Validity,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The row is taken, but a renewal must be answered before anybody may be told.
    Confirming,
    Held,
    /// No longer believed; the row may still be this owner's.
    Lost {
        row_may_be_mine: bool,
    },
    Releasing,
    Ended,
}

#[derive(Debug)]
struct InFlight {
    id: RequestId,
    sent: Now,
    epoch: super::Epoch,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Renewal { new_version: u64 },
    Release,
}

impl Holder {
    /// The lease on a row that a contender took. `settings.lease` must be the lease that was written.
    #[must_use]
    pub fn new(settings: Settings, acquired: Acquired, renewals: Renewals, latest: Option<Mono>) -> Self {
        let settings = settings.in_whole_millis();
        let version = acquired.version;
        let validity = Validity {
            anchor: acquired.sent,
            length: first_validity(&settings, &acquired),
            by_smaller: settings.rules.broken(Mutant::HolderBySmallerClock),
        };
        Self {
            settings,
            renewals,
            latest,
            version,
            validity,
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

    /// Grants the lease, or sends the renewal that has to be answered first; with `unwanted`, frees it.
    pub fn start(&mut self, cx: &mut Context<'_>, unwanted: bool) {
        self.next = cx.now.mono;
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
                let left = self.validity.left(now);
                let end = now.mono + left.max(Duration::from_millis(1));
                let risk = (!self.at_risk).then(|| self.risk_at(now));
                // Validity shrinks when the wall clock jumps, so it is looked at again now and then.
                let renewal = request.filter(|at| *at > now.mono || self.renewal_wanted(now));
                let again = now.mono + self.settings.lease / 3;
                [Some(end), Some(again), risk, renewal].into_iter().flatten().min()
            }
            Phase::Releasing => request,
            Phase::Lost { .. } | Phase::Ended => None,
        }
    }

    /// How long the lease may be believed; `None` before the grant and after a release or a loss.
    #[must_use]
    pub fn validity(&self) -> Option<Validity> {
        (self.phase == Phase::Held).then_some(self.validity)
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
        match self.phase {
            Phase::Confirming => {
                if self.is_past_latest(cx.now) {
                    self.fail_grant(cx);
                } else if self.in_flight.is_none() && cx.now.mono >= self.next {
                    self.renew(cx);
                }
            }
            Phase::Held => {
                if !self.still_valid(cx) {
                    return;
                }
                if self.in_flight.is_none() && cx.now.mono >= self.next && self.renewal_wanted(cx.now) {
                    self.renew(cx);
                }
            }
            Phase::Releasing => {
                if self.in_flight.is_none() && cx.now.mono >= self.next {
                    self.send_release(cx);
                }
            }
            Phase::Lost { .. } | Phase::Ended => {}
        }
    }

    /// The lease is no longer wanted: the row is freed. No renewal is sent from here on.
    pub fn handle_release(&mut self, cx: &mut Context<'_>) {
        match self.phase {
            Phase::Confirming => {
                self.actions.push_back(Action::Verdict(Verdict::Cancelled));
                self.free(cx);
            }
            Phase::Held | Phase::Lost { row_may_be_mine: true } => self.free(cx),
            Phase::Lost { row_may_be_mine: false } => self.end(Ok(())),
            Phase::Releasing | Phase::Ended => {}
        }
    }

    fn free(&mut self, cx: &mut Context<'_>) {
        self.phase = Phase::Releasing;
        self.retries = 0;
        // A renewal in flight need not be awaited: once the owner is gone it is refused.
        self.in_flight = None;
        self.send_release(cx);
    }

    /// Lets go of the lease without freeing the row: it ends by itself.
    pub fn handle_abandon(&mut self) {
        if self.phase != Phase::Ended {
            self.phase = Phase::Ended;
            self.in_flight = None;
        }
    }

    /// The store's answer to the request `id`, or its timeout.
    pub fn handle_answer(&mut self, cx: &mut Context<'_>, id: RequestId, answer: Answer) {
        if let Some(in_flight) = self.in_flight.as_ref().filter(|in_flight| in_flight.id == id)
            && let Some(date) = answer.date
        {
            cx.server_time.record(Sample { date, sent: in_flight.sent, answered: cx.now, epoch: in_flight.epoch });
        }
        // After a gap the first act is this check: what an answer says about a lease that is over no longer counts.
        if self.phase == Phase::Held {
            self.still_valid(cx);
        }
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
            _ => {}
        }
    }

    fn may_revive(&self) -> bool {
        self.settings.rules.broken(Mutant::LossRevived)
    }

    fn handle_renewal(&mut self, cx: &mut Context<'_>, sent: Now, new_version: u64, outcome: Outcome) {
        match outcome {
            Outcome::Written { .. } => {
                let from = if self.settings.rules.broken(Mutant::ValidityFromAnswer) { cx.now } else { sent };
                self.extend(from, new_version);
                if self.phase == Phase::Confirming {
                    self.confirmed(cx);
                } else if std::mem::take(&mut self.at_risk) {
                    self.actions.push_back(Action::Secured);
                }
            }
            Outcome::Refused { row: Row::Held(held) }
                if held.owner == self.acquired.owner && held.version != self.version =>
            {
                // My own late write. Its version is taken over so that the next one fits; when it was sent it gave no
                // answer, so it gives no validity either.
                self.version = held.version;
                if self.settings.rules.broken(Mutant::AdoptionExtendsValidity) {
                    self.extend(cx.now, held.version);
                }
                self.next = cx.now.mono;
                self.handle_wakeup(cx);
            }
            Outcome::Refused { row } => self.lose(loss(&row, self.acquired.owner)),
            Outcome::Failed(failure) => {
                self.last_failure = Some(failure);
                let delay = match self.phase {
                    Phase::Confirming => self.retry_delay(cx),
                    _ => (self.settings.lease / 12).mul_f64(0.8 + 0.4 * cx.entropy.fraction()),
                };
                self.next = cx.now.mono + delay;
            }
            Outcome::Read { .. } => self.next = cx.now.mono + self.settings.lease / 12,
        }
    }

    fn handle_released(&mut self, cx: &mut Context<'_>, outcome: Outcome) {
        match outcome {
            Outcome::Failed(failure) if failure.kind.is_transient() && !self.lease_is_over(cx.now) => {
                self.last_failure = Some(failure);
                self.next = cx.now.mono + self.retry_delay(cx);
            }
            Outcome::Failed(failure) => self.end(Err(failure)),
            // Refused after a grant: the row is not mine any more, and that is all a release is for.
            Outcome::Written { .. } | Outcome::Refused { .. } | Outcome::Read { .. } => self.end(Ok(())),
        }
    }

    /// After twice the lease anybody may have taken the row over; there is nothing left to free.
    fn lease_is_over(&self, now: Now) -> bool {
        now.larger_elapsed(self.validity.anchor) > self.settings.lease * 2
    }

    fn confirmed(&mut self, cx: &mut Context<'_>) {
        if self.is_past_latest(cx.now) {
            self.fail_grant(cx);
        } else if self.validity.left(cx.now).is_zero() || self.raised(cx).is_some() {
            // The confirming renewal took longer than it can be believed, or could not raise the version yet.
            self.next = cx.now.mono;
            self.renew(cx);
        } else {
            self.grant(cx);
        }
    }

    fn grant(&mut self, cx: &mut Context<'_>) {
        self.phase = Phase::Held;
        // A first validity that was cut short, for an `expires_at` from a slow wall clock, is renewed the sooner.
        self.next = self.validity.anchor.mono + (self.settings.lease / 3).min(self.validity.length / 2);
        self.actions.push_back(Action::Granted {
            token: FencingToken::new(self.version),
            valid_for: self.validity.left(cx.now),
        });
    }

    /// No grant came of it in time: whoever waits is told, and the row is freed.
    fn fail_grant(&mut self, cx: &mut Context<'_>) {
        let verdict = self.last_failure.take().map_or(Verdict::TooLate, Verdict::Failed);
        self.actions.push_back(Action::Verdict(verdict));
        self.free(cx);
    }

    /// Whether a renewal must be answered before the grant: what the attempt wrote to `expires_at` may already be, or
    /// can't be shown not to be, too early, or the version was, or can't be shown not to be, seeded by a wrong clock.
    fn needs_confirmation(&self, cx: &Context<'_>) -> bool {
        let unchecked = self.acquired.sample.is_none();
        unchecked || self.raised(cx).is_some() || self.validity.left(cx.now) < believed(&self.settings) / 3
    }

    /// The version that the row must have before the grant, where its own is too low for the server's time.
    fn raised(&self, cx: &Context<'_>) -> Option<u64> {
        let date = Duration::from_secs(cx.server_time.since(self.acquired.epoch)?.date);
        let low = Duration::from_millis(self.version) + LOW_VERSION < date;
        let raise = low && !self.settings.rules.broken(Mutant::LowSeedNotRaised);
        raise.then(|| u64::try_from(date.as_millis()).unwrap_or(u64::MAX))
    }

    fn renew(&mut self, cx: &mut Context<'_>) {
        let sample = self.server_sample(cx);
        let expires_at =
            sample.map(|sample| rounded_up(sample.upper(cx.now, self.granularity()) + self.settings.lease));
        let next = self.version.saturating_add(1);
        let raised = if self.phase == Phase::Confirming { self.raised(cx) } else { None };
        let new_version = raised.map_or(next, |raised| raised.max(next));
        let request = Request::Renew { owner: self.acquired.owner, version: self.version, new_version, expires_at };
        self.send(cx, Kind::Renewal { new_version }, request);
    }

    /// An answer that says what server time is at most: within this lease, to a request sent since the session began.
    fn server_sample(&self, cx: &Context<'_>) -> Option<Sample> {
        if !self.settings.server_time {
            return None;
        }
        let sample = if self.settings.rules.broken(Mutant::AnswerFromBeforeFreeze) {
            cx.server_time.newest()
        } else {
            cx.server_time.since(self.acquired.epoch)
        };
        sample.filter(|sample| cx.now.larger_elapsed(sample.sent) <= self.settings.lease)
    }

    fn granularity(&self) -> Duration {
        if self.settings.rules.broken(Mutant::DateGranularityDropped) { Duration::ZERO } else { Sample::granularity() }
    }

    fn send_release(&mut self, cx: &mut Context<'_>) {
        let ttl = Some(free_until(cx.now, self.version));
        let request = Request::Release { owners: vec![self.acquired.owner], ttl };
        self.send(cx, Kind::Release, request);
    }

    fn send(&mut self, cx: &mut Context<'_>, kind: Kind, request: Request) {
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let most = REQUEST_TIMEOUT.min(self.settings.lease / 3);
        let left = match (kind, self.phase, self.latest) {
            (Kind::Renewal { .. }, Phase::Confirming, Some(latest)) => latest.since(cx.now.mono),
            (Kind::Renewal { .. }, Phase::Held, _) => self.validity.left(cx.now),
            _ => Duration::MAX,
        };
        let least = if cx.client_is_warm { SHORTEST_REQUEST_TIMEOUT } else { COLD_REQUEST_TIMEOUT };
        self.in_flight = Some(InFlight { id, sent: cx.now, epoch: cx.server_time.epoch(), kind });
        self.actions.push_back(Action::Send { id, request, timeout: most.min(left).max(least) });
    }

    /// Only an answered success extends validity, from before it was sent.
    fn extend(&mut self, from: Now, version: u64) {
        self.version = version;
        self.retries = 0;
        self.last_failure = None;
        self.validity = Validity { anchor: from, length: believed(&self.settings), ..self.validity };
        self.next = from.mono + self.settings.lease / 3;
    }

    fn renewal_wanted(&self, now: Now) -> bool {
        let end = now.mono + self.validity.left(now);
        let covered = self.renewals.covered_by.is_some_and(|end_of_work| end >= end_of_work);
        !covered && now.mono < self.renewals.until
    }

    /// When a third of the validity is left; where the work is over before that, not before it is over.
    fn risk_at(&self, now: Now) -> Mono {
        let left = self.validity.left(now);
        let third = now.mono + left.saturating_sub(self.validity.length / 3);
        match self.renewals.covered_by {
            Some(end_of_work) if now.mono + left >= end_of_work => third.max(end_of_work),
            _ => third,
        }
    }

    fn tell_risk(&mut self, now: Now) {
        if !self.at_risk && now.mono >= self.risk_at(now) {
            self.at_risk = true;
            self.actions.push_back(Action::AtRisk);
        }
    }

    /// A lease whose validity is over is lost, for good.
    fn still_valid(&mut self, cx: &Context<'_>) -> bool {
        if !self.validity.left(cx.now).is_zero() {
            self.tell_risk(cx.now);
            return true;
        }
        let reason = if cx.now.mono >= self.renewals.until { self.renewals.then } else { LossReason::Expired };
        self.lose(reason);
        false
    }

    fn lose(&mut self, reason: LossReason) {
        let row_may_be_mine = matches!(reason, LossReason::Expired | LossReason::MaxHold);
        if self.phase == Phase::Confirming {
            let message = format!("the row was lost again before the lease could be given out: {reason}");
            self.actions.push_back(Action::Verdict(Verdict::Failed(Failure::new(FailureKind::Timeout, message))));
            self.end(Ok(()));
            return;
        }
        if !self.at_risk {
            self.at_risk = true;
            self.actions.push_back(Action::AtRisk);
        }
        self.phase = Phase::Lost { row_may_be_mine };
        if !self.may_revive() {
            self.in_flight = None;
        }
        self.actions.push_back(Action::Lost(reason));
    }

    fn end(&mut self, result: Result<(), Failure>) {
        self.phase = Phase::Ended;
        self.in_flight = None;
        self.actions.push_back(Action::Released(result));
    }

    fn retry_delay(&mut self, cx: &mut Context<'_>) -> Duration {
        let delay = self.settings.polling.delay(self.retries, cx.entropy.fraction());
        self.retries = self.retries.saturating_add(1);
        delay.min(LONGEST_RETRY).min(self.settings.lease / 12)
    }

    fn is_past_latest(&self, now: Now) -> bool {
        self.latest.is_some_and(|latest| now.mono >= latest)
    }
}

fn believed(settings: &Settings) -> Duration {
    if settings.rules.broken(Mutant::WholeLease) { settings.lease } else { settings.lease * BELIEVED_PERCENT / 100 }
}

/// How long the attempt's own write may be believed: 90 % of the lease, and no longer than server time is at most
/// [`HOLDER_GRACE`] past the `expires_at` that it wrote by a clock nobody had checked.
fn first_validity(settings: &Settings, acquired: &Acquired) -> Duration {
    let believed = believed(settings);
    let (Some(expires_at), Some(sample)) = (acquired.expires_at, acquired.sample) else { return believed };
    let granularity =
        if settings.rules.broken(Mutant::DateGranularityDropped) { Duration::ZERO } else { Sample::granularity() };
    let date = Wall::from_epoch(Duration::from_secs(sample.date)) + granularity;
    believed.min(shown_after((expires_at + HOLDER_GRACE).since(date)))
}

fn loss(row: &Row, me: OwnerId) -> LossReason {
    match row {
        Row::Absent => LossReason::Deleted,
        Row::Free { .. } => LossReason::Freed,
        Row::Held(held) if held.owner == me => LossReason::Overwritten,
        Row::Held(held) => LossReason::Stolen { by: held.owner },
        Row::Unusable(_) => LossReason::Overwritten,
    }
}
