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
use super::heard::{Answer, Broken, Grant, Heard, ID, Released};
use super::socket::Reading;
use super::wakers::Wakers;
use crate::session::{Acquire, FrameError, ReleaseReason, ToKeeper, VersionRange};

/// A session of one invocation, for at most one acquisition.
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
    /// Whether `acquire` was sent.
    asked: bool,
}

/// How a lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The keeper said so.
    Told(String),
    /// The keeper is gone.
    KeeperGone(String),
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
        let state = Mutex::new(State { connection, heard: Heard::new(versions), asked: false });
        Ok(Self { place, state, waker, wakers })
    }

    /// Where its keeper lives.
    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    /// Waits until the keeper has begun its side.
    pub(crate) fn poll_began(&self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.poll_for(cx, |heard| if heard.began { Some(Ok(())) } else { heard.broken.clone().map(Err) })
    }

    /// Asks for a lease, under the id that this session's lines carry.
    pub(crate) fn acquire(&self, mut acquire: Box<Acquire>) {
        acquire.id = ID;
        let mut state = self.state();
        state.asked = true;
        self.send(&mut state, ToKeeper::Acquire(acquire));
    }

    /// Waits for the answer to [`acquire`](Self::acquire).
    pub(crate) fn poll_answer(&self, cx: &mut Context<'_>) -> Poll<Result<Answer, Broken>> {
        self.poll_for(cx, |heard| match &heard.answer {
            Some(answer) => Some(Ok(answer.clone())),
            None => heard.broken.clone().map(Err),
        })
    }

    /// Waits until a granted lease is lost.
    pub(crate) fn poll_lost(&self, cx: &mut Context<'_>) -> Poll<Loss> {
        self.poll_for(cx, loss)
    }

    /// Waits until a granted lease is lost, given back, or can't be told about any more.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Option<Loss>> {
        self.poll_for(cx, |heard| match loss(heard) {
            Some(loss) => Some(Some(loss)),
            None => (heard.releasing || heard.broken.is_some()).then_some(None),
        })
    }

    /// Waits until a granted lease is at risk, or worse.
    pub(crate) fn poll_at_risk(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_for(cx, |heard| (heard.at_risk || heard.lost.is_some() || heard.broken.is_some()).then_some(()))
    }

    /// Waits for the end of a release that was sent.
    pub(crate) fn poll_released(&self, cx: &mut Context<'_>) -> Poll<Released> {
        self.poll_for(cx, released)
    }

    /// The end of a release that was sent, if it was heard.
    pub(crate) fn released(&self) -> Option<Released> {
        released(&self.state().heard)
    }

    /// The lease, if one was granted.
    pub(crate) fn grant(&self) -> Option<Grant> {
        self.state().heard.grant()
    }

    /// How a granted lease was lost, as far as is known here.
    pub(crate) fn loss(&self) -> Option<Loss> {
        loss(&self.state().heard)
    }

    /// Whether the lease was given back, or is on its way.
    pub(crate) fn is_given_back(&self) -> bool {
        let state = self.state();
        state.heard.releasing || state.heard.broken == Some(Broken::Closed)
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
        let state = self.state();
        let heard = &state.heard;
        if heard.releasing || heard.broken.is_some() || heard.lost.is_some() {
            return None;
        }
        match (&heard.answer, state.asked) {
            (Some(Answer::Granted(_)), _) => Some(Owed::Lease),
            (None, true) => Some(Owed::Cancellation),
            _ => None,
        }
    }

    /// Sends the release. With a minimum the key stays held until so long after it was acquired.
    pub(crate) fn release(&self, reason: ReleaseReason, wait: bool, hold_at_least: Option<Duration>) {
        let hold_at_least_ms = hold_at_least.map(|minimum| u64::try_from(minimum.as_millis()).unwrap_or(u64::MAX));
        let mut state = self.state();
        state.heard.releasing = true;
        self.send(&mut state, ToKeeper::Release { id: ID, reason, wait, hold_at_least_ms });
        drop(state);
        self.wakers.wake_all();
    }

    /// Waits for the end of a release by blocking; `None` if it does not come in time.
    pub(crate) fn released_within(&self, limit: Duration) -> Option<Released> {
        let end = Instant::now() + limit;
        let mut state = self.state();
        state.connection.read_by(Reading::Until(end));
        let mut cx = Context::from_waker(Waker::noop());
        while released(&state.heard).is_none() {
            if !self.read_one(&mut state, &mut cx) {
                break;
            }
        }
        state.connection.read_by(Reading::Task);
        released(&state.heard)
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

/// What a session owes its keeper at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// The lease that it holds.
    Lease,
    /// That it no longer wants the lease it asked for.
    Cancellation,
}

fn loss(heard: &Heard) -> Option<Loss> {
    heard.grant()?;
    if let Some(reason) = &heard.lost {
        return Some(Loss::Told(reason.clone()));
    }
    match &heard.broken {
        Some(Broken::Gone(reason) | Broken::Version(reason)) if !heard.releasing => {
            Some(Loss::KeeperGone(reason.clone()))
        }
        _ => None,
    }
}

fn released(heard: &Heard) -> Option<Released> {
    if let Some(released) = &heard.released {
        return Some(released.clone());
    }
    match (&heard.broken, &heard.lost) {
        (Some(Broken::Gone(reason) | Broken::Version(reason)), _) => Some(Released::Failed(reason.clone())),
        // A loss that crosses the release: there is nothing to free any more.
        (_, Some(_)) => Some(Released::Done),
        _ => None,
    }
}

fn is_timeout(error: &FrameError) -> bool {
    matches!(error, FrameError::Io(error)
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}
