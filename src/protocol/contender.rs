//! The contender: one acquisition of one key, from the first attempt to a row taken or a verdict told.
//!
//! Call order: [`Contender::new`], [`start`](Contender::start), then for each event `handle_answer`, `handle_wakeup`
//! or `handle_cancel`, and after each of them `poll_action` until it is empty and `poll_wakeup` for the next moment to
//! come back. A needless or late wake-up does no harm. When [`is_finished`](Contender::is_finished) says so there is
//! nothing left to do; a verdict may be told before that, while cleanup goes on.

use std::collections::VecDeque;
use std::time::Duration;

use super::{
    Acquired, Action, Answer, Busy, Context, Epoch, Failure, FailureKind, HeldRow, Mutant, Outcome, OwnerId, Request,
    RequestId, Row, Sample, Settings, Subject, Verdict,
};
use crate::clock::{Mono, Now, Wall};

/// A contender takes a lease over by server time this long after its `expires_at`; a holder trusts its first
/// `expires_at` as long as server time is at most [`HOLDER_GRACE`] past it. Between the two lies a second.
const CONTENDER_GRACE: Duration = Duration::from_secs(5);
pub(super) const HOLDER_GRACE: Duration = Duration::from_secs(4);

/// The longest a single request may take.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest, while the client has no connection yet.
pub(super) const COLD_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// No request is given less than this, whatever is left.
pub(super) const SHORTEST_REQUEST_TIMEOUT: Duration = Duration::from_millis(10);
/// How long before `stop` the last look happens, so that the write after it still leaves in time.
const LAST_LOOK: Duration = Duration::from_millis(25);
/// DynamoDB takes at most 100 operands in an `IN` list; an acquisition that has this many attempts of unknown outcome
/// is over.
const MOST_UNKNOWN: usize = 90;
/// How long DynamoDB keeps a free row.
pub(super) const FREE_ROW_SECONDS: u64 = 7 * 24 * 60 * 60;

/// How long an acquisition may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Nothing but the first attempt is sent after this.
    pub stop: Mono,
    /// No answer counts after this; `None` where the deadline is unknown.
    pub latest: Option<Mono>,
}

/// The state machine of one acquisition.
#[derive(Debug)]
pub struct Contender {
    settings: Settings,
    subject: Subject,
    budget: Budget,
    epoch: Epoch,
    began: Now,
    /// Attempts that were written to the wire and never answered: they may have landed, or still land.
    unknown: Vec<OwnerId>,
    in_flight: Option<InFlight>,
    /// When to act again, and what then.
    next: Option<(Mono, Next)>,
    looks: u32,
    writes: u32,
    last_id: u32,
    /// The holder as last seen.
    held: Option<HeldRow>,
    last_failure: Option<Failure>,
    /// The verdict that waits for the cleanup's answer.
    pending: Option<Verdict>,
    told: bool,
    cancelled: bool,
    finished: bool,
    one_owner: Option<OwnerId>,
    actions: VecDeque<Action>,
}

#[derive(Debug)]
struct InFlight {
    id: RequestId,
    sent: Now,
    epoch: Epoch,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Attempt { owner: OwnerId, expires_at: Option<Wall>, took_over: bool },
    Look,
    Cleanup,
}

/// What the next wake-up is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A consistent read: the row was held when last seen.
    Look,
    /// An attempt: it may be free, or an attempt of mine may have landed.
    Attempt,
}

impl Contender {
    /// An acquisition of the lock `subject` for the session that began at `epoch`.
    #[must_use]
    pub fn new(settings: Settings, subject: Subject, budget: Budget, epoch: Epoch, now: Now) -> Self {
        Self {
            settings: settings.in_whole_millis(),
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
            told: false,
            cancelled: false,
            finished: false,
            one_owner: None,
            actions: VecDeque::new(),
        }
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
            if self.is_past_latest(cx.now) {
                let verdict = self.pending.take().unwrap_or_else(|| self.verdict_at_end(cx));
                self.tell(verdict);
            }
            return;
        }
        let Some((at, next)) = self.next else { return };
        if cx.now.mono < at {
            return;
        }
        self.next = None;
        self.act(cx, next);
    }

    /// Who asked for the lease no longer wants it.
    pub fn handle_cancel(&mut self, cx: &mut Context<'_>) {
        if self.finished || self.cancelled {
            return;
        }
        self.cancelled = true;
        self.tell(Verdict::Cancelled);
        // An attempt in flight is awaited first: a release that overtook it would free nothing.
        if self.in_flight.is_none() {
            self.next = None;
            self.give_up(cx, Verdict::Cancelled);
        }
    }

    /// The store's answer to the request `id`, or its timeout.
    pub fn handle_answer(&mut self, cx: &mut Context<'_>, id: RequestId, answer: Answer) {
        let Some(in_flight) = self.in_flight.take_if(|in_flight| in_flight.id == id) else { return };
        let sample =
            answer.date.map(|date| Sample { date, sent: in_flight.sent, answered: cx.now, epoch: in_flight.epoch });
        if let Some(sample) = sample {
            cx.server_time.record(sample);
        }
        match in_flight.kind {
            Kind::Attempt { owner, expires_at, took_over } => {
                self.handle_attempt(cx, &in_flight, owner, expires_at, took_over, sample, answer.outcome);
            }
            Kind::Look => match answer.outcome {
                Outcome::Read { row } => self.handle_row(cx, in_flight.sent, row, true),
                Outcome::Failed(failure) => self.handle_failure(cx, failure, Next::Look),
                Outcome::Written { .. } | Outcome::Refused { .. } => self.schedule(cx, Next::Look),
            },
            Kind::Cleanup => {
                let verdict = self.pending.take().unwrap_or(Verdict::Cancelled);
                self.tell(verdict);
                self.finish(cx);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn handle_attempt(
        &mut self,
        cx: &mut Context<'_>,
        in_flight: &InFlight,
        owner: OwnerId,
        expires_at: Option<Wall>,
        took_over: bool,
        sample: Option<Sample>,
        outcome: Outcome,
    ) {
        self.forget_shared_attempt(cx, owner, &outcome);
        match outcome {
            Outcome::Written { version } => {
                cx.observations.forget(&self.subject);
                let acquired = Acquired {
                    owner,
                    version,
                    sent: if self.settings.rules.broken(Mutant::ValidityFromAnswer) { cx.now } else { in_flight.sent },
                    expires_at,
                    sample,
                    epoch: self.epoch,
                    waited: cx.now.mono.since(self.began.mono),
                    attempts: self.writes,
                    took_over,
                };
                let unwanted = self.cancelled || self.told || self.is_past_latest(cx.now);
                if unwanted {
                    self.tell(Verdict::TooLate);
                }
                self.told = true;
                self.actions.push_back(Action::Acquired { acquired, unwanted });
                self.finish(cx);
            }
            Outcome::Refused { row } => self.handle_row(cx, in_flight.sent, row, took_over),
            Outcome::Failed(failure) => {
                if failure.kind.may_have_landed() && !self.unknown.contains(&owner) {
                    self.unknown.push(owner);
                }
                self.handle_failure(cx, failure, Next::Attempt);
            }
            Outcome::Read { .. } => self.schedule(cx, Next::Attempt),
        }
    }

    /// A look at the row. `may_be_free` is false after a refused acquire, which a free row of this format can't refuse.
    fn handle_row(&mut self, cx: &mut Context<'_>, sent: Now, row: Row, may_be_free: bool) {
        if self.is_over() {
            return self.give_up(cx, Verdict::Cancelled);
        }
        match row {
            Row::Absent | Row::Free { .. } => {
                self.held = None;
                self.last_failure = None;
                cx.observations.forget(&self.subject);
                self.go_on(cx, Next::Attempt, may_be_free);
            }
            Row::Held(held) => {
                if self.unknown.contains(&held.owner) {
                    // An attempt of mine landed unseen: written over at once, not waited for.
                    self.held = None;
                    self.go_on(cx, Next::Attempt, true);
                    return;
                }
                let since = if self.settings.rules.broken(Mutant::ObservationFromSend) { sent } else { cx.now };
                cx.observations.record(&self.subject, held.owner, held.version, held.lease, since);
                self.held = Some(held);
                self.last_failure = None;
                // The first refusal may show a lease that is over: taking it over at once is still the one try that
                // `max_wait` = 0 asks for, since nothing is waited for.
                let in_time = self.writes == 1 || cx.now.mono < self.budget.stop;
                if in_time && self.may_take_over(cx) && !self.is_past_latest(cx.now) {
                    self.send_takeover(cx);
                } else {
                    self.schedule(cx, Next::Look);
                }
            }
            Row::Unusable(unusable) => self.give_up(cx, Verdict::Unusable(unusable)),
        }
    }

    fn handle_failure(&mut self, cx: &mut Context<'_>, failure: Failure, then: Next) {
        if self.is_over() {
            return self.give_up(cx, Verdict::Cancelled);
        }
        let over = !failure.kind.is_transient() || self.unknown.len() >= MOST_UNKNOWN;
        self.last_failure = Some(failure.clone());
        if over {
            self.held = None;
            self.give_up(cx, Verdict::Failed(failure));
        } else {
            self.schedule(cx, then);
        }
    }

    /// Acts at once where the budget allows, else ends.
    fn go_on(&mut self, cx: &mut Context<'_>, next: Next, at_once: bool) {
        if cx.now.mono >= self.budget.stop {
            let verdict = self.verdict_at_end(cx);
            self.give_up(cx, verdict);
        } else if at_once {
            self.act(cx, next);
        } else {
            self.schedule(cx, next);
        }
    }

    /// Sends what is due. A takeover goes first wherever it is allowed.
    fn act(&mut self, cx: &mut Context<'_>, next: Next) {
        if self.is_past_latest(cx.now) || cx.now.mono >= self.budget.stop {
            let verdict = self.verdict_at_end(cx);
            self.give_up(cx, verdict);
        } else if self.may_take_over(cx) {
            self.send_takeover(cx);
        } else if next == Next::Attempt {
            self.send_acquire(cx);
        } else {
            self.send(cx, Kind::Look, Request::Read);
        }
    }

    /// Sets the next wake-up: the next look, earlier where a takeover becomes possible, never after `stop`.
    fn schedule(&mut self, cx: &mut Context<'_>, next: Next) {
        let now = cx.now.mono;
        let delay = self.settings.polling.delay(self.looks, cx.entropy.fraction());
        self.looks = self.looks.saturating_add(1);
        let mut at = now + delay;
        if let Some(left) = self.until_takeover(cx) {
            at = at.min(now + left.max(Duration::from_millis(1)));
        }
        if at >= self.budget.stop {
            // One more look shortly before the end beats sleeping through it.
            let last = self.budget.stop - LAST_LOOK;
            if last < now + LAST_LOOK {
                let verdict = self.verdict_at_end(cx);
                self.give_up(cx, verdict);
                return;
            }
            at = last;
        }
        self.next = Some((at, next));
    }

    fn send_acquire(&mut self, cx: &mut Context<'_>) {
        let (owner, expires_at) = self.new_attempt(cx);
        let request = Request::Acquire {
            owner,
            at: cx.now.wall,
            lease: self.settings.lease,
            expires_at,
            unknown: self.replaceable(cx, owner),
        };
        self.writes += 1;
        self.send(cx, Kind::Attempt { owner, expires_at, took_over: false }, request);
    }

    fn send_takeover(&mut self, cx: &mut Context<'_>) {
        let Some((seen_owner, seen_version)) = self.held.as_ref().map(|held| (held.owner, held.version)) else {
            return self.send_acquire(cx);
        };
        let (owner, expires_at) = self.new_attempt(cx);
        let request = Request::TakeOver {
            owner,
            at: cx.now.wall,
            lease: self.settings.lease,
            expires_at,
            seen_owner,
            seen_version,
        };
        self.writes += 1;
        self.send(cx, Kind::Attempt { owner, expires_at, took_over: true }, request);
    }

    /// A fresh identity and the `expires_at` to write: by server time where an answer of this session says it, else by
    /// the wall clock, which the attempt's own answer will check.
    fn new_attempt(&mut self, cx: &mut Context<'_>) -> (OwnerId, Option<Wall>) {
        let fresh = cx.entropy.owner();
        let owner = if self.settings.rules.broken(Mutant::OneOwnerForAllAttempts) {
            *self.one_owner.get_or_insert(fresh)
        } else {
            fresh
        };
        let expires_at = self.settings.server_time.then(|| {
            let server = self.server_sample(cx).map(|sample| sample.upper(cx.now, Sample::granularity()));
            rounded_up(server.unwrap_or(cx.now.wall) + self.settings.lease)
        });
        (owner, expires_at)
    }

    fn send(&mut self, cx: &mut Context<'_>, kind: Kind, request: Request) {
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let timeout = self.timeout(cx, kind);
        self.next = None;
        self.in_flight = Some(InFlight { id, sent: cx.now, epoch: cx.server_time.epoch(), kind });
        self.actions.push_back(Action::Send { id, request, timeout });
    }

    fn timeout(&self, cx: &Context<'_>, kind: Kind) -> Duration {
        let most = match kind {
            Kind::Attempt { .. } => REQUEST_TIMEOUT,
            Kind::Look | Kind::Cleanup => REQUEST_TIMEOUT.min(self.settings.lease / 3),
        };
        let left = match (kind, self.budget.latest) {
            (Kind::Cleanup, _) | (_, None) => Duration::MAX,
            (_, Some(latest)) => latest.since(cx.now.mono),
        };
        let least = if cx.client_is_warm { SHORTEST_REQUEST_TIMEOUT } else { COLD_REQUEST_TIMEOUT };
        most.min(left).max(least)
    }

    fn may_take_over(&self, cx: &Context<'_>) -> bool {
        self.until_takeover(cx).is_some_and(|left| left.is_zero())
    }

    /// How long until the held row may be taken over, by whichever rule allows it first.
    fn until_takeover(&self, cx: &Context<'_>) -> Option<Duration> {
        let held = self.held.as_ref()?;
        let observed = cx
            .observations
            .get(&self.subject)
            .filter(|seen| seen.owner == held.owner && seen.version == held.version)
            .filter(|seen| cx.now.wall >= seen.since.wall || self.settings.rules.broken(Mutant::ContenderByLargerClock))
            .map(|seen| {
                let elapsed = if self.settings.rules.broken(Mutant::ContenderByLargerClock) {
                    cx.now.larger_elapsed(seen.since)
                } else {
                    cx.now.smaller_elapsed(seen.since)
                };
                seen.lease.saturating_sub(elapsed)
            });
        let expired = self
            .server_sample(cx)
            .zip(held.expires_at)
            .map(|(sample, expires_at)| (expires_at + CONTENDER_GRACE).since(sample.lower(cx.now)));
        match (observed, expired) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn server_sample(&self, cx: &Context<'_>) -> Option<Sample> {
        if !self.settings.server_time {
            None
        } else if self.settings.rules.broken(Mutant::AnswerFromBeforeFreeze) {
            cx.server_time.newest()
        } else {
            cx.server_time.since(self.epoch)
        }
    }

    /// Whether the verdict is told and only cleanup is left.
    const fn is_over(&self) -> bool {
        self.told || self.cancelled
    }

    fn is_past_latest(&self, now: Now) -> bool {
        self.budget.latest.is_some_and(|latest| now.mono >= latest)
    }

    /// What to tell when the budget is used up: who holds it if anybody was seen to, else why nobody could be asked.
    fn verdict_at_end(&self, cx: &Context<'_>) -> Verdict {
        if let (None, Some(failure)) = (&self.held, &self.last_failure) {
            return Verdict::Failed(failure.clone());
        }
        if self.held.is_none() && self.writes == 1 && self.in_flight.is_some() {
            let message = "no answer before the latest moment at which the work could have begun";
            return Verdict::Failed(Failure::new(FailureKind::Timeout, message));
        }
        Verdict::Busy(Busy {
            holder: self.held.as_ref().and_then(|held| held.holder.clone()),
            waited: cx.now.mono.since(self.began.mono),
            attempts: self.writes,
            retry_after: self.until_takeover(cx).unwrap_or_default(),
        })
    }

    /// Ends the acquisition: one release for the attempts that may have landed, its answer, then the verdict.
    fn give_up(&mut self, cx: &mut Context<'_>, verdict: Verdict) {
        self.next = None;
        if self.unknown.is_empty() {
            self.tell(verdict);
            self.finish(cx);
            return;
        }
        if !self.told {
            self.pending = Some(verdict);
        }
        let owners = std::mem::take(&mut self.unknown);
        // An attempt that landed unseen may have landed on any version, so no moment is known to lie after it.
        self.send(cx, Kind::Cleanup, Request::Release { owners, ttl: None });
    }

    fn tell(&mut self, verdict: Verdict) {
        if !self.told {
            self.told = true;
            self.actions.push_back(Action::Verdict(verdict));
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if !self.finished {
            self.finished = true;
            cx.observations.unpin(&self.subject);
        }
    }

    /// The attempts that the next one may replace: this acquisition's own unknown ones.
    fn replaceable(&self, cx: &mut Context<'_>, owner: OwnerId) -> Vec<OwnerId> {
        #[cfg(feature = "simulation")]
        if self.settings.rules.broken(Mutant::UnknownAttemptsPerKeeper) {
            let shared = cx.observations.shared_attempts(&self.subject);
            let others = shared.clone();
            shared.push(owner);
            return others;
        }
        let _ = (cx, owner);
        self.unknown.clone()
    }

    #[cfg_attr(not(feature = "simulation"), allow(clippy::unused_self))]
    fn forget_shared_attempt(&self, cx: &mut Context<'_>, owner: OwnerId, outcome: &Outcome) {
        #[cfg(feature = "simulation")]
        if self.settings.rules.broken(Mutant::UnknownAttemptsPerKeeper)
            && !matches!(outcome, Outcome::Failed(failure) if failure.kind.may_have_landed())
        {
            cx.observations.shared_attempts(&self.subject).retain(|attempt| *attempt != owner);
        }
        let _ = (cx, owner, outcome);
    }
}

/// Until when a free row stays, in epoch seconds: it counts from the row's version as well, so that a wrong clock
/// never has a row swept while a new one could be seeded below its past.
pub(super) fn free_until(now: Now, version: u64) -> u64 {
    (now.wall.as_millis() / 1000).max(version / 1000).saturating_add(FREE_ROW_SECONDS)
}

/// The next whole millisecond, which is what a row can hold: an `expires_at` must not be written too early.
pub(super) fn rounded_up(wall: Wall) -> Wall {
    let floor = Wall::from_millis(wall.as_millis());
    if floor < wall { floor + Duration::from_millis(1) } else { floor }
}
