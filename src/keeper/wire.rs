//! The way to the store, for all leases of one keeper: what is in flight, how fresh the connections are, and the two
//! hands that a freeze needs on it: cutting off what is not answered, and keeping quiet until the freeze is there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::any_store::{AnyStore, Boxed};
use super::flights::{Flight, Flights};
use super::lanes::Lanes;
use super::lease_counts::{AttemptEnd, LeaseCounts, Sort};
use super::state::{SentState, StateSort};
use super::tally::Tally;
use crate::clock::{Clock, Now};
use crate::protocol::{Answer, Failure, FailureKind, Outcome, Request};
use crate::store::{Lock, StateAnswer, StateOutcome, StateRequest};

/// After this long without an answer the pooled connections are not trusted any more.
const STALE: Duration = Duration::from_secs(30);
/// For how long after [`Wire::quiesce`] no write is sent: the freeze, if there is one, comes within a few milliseconds.
const QUIET: Duration = Duration::from_millis(250);
/// How long the tasks whose requests were cut get to let go of them.
const CUT_TURN: Duration = Duration::from_millis(50);
/// A store keeps to its timeout by itself; one that does not is given up this much later.
const BACKSTOP: Duration = Duration::from_millis(100);
/// After a pause of the whole process every timer has fired at once, and an answer that lies in a buffer is only read
/// after that: for this long it is looked for.
const LAST_LOOK: Duration = Duration::from_millis(50);

/// Sends requests.
#[derive(Debug)]
pub(super) struct Wire {
    store: Box<dyn AnyStore>,
    clock: Arc<dyn Clock>,
    /// Where requests are counted that belong to no lease.
    of_no_lease: Arc<Tally>,
    pool: Mutex<Pool>,
    flights: Flights,
    lanes: Lanes,
    /// Counts up when everything in flight is to be given up.
    cuts: watch::Sender<u64>,
    /// Until when writes wait.
    quiet: watch::Sender<Option<Instant>>,
}

#[derive(Clone, Copy, Debug)]
struct Pool {
    /// The last answer, or the moment at which the connections were made anew.
    fresh_at: Now,
    /// Whether these connections ever brought an answer.
    warm: bool,
}

impl Pool {
    fn is_stale(&self, now: Now) -> bool {
        now.larger_elapsed(self.fresh_at) > STALE
    }
}

impl Wire {
    pub(super) fn new(store: Box<dyn AnyStore>, clock: Arc<dyn Clock>, of_no_lease: Arc<Tally>) -> Self {
        let pool = Mutex::new(Pool { fresh_at: clock.now(), warm: false });
        Self {
            store,
            clock,
            of_no_lease,
            pool,
            flights: Flights::new(),
            lanes: Lanes::new(),
            cuts: watch::Sender::new(0),
            quiet: watch::Sender::new(None),
        }
    }

    /// Notes a write that is decided on; it counts as in flight from here.
    pub(super) fn owe(&self) -> Flight {
        self.flights.owe()
    }

    /// Whether the next request finds a connection that has proved itself.
    pub(super) fn is_warm(&self, now: Now) -> bool {
        let pool = *self.pool();
        pool.warm && !pool.is_stale(now)
    }

    /// How many writes are owed or unanswered.
    pub(super) fn in_flight(&self) -> usize {
        self.flights.count().total()
    }

    /// Makes the connection ahead of the first request.
    pub(super) async fn warm_up(&self) {
        // It is as old as its pool: the environment may freeze in the middle, and what is there then is not fresh.
        self.store.warm_up_boxed().await;
    }

    /// Makes a new connection ahead of the next request, where that one would not use the old one any more.
    pub(super) async fn warm_up_after_silence(&self) {
        if self.renew_pool() {
            self.warm_up().await;
        }
    }

    /// Sends one request; a write brings its flight along, and keeps it until the answer is there. One that is
    /// `withdrawn` before its turn came is not sent: a crowd that has gone would else take its rows, and keep the
    /// releases behind them from being written before the keeper's end.
    pub(super) async fn send(
        &self,
        lock: &Lock,
        request: Request,
        limit: Duration,
        flight: Option<&mut Flight>,
        counts: Option<(&Tally, &LeaseCounts)>,
        withdrawn: impl Future<Output = ()>,
    ) -> Answer {
        let asked = Asked { lane: self.lanes.enter(&request), limit, flight, withdrawn };
        let tally = counts.map_or(&*self.of_no_lease, |(tally, _)| tally);
        let count = || Sent::new(tally, counts.map(|(_, lease)| lease), Sort::of(&request));
        let (sent, answer) =
            self.exchange(asked, count, |left| self.store.send_boxed(lock, request.clone(), left)).await;
        let answer = answer.unwrap_or_else(|failure| Answer::new(Outcome::Failed(failure), None));
        // What was not sent says nothing about the connection.
        if let Some(sent) = sent {
            sent.end(&answer);
            self.note(if let Outcome::Failed(failure) = &answer.outcome { Some(failure.kind) } else { None });
        }
        answer
    }

    /// Sends one request about a state; a transaction brings its flight along.
    pub(super) async fn send_state(
        &self,
        lock: &Lock,
        request: StateRequest,
        limit: Duration,
        flight: Option<&mut Flight>,
        counts: (&Tally, &LeaseCounts),
    ) -> StateAnswer {
        let withdrawn = std::future::pending();
        let asked = Asked { lane: self.lanes.enter_with_state(&request), limit, flight, withdrawn };
        let sort = StateSort::of(&request);
        let count = || SentState::new(counts, sort);
        let (sent, answer) = self.exchange(asked, count, |left| self.store.send_state_boxed(lock, request, left)).await;
        let answer = answer.unwrap_or_else(|failure| StateAnswer::new(StateOutcome::Failed(failure)));
        if let Some(sent) = sent {
            sent.end(&answer);
            self.note(if let StateOutcome::Failed(failure) = &answer.outcome { Some(failure.kind) } else { None });
        }
        answer
    }

    /// Waits for its turn, sends, and waits for the answer; beside that brings what was counted as it went out, if it did.
    async fn exchange<'a, L, T, C>(
        &self,
        asked: Asked<'_, impl Future<Output = L>, impl Future<Output = ()>>,
        count: impl FnOnce() -> C,
        send: impl FnOnce(Duration) -> Boxed<'a, T>,
    ) -> (Option<C>, Result<T, Failure>) {
        let Asked { lane, limit, flight, withdrawn } = asked;
        let mut cuts = self.cuts.subscribe();
        if flight.is_some() {
            self.wait_for_quiet_to_end().await;
        }
        let began = Instant::now();
        let _lane = tokio::select! {
            biased;
            () = withdrawn => return (None, failed(FailureKind::Throttled, "not sent: nobody wants it any more")),
            lane = lane => lane,
            // Neither was sent: whoever asked may ask again, and has nothing to clear up.
            _ = cuts.changed() => return (None, failed(FailureKind::Throttled, "not sent before the environment could freeze")),
            // What is sent is to have time enough for an answer.
            () = sleep(limit / 2) => return (None, failed(FailureKind::Throttled, "not sent: too many requests of this keeper wait for DynamoDB")),
        };
        let limit = limit.saturating_sub(began.elapsed());
        if let Some(flight) = flight {
            flight.take_off();
        }
        self.renew_pool();
        let sent = count();
        let answer = tokio::select! {
            // An answer that is there counts, whatever else has happened meanwhile.
            biased;
            answer = send(limit) => Ok(answer),
            _ = cuts.changed() => failed(FailureKind::Connection, "given up before the environment could freeze"),
            () = async {
                sleep(limit).await;
                // Counted from here: after a pause the store has its own last look at this moment.
                sleep(BACKSTOP).await;
            } => failed(FailureKind::Timeout, "no answer in time"),
        };
        (Some(sent), answer)
    }

    /// Waits until nothing is in flight; at the limit gives up what is, closes its connections, and returns how many
    /// that were. Either way no write is sent for a moment from here, unless [`speak`](Self::speak) is called.
    pub(super) async fn quiesce(&self, limit: Duration) -> usize {
        let began = Instant::now();
        let landed = || self.flights.wait_until(|count| count.total() == 0);
        let mut quiet = timeout(limit, landed()).await.is_ok();
        if !quiet && began.elapsed() > limit.saturating_add(LAST_LOOK) {
            quiet = timeout(LAST_LOOK, landed()).await.is_ok();
        }
        self.quiet.send_replace(Some(Instant::now() + QUIET));
        if quiet {
            return 0;
        }
        let cut = self.flights.count().sent;
        self.cuts.send_modify(|cuts| *cuts += 1);
        self.drop_pool();
        let _ = timeout(CUT_TURN, self.flights.wait_until(|count| count.sent == 0)).await;
        cut
    }

    /// Writes may be sent again: the environment runs.
    pub(super) fn speak(&self) {
        self.quiet.send_if_modified(|quiet| quiet.take().is_some());
    }

    async fn wait_for_quiet_to_end(&self) {
        let mut quiet = self.quiet.subscribe();
        loop {
            let until = *quiet.borrow_and_update();
            let Some(until) = until.filter(|until| *until > Instant::now()) else { return };
            tokio::select! {
                () = sleep_until(until) => return,
                changed = quiet.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Gives up connections that have been silent for long; whether they were.
    fn renew_pool(&self) -> bool {
        let stale = self.pool().is_stale(self.clock.now());
        if stale {
            self.drop_pool();
        }
        stale
    }

    fn drop_pool(&self) {
        self.store.drop_pool();
        *self.pool() = Pool { fresh_at: self.clock.now(), warm: false };
    }

    fn note(&self, failure: Option<FailureKind>) {
        if let Some(kind) = failure {
            if kind == FailureKind::Credentials {
                // The next request also waits for new credentials.
                self.pool().warm = false;
            }
            if matches!(kind, FailureKind::Timeout | FailureKind::Connection | FailureKind::Credentials) {
                return;
            }
        }
        *self.pool() = Pool { fresh_at: self.clock.now(), warm: true };
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is under way: counted as it goes out, and once more when it ends, however that is.
struct Sent<'a> {
    tally: &'a Tally,
    lease: Option<&'a LeaseCounts>,
    sort: Sort,
    ended: bool,
}

impl<'a> Sent<'a> {
    fn new(tally: &'a Tally, lease: Option<&'a LeaseCounts>, sort: Sort) -> Self {
        tally.counts.requests.add_one();
        if sort.is_attempt() {
            tally.counts.attempts.add_one();
        }
        if let Some(lease) = lease {
            lease.sent(sort);
        }
        Self { tally, lease, sort, ended: false }
    }

    fn end(mut self, answer: &Answer) {
        self.count(answer);
    }

    fn count(&mut self, answer: &Answer) {
        self.ended = true;
        if let Some(lease) = self.lease {
            lease.ended(self.sort, answer);
        }
        let counts = &self.tally.counts;
        counts.consumed(answer.consumed, self.sort == Sort::Read);
        if let Outcome::Failed(failure) = &answer.outcome {
            counts.not_served(failure.kind);
        }
        match AttemptEnd::of(&answer.outcome) {
            AttemptEnd::Refused if self.sort.is_attempt() => counts.attempts_refused.add_one(),
            AttemptEnd::Unknown if self.sort.is_attempt() => counts.attempts_unknown.add_one(),
            _ => {}
        }
    }
}

impl Drop for Sent<'_> {
    /// Nobody waits for the answer any more, or the store panicked.
    fn drop(&mut self) {
        if !self.ended {
            let failure = Failure::new(FailureKind::Connection, "nobody waited for the answer");
            self.count(&Answer::new(Outcome::Failed(failure), None));
        }
    }
}

fn failed<T>(kind: FailureKind, message: &str) -> Result<T, Failure> {
    Err(Failure::new(kind, message))
}

/// A request that waits for its turn.
struct Asked<'f, L, W> {
    lane: L,
    limit: Duration,
    flight: Option<&'f mut Flight>,
    withdrawn: W,
}
