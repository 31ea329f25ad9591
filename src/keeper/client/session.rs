//! One session: the lines that were sent and heard over one connection, shared by everyone who waits for them.
//!
//! No task of its own reads the connection: whoever waits for something reads what is there and wakes the others. So the
//! layer's future and a spawned task that waits for a loss need nothing of each other, and a handler that blocks one of
//! them does not keep the news from the other.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::Place;
use super::connection::Connection;
use super::heard::{Answer, Broken, Grant, Heard, LOOK, Looked, Loss, Owed, Released, Which};
use super::heard_lease::HeardLease;
use super::socket::Reading;
use super::wakers::Wakers;
use crate::session::{Acquire, Counted, FrameError, Inspect, ReleaseReason, ToKeeper, VersionRange};

/// A session of one invocation, for the key that it locks, and one beside it where there is one.
#[derive(Debug)]
pub(crate) struct Session {
    place: Place,
    state: Mutex<State>,
    wakers: Arc<Wakers>,
    /// Wakes all of `wakers`. Kept, as the runtime compares wakers by identity.
    waker: Waker,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    heard: Heard,
}

/// A question for a lease's counts, told from others by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountAsked {
    which: Which,
    number: u64,
}

impl Session {
    /// Opens a connection, which is given what to wake when there is something to hear, and says `begin`.
    pub(super) fn begin(
        open: impl FnOnce(Waker) -> io::Result<Connection>,
        place: Place,
        versions: VersionRange,
        begin: ToKeeper,
    ) -> io::Result<Self> {
        let wakers = Arc::new(Wakers::default());
        let waker = Waker::from(wakers.clone());
        let connection = open(waker.clone())?;
        connection.send(begin)?;
        let state = Mutex::new(State { connection, heard: Heard::new(versions) });
        Ok(Self { place, state, waker, wakers })
    }

    /// Where its keeper lives.
    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    /// Waits until it is known which version is spoken. That is known at once where only one was offered: the keeper
    /// speaks it, or refuses the session with all that was said in it. So a first order waits for no answer to `begin`.
    pub(crate) fn poll_version(&self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.poll_for(cx, |heard| if heard.knows_version() { Some(Ok(())) } else { heard.broken.clone().map(Err) })
    }

    /// Asks for a lease, under the id that the lines about this key carry.
    pub(crate) fn acquire(&self, which: Which, mut acquire: Box<Acquire>) {
        acquire.id = which.id();
        let mut state = self.state();
        state.heard.leases.push(HeardLease::asked(which));
        self.send(&mut state, ToKeeper::Acquire(acquire));
    }

    /// Waits for the answer to the last [`acquire`](Self::acquire).
    pub(crate) fn poll_answer(&self, cx: &mut Context<'_>) -> Poll<Result<Answer, Broken>> {
        self.poll_for(cx, |heard| match heard.leases.last().and_then(|lease| lease.answer.as_ref()) {
            Some(answer) => Some(Ok(answer.clone())),
            None => heard.broken.clone().map(Err),
        })
    }

    /// Asks how a row stands; in place of [`acquire`](Self::acquire).
    pub(crate) fn inspect(&self, mut inspect: Box<Inspect>) {
        inspect.id = LOOK;
        let mut state = self.state();
        state.heard.look = Some(None);
        self.send(&mut state, ToKeeper::Inspect(inspect));
    }

    /// Waits for the answer to [`inspect`](Self::inspect).
    pub(crate) fn poll_inspected(&self, cx: &mut Context<'_>) -> Poll<Result<Looked, Broken>> {
        self.poll_for(cx, |heard| match heard.look.as_ref().and_then(Option::as_ref) {
            Some(looked) => Some(Ok(looked.clone())),
            None => heard.broken.clone().map(Err),
        })
    }

    /// Asks what each lease that was asked for has taken up to now. What comes back is for
    /// [`poll_counted`](Self::poll_counted).
    pub(crate) fn count(&self) -> Vec<CountAsked> {
        let mut state = self.state();
        let mut asked = Vec::new();
        for lease in &mut state.heard.leases {
            lease.counts_asked += 1;
            asked.push(CountAsked { which: lease.which, number: lease.counts_asked });
        }
        for CountAsked { which, .. } in &asked {
            self.send(&mut state, ToKeeper::Count { id: which.id() });
        }
        asked
    }

    /// Waits for the answers to these questions, or to later ones.
    pub(crate) fn poll_counted(
        &self,
        cx: &mut Context<'_>,
        asked: &[CountAsked],
    ) -> Poll<Result<Vec<Counted>, Broken>> {
        self.poll_for(cx, |heard| {
            let answer = |asked: &CountAsked| {
                let lease = heard.leases.iter().find(|lease| lease.which == asked.which)?;
                lease.counted.filter(|_| lease.counts_told >= asked.number)
            };
            match asked.iter().map(answer).collect() {
                Some(counted) => Some(Ok(counted)),
                None => heard.broken.clone().map(Err),
            }
        })
    }

    /// Waits until a granted lease is lost.
    pub(crate) fn poll_lost(&self, cx: &mut Context<'_>) -> Poll<Loss> {
        self.poll_for(cx, Heard::loss)
    }

    /// Waits until a granted lease is lost, given back, or can't be told about any more.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Option<Loss>> {
        self.poll_for(cx, |heard| match heard.loss() {
            Some(loss) => Some(Some(loss)),
            None => (heard.is_releasing() || heard.broken.is_some()).then_some(None),
        })
    }

    /// Waits until a granted lease is at risk, or worse.
    pub(crate) fn poll_at_risk(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_for(cx, |heard| heard.is_at_risk().then_some(()))
    }

    /// Waits for the end of a release that was sent.
    pub(crate) fn poll_released(&self, cx: &mut Context<'_>) -> Poll<Released> {
        self.poll_for(cx, Heard::released)
    }

    /// The end of a release that was sent, if it was heard.
    pub(crate) fn released(&self) -> Option<Released> {
        self.state().heard.released()
    }

    /// The lease on this key, if one was granted.
    pub(crate) fn grant(&self, which: Which) -> Option<Grant> {
        self.state().heard.grant(which)
    }

    /// How a granted lease was lost, as far as is known here.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.state().heard.loss()
    }

    /// Whether the lease was given back, or is on its way.
    pub(crate) fn is_given_back(&self) -> bool {
        let state = self.state();
        state.heard.is_releasing() || state.heard.broken == Some(Broken::Closed)
    }

    /// Reads what is there, even if the runtime has not noticed yet: the handler may not have yielded for minutes.
    pub(crate) fn look(&self) {
        let mut state = self.state();
        state.connection.read_by(Reading::Now);
        let any = self.read(&mut state, &mut Context::from_waker(Waker::noop()));
        state.connection.read_by(Reading::Task);
        drop(state);
        if any {
            // What was read here, nobody else is told of any more.
            self.wakers.wake_all();
        }
    }

    /// What has to be sent to give the lease back; `None` where there is nothing to give.
    pub(crate) fn owes(&self) -> Option<Owed> {
        self.state().heard.owes()
    }

    /// Tells that the work goes on. It is written at once, whatever the handler's executor does.
    pub(crate) fn progress(&self) {
        let mut state = self.state();
        if state.heard.broken.is_some() {
            return;
        }
        let open = state.heard.leases.iter().filter(|lease| lease.is_open() && lease.grant().is_some());
        let ids: Vec<_> = open.map(|lease| lease.which.id()).collect();
        for id in ids {
            self.send(&mut state, ToKeeper::Progress { id });
        }
    }

    /// Gives back what is held, or no longer wants what was asked for: what was asked for last goes first. With a minimum the
    /// keys stay held until so long after they were acquired.
    pub(crate) fn release(&self, reason: ReleaseReason, wait: bool, hold_at_least: Option<Duration>) {
        let hold_at_least_ms = hold_at_least.map(|minimum| u64::try_from(minimum.as_millis()).unwrap_or(u64::MAX));
        let mut state = self.state();
        let mut ids = Vec::new();
        for lease in state.heard.leases.iter_mut().rev().filter(|lease| lease.is_open()) {
            lease.releasing = true;
            ids.push(lease.which.id());
        }
        for id in ids {
            self.send(&mut state, ToKeeper::Release { id, reason, wait, hold_at_least_ms });
        }
        drop(state);
        self.wakers.wake_all();
    }

    /// Waits for the end of a release by blocking; `None` if it does not come in time.
    pub(crate) fn released_within(&self, limit: Duration) -> Option<Released> {
        let end = Instant::now() + limit;
        let mut state = self.state();
        state.connection.read_by(Reading::Until(end));
        let mut cx = Context::from_waker(Waker::noop());
        while state.heard.released().is_none() {
            if !self.read_one(&mut state, &mut cx) {
                break;
            }
        }
        state.connection.read_by(Reading::Task);
        state.heard.released()
    }

    /// Ends the session. Handles that still know it learn nothing more from it.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        if state.heard.broken.is_none() {
            self.send(&mut state, ToKeeper::End);
            state.heard.break_off(Broken::Closed);
        }
        state.connection.shut_down();
        drop(state);
        self.wakers.wake_all();
    }

    /// Sends a line that is made of what was heard; answers what it was made with.
    pub(super) fn say<T>(&self, line: impl FnOnce(&mut Heard) -> (T, ToKeeper)) -> T {
        let mut state = self.state();
        let (made, line) = line(&mut state.heard);
        if state.heard.broken.is_none() {
            self.send(&mut state, line);
        }
        made
    }

    /// Waits for an answer, or for the end of the lease it is about: a loss, or none where it was given back.
    pub(super) fn poll_for_answer<T>(
        &self,
        cx: &mut Context<'_>,
        answer: impl Fn(&Heard) -> Option<T>,
    ) -> Poll<Result<T, Option<Loss>>> {
        self.poll_for(cx, |heard| match (answer(heard), heard.loss()) {
            (Some(answer), _) => Some(Ok(answer)),
            (None, Some(loss)) => Some(Err(Some(loss))),
            (None, None) => (heard.is_releasing() || heard.broken.is_some()).then_some(Err(None)),
        })
    }

    /// Changes what was heard, where nobody has anything to learn from it.
    pub(super) fn forget(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.state().heard);
    }

    fn poll_for<T>(&self, cx: &mut Context<'_>, answer: impl Fn(&Heard) -> Option<T>) -> Poll<T> {
        self.wakers.add(cx.waker());
        let mut state = self.state();
        let any = self.read(&mut state, &mut Context::from_waker(&self.waker));
        let answer = answer(&state.heard);
        drop(state);
        if any {
            // What was read may be what others wait for. This task is woken as well, which does no harm.
            self.wakers.wake_all();
            self.wakers.add(cx.waker());
        }
        answer.map_or(Poll::Pending, Poll::Ready)
    }

    /// Reads all that is there; whether that was anything.
    fn read(&self, state: &mut State, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while self.read_one(state, cx) {
            any = true;
        }
        any
    }

    /// Reads one line, if there is one; whether something was heard, the connection's end included.
    fn read_one(&self, state: &mut State, cx: &mut Context<'_>) -> bool {
        let State { connection, heard, .. } = state;
        if heard.broken.is_some() {
            return false;
        }
        match connection.poll_next(cx) {
            Poll::Ready(Ok(Some(line))) => heard.hear(line),
            Poll::Ready(Ok(None)) => heard.break_off(Broken::Gone("it closed the connection".to_owned())),
            Poll::Ready(Err(error)) if is_timeout(&error) => return false,
            // A keeper that is there and can't be understood is another release's, or none.
            Poll::Ready(Err(error @ (FrameError::NotAMessage(_) | FrameError::TooLong))) => {
                heard.break_off(Broken::Version(error.to_string()));
            }
            Poll::Ready(Err(error)) => heard.break_off(Broken::Gone(error.to_string())),
            Poll::Pending => return false,
        }
        true
    }

    fn send(&self, state: &mut State, line: ToKeeper) {
        if let Err(error) = state.connection.send(line) {
            // What it said last may be still there to be read, and says more.
            state.connection.read_by(Reading::Now);
            self.read(state, &mut Context::from_waker(Waker::noop()));
            state.heard.break_off(Broken::Gone(error.to_string()));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_timeout(error: &FrameError) -> bool {
    matches!(error, FrameError::Io(error)
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}
