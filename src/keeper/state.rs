//! A lease's state, as its task keeps it: questions and orders in their order, one request at a time.
//!
//! Nothing here extends a lease: what the store answers about a state never reaches the holder's machine, but for the
//! news that the row is another's.

mod answers;
mod ask;
mod leaving;
mod sent;

use std::collections::VecDeque;
use std::time::Duration;

pub(super) use self::ask::{Ask, stateless};
pub(super) use self::sent::{SentState, StateSort};
use super::entropy::KernelEntropy;
use super::wording;
use crate::clock::{Mono, Now};
use crate::protocol::{Entropy as _, OwnerId, Row};
use crate::session::{FailKind, FromKeeper, RawState};
use crate::store::{SeenState, StateRequest, StateWrite};

/// How many questions and orders of one lease may wait.
pub(super) const MOST_WAITING: usize = 64;
/// A renewal that was in the way is over in a few milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// A state that was taken away leaves its counter behind for as long as a free row stays.
const EMPTY_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The state of one lease.
#[derive(Debug)]
pub(super) struct States {
    id: u64,
    retention: Option<Duration>,
    seen: Option<SeenState>,
    waiting: VecDeque<Ask>,
    current: Option<Current>,
    /// What is to be written with the release.
    on_release: Option<Option<RawState>>,
    /// The release's transaction, once it was decided on: it is the same each time that it is sent.
    leaving: Option<StateWrite>,
    releases: u32,
    /// Whether the release's transaction was sent and had no answer.
    leaving_unknown: bool,
}

/// The question or order that is being served.
#[derive(Debug)]
struct Current {
    ask: Ask,
    write: Option<StateWrite>,
    /// When the transaction was first sent.
    since: Option<Mono>,
    /// Whether it may have been applied.
    unknown: bool,
    in_flight: bool,
    next: Mono,
    pause: Duration,
    changes: u32,
}

/// What an answer leads to.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// A line for the session.
    pub(super) line: Option<FromKeeper>,
    /// The row belongs to another, as the store found it.
    pub(super) not_held: Option<Row>,
    /// Why a state that was to be left is not, or why that is not known.
    pub(super) not_left: Option<NotLeft>,
}

/// Why a state that was to be left with the release is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotLeft {
    /// It was not written, and will not be.
    No(String),
    /// A transaction that writes it had no answer: it was applied, or it was not.
    Unknown(String),
}

impl Told {
    const fn line(line: FromKeeper) -> Self {
        Self { line: Some(line), not_held: None, not_left: None }
    }
}

impl States {
    pub(super) const fn new(id: u64, retention: Option<Duration>) -> Self {
        Self {
            id,
            retention,
            seen: None,
            waiting: VecDeque::new(),
            current: None,
            on_release: None,
            leaving: None,
            releases: 0,
            leaving_unknown: false,
        }
    }

    /// Takes a question or an order; answers at once what needs no request.
    pub(super) fn handle_ask(&mut self, ask: Ask) -> Option<FromKeeper> {
        let call = ask.call();
        match ask {
            Ask::SaveOnRelease { value, .. } => {
                self.on_release = Some(value);
                return Some(FromKeeper::StateSaved { id: self.id, call });
            }
            // What is written last is what is left.
            Ask::Save { .. } => self.on_release = None,
            Ask::Load { .. } | Ask::Leave { .. } => {}
        }
        if self.waiting.len() >= MOST_WAITING {
            let message =
                format!("at most {MOST_WAITING} questions about a state may wait: await each before the next");
            return Some(self.failed(call, FailKind::BadRequest, message));
        }
        self.waiting.push_back(ask);
        None
    }

    /// The next request, if one is due. A transaction is not begun while `may_write` is false: a renewal is under way, or
    /// owed, and must not find its row in a transaction.
    pub(super) fn poll_request(&mut self, now: Now, owner: OwnerId, may_write: bool) -> Option<StateRequest> {
        if self.current.is_none() {
            let ask = self.waiting.pop_front()?;
            self.current = Some(Current {
                ask,
                write: None,
                since: None,
                unknown: false,
                in_flight: false,
                next: now.mono,
                pause: FIRST_PAUSE,
                changes: 0,
            });
        }
        let ttl = |value: &Option<RawState>| self.ttl(now, value.is_none());
        let current = self.current.as_ref()?;
        if current.in_flight || now.mono < current.next {
            return None;
        }
        let request = match (&current.ask, self.seen) {
            (Ask::Load { .. } | Ask::SaveOnRelease { .. }, _) | (Ask::Save { .. } | Ask::Leave { .. }, None) => {
                StateRequest::Read
            }
            (Ask::Save { .. } | Ask::Leave { .. }, Some(_)) if !may_write => return None,
            (Ask::Save { value, .. } | Ask::Leave { value }, Some(seen)) => {
                let write = current.write.clone().unwrap_or_else(|| StateWrite {
                    id: KernelEntropy.owner(),
                    owner,
                    seen,
                    at: now.wall,
                    value: value.clone(),
                    ttl: ttl(value),
                    release: None,
                });
                StateRequest::Write(write)
            }
        };
        let current = self.current.as_mut()?;
        current.in_flight = true;
        if let StateRequest::Write(write) = &request {
            current.write = Some(write.clone());
            current.since.get_or_insert(now.mono);
        }
        Some(request)
    }

    /// When to look again for a request.
    pub(super) fn poll_wakeup(&self, now: Now) -> Option<Duration> {
        let current = self.current.as_ref().filter(|current| !current.in_flight)?;
        Some(current.next.since(now.mono)).filter(|left| !left.is_zero())
    }

    /// Whether a transaction was sent and not answered.
    pub(super) fn is_writing(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.in_flight && current.write.is_some())
    }

    /// The lease is over: what was asked is answered so.
    pub(super) fn end(&mut self, reason: &str) -> Vec<FromKeeper> {
        self.on_release = None;
        let current = self.current.take().map(|current| current.ask);
        let asks: Vec<_> = current.into_iter().chain(self.waiting.drain(..)).collect();
        let asks = asks.iter().filter(|ask| !matches!(ask, Ask::Leave { .. }));
        asks.map(|ask| self.failed(ask.call(), FailKind::NotHeld, reason)).collect()
    }

    fn ttl(&self, now: Now, is_empty: bool) -> Option<u64> {
        let stays = if is_empty { Some(EMPTY_FOR) } else { self.retention }?;
        Some((now.wall.as_millis() / 1000).saturating_add(stays.as_secs().max(1)))
    }

    fn failed(&self, call: u64, kind: FailKind, message: impl Into<String>) -> FromKeeper {
        FromKeeper::StateFailed { id: self.id, call, kind, message: wording::cut(message.into()) }
    }
}
