//! A lease's state, as its task keeps it: questions and orders in their order, one request at a time.
//!
//! Nothing here extends a lease: what the store answers about a state never reaches the holder's machine, but for the
//! news that the row is another's.

use std::collections::VecDeque;
use std::time::Duration;

use super::entropy::KernelEntropy;
use super::terms::{MAX_KEY, Terms};
use super::wording;
use crate::clock::{Mono, Now};
use crate::protocol::{Entropy as _, Failure, OwnerId, Row, Unusable};
use crate::session::{FailKind, FromKeeper, RawState};
use crate::store::{
    STATE_SUFFIX, SeenState, StateAnswer, StateItem, StateOutcome, StateRequest, StateWrite, WithRelease, state_key,
};

/// How many questions and orders of one lease may wait.
pub(super) const MOST_WAITING: usize = 64;
/// DynamoDB knows a `ClientRequestToken` for ten minutes, from when the transaction was done; this is counted from when
/// it was first sent.
const TOKEN_SERVES: Duration = Duration::from_secs(9 * 60 + 30);
/// A renewal that was in the way is over in a few milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How often a state that was changed under its holder is looked at anew.
const MOST_CHANGES: u32 = 3;
/// How often a release is sent together with a state before it is sent without.
const MOST_RELEASES: u32 = 5;
/// A state that was taken away leaves its counter behind for as long as a free row stays.
const EMPTY_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a session asks about a lease's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// What is there?
    Load { call: u64 },
    /// Write this now.
    Save { call: u64, value: Option<RawState> },
    /// Write this with the release.
    SaveOnRelease { call: u64, value: Option<RawState> },
    /// Write now what was to be written with the release: the row stays held, and no release is sent. Nobody is answered.
    Leave { value: Option<RawState> },
}

impl Ask {
    pub(super) const fn call(&self) -> u64 {
        match self {
            Self::Load { call } | Self::Save { call, .. } | Self::SaveOnRelease { call, .. } => *call,
            Self::Leave { .. } => 0,
        }
    }

    /// What is wrong with it.
    pub(super) fn refusal(&self) -> Option<String> {
        let (Self::Save { value: Some(value), .. } | Self::SaveOnRelease { value: Some(value), .. }) = self else {
            return None;
        };
        let (bytes, most) = (value.get().len(), RawState::MAX_BYTES);
        (bytes > most).then(|| format!("the state has {bytes} bytes of JSON, and at most {most} are kept"))
    }
}

/// Why a lease with these terms can have no state.
pub(super) fn stateless(terms: &Terms) -> Option<String> {
    let format = terms.settings.format;
    if !format.abilities().state {
        return Some(format!("the row format `{format}` has no place for a state"));
    }
    let bytes = state_key(&terms.lock.key).len();
    (bytes > MAX_KEY).then(|| format!("the key and `{STATE_SUFFIX}` have {bytes} bytes, and DynamoDB takes {MAX_KEY}"))
}

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
    /// Why a state that was to be left is not.
    pub(super) not_left: Option<String>,
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

    /// What was to be written with the release is written now, as there will be none.
    pub(super) fn leave(&mut self) {
        if let Some(value) = self.on_release.take() {
            self.waiting.push_back(Ask::Leave { value });
        }
    }

    /// Whether the end of the lease is to wait, for a moment: for a transaction under way, or for a state to be left.
    pub(super) fn holds_up_the_end(&self) -> bool {
        self.is_writing() || self.has_to_leave()
    }

    /// Whether a state that was to be left is not written yet.
    pub(super) fn has_to_leave(&self) -> bool {
        let asks = self.current.iter().map(|current| &current.ask).chain(&self.waiting);
        asks.into_iter().any(|ask| matches!(ask, Ask::Leave { .. }))
    }

    /// The store's answer to the request under way.
    pub(super) fn handle_answer(&mut self, now: Now, answer: StateAnswer) -> Told {
        let is_left = self.current.as_ref().is_some_and(|current| matches!(current.ask, Ask::Leave { .. }));
        let mut told = self.handle_the_answer(now, answer);
        if is_left && let Some(FromKeeper::StateFailed { message, .. }) = told.line.take() {
            told.not_left = Some(message);
        }
        told
    }

    fn handle_the_answer(&mut self, now: Now, answer: StateAnswer) -> Told {
        let Some(mut current) = self.current.take() else { return Told::default() };
        current.in_flight = false;
        let call = current.ask.call();
        let line = match answer.outcome {
            StateOutcome::Read(item) => return self.found(now, answer.date, current, item),
            StateOutcome::Written => {
                self.seen = current.write.and_then(|write| write.counter()).map(SeenState::Counter);
                FromKeeper::StateSaved { id: self.id, call }
            }
            StateOutcome::NotHeld(row) => {
                let message = "DynamoDB found another owner on the lock's row, or none, and wrote nothing";
                let line = Some(self.failed(call, FailKind::NotHeld, message));
                return Told { line, not_held: Some(row), not_left: None };
            }
            StateOutcome::Changed(StateItem::Unusable(unusable)) => self.unusable(call, &unusable),
            StateOutcome::Changed(_) if current.changes < MOST_CHANGES => {
                // Somebody put it back by hand, or an earlier write of this lease's came late. It is this holder's to
                // write, whatever stands there.
                self.seen = None;
                let changes = current.changes + 1;
                self.current = Some(Current { write: None, since: None, unknown: false, changes, ..current });
                return Told::default();
            }
            StateOutcome::Changed(_) => {
                let message = "the state was changed again and again by somebody who does not hold the lock";
                self.failed(call, FailKind::Rejected, message)
            }
            StateOutcome::Failed(failure) => return self.failed_once(now, current, &failure),
        };
        Told::line(line)
    }

    /// The lease is over: what was asked is answered so.
    pub(super) fn end(&mut self, reason: &str) -> Vec<FromKeeper> {
        self.on_release = None;
        let current = self.current.take().map(|current| current.ask);
        let asks: Vec<_> = current.into_iter().chain(self.waiting.drain(..)).collect();
        let asks = asks.iter().filter(|ask| !matches!(ask, Ask::Leave { .. }));
        asks.map(|ask| self.failed(ask.call(), FailKind::NotHeld, reason)).collect()
    }

    /// The transaction that the release is to be sent as, if a state was to be left with it.
    pub(super) fn release(&mut self, now: Now, owner: OwnerId, row_ttl: Option<u64>) -> Option<StateWrite> {
        if self.leaving.is_none() {
            let value = self.on_release.take()?;
            // One that was sent and not answered may have counted it on; it can't land after this one.
            let unknown = self.current.as_ref().is_some_and(|current| current.write.is_some());
            self.leaving = Some(StateWrite {
                id: KernelEntropy.owner(),
                owner,
                seen: self.seen.filter(|_| !unknown).unwrap_or(SeenState::Unread),
                at: now.wall,
                ttl: self.ttl(now, value.is_none()),
                value,
                release: Some(WithRelease { ttl: row_ttl }),
            });
        }
        self.releases += 1;
        self.leaving.clone()
    }

    /// What came of the release's transaction; why the state is not left, if it is given up so that the row is freed all
    /// the same.
    pub(super) fn handle_released(&mut self, outcome: &StateOutcome) -> Option<String> {
        let reason = match outcome {
            StateOutcome::Written | StateOutcome::Read(_) => None,
            StateOutcome::Failed(failure) if failure.kind.is_transient() && self.releases < MOST_RELEASES => {
                return None;
            }
            StateOutcome::Failed(failure) => Some(failure.to_string()),
            StateOutcome::NotHeld(_) => Some("the lease was not held any more".to_owned()),
            StateOutcome::Changed(StateItem::Unusable(unusable)) => Some(unusable.to_string()),
            StateOutcome::Changed(_) => Some("the state is not the one that was read".to_owned()),
        };
        self.leaving = None;
        reason
    }

    fn found(&mut self, now: Now, date: Option<u64>, current: Current, item: StateItem) -> Told {
        let call = current.ask.call();
        let (seen, value) = match item {
            StateItem::Unusable(unusable) => {
                return Told::line(self.unusable(call, &unusable));
            }
            StateItem::Absent => (SeenState::Absent, None),
            StateItem::Kept { counter, value, ttl } => {
                // DynamoDB sweeps within a few days of it, not at once.
                let moment = date.unwrap_or(now.wall.as_millis() / 1000);
                (SeenState::Counter(counter), value.filter(|_| ttl.is_none_or(|ttl| moment < ttl)))
            }
        };
        self.seen = Some(seen);
        if matches!(current.ask, Ask::Load { .. }) {
            return Told::line(FromKeeper::State { id: self.id, call, value });
        }
        self.current = Some(Current { pause: FIRST_PAUSE, next: now.mono, ..current });
        Told::default()
    }

    /// It is sent again, the same, unless that is of no use any more.
    fn failed_once(&mut self, now: Now, mut current: Current, failure: &Failure) -> Told {
        let call = current.ask.call();
        current.unknown |= current.write.is_some() && failure.kind.may_have_landed();
        let serves = current.since.is_none_or(|since| now.mono.since(since) < TOKEN_SERVES);
        if failure.kind.is_transient() && serves {
            current.next = now.mono + current.pause;
            current.pause = (current.pause * 2).min(LONGEST_PAUSE);
            self.current = Some(current);
            return Told::default();
        }
        let line = if current.unknown {
            // Whether it was applied, the next one has to find out.
            self.seen = None;
            let message = format!("an attempt had no answer, and then: {failure}");
            self.failed(call, FailKind::Unconfirmed, message)
        } else {
            self.failed(call, wording::kind(failure.kind), failure.to_string())
        };
        Told::line(line)
    }

    fn ttl(&self, now: Now, is_empty: bool) -> Option<u64> {
        let stays = if is_empty { Some(EMPTY_FOR) } else { self.retention }?;
        Some((now.wall.as_millis() / 1000).saturating_add(stays.as_secs().max(1)))
    }

    fn unusable(&self, call: u64, unusable: &Unusable) -> FromKeeper {
        let (kind, found) = match unusable {
            Unusable::Foreign { format, .. } => {
                let format = format.as_ref().map_or("no format".to_owned(), |format| format!("the format `{format}`"));
                (
                    FailKind::ForeignRow,
                    format!(
                        "an item of {format}, which is left alone: give these locks keys, or a table, of their own"
                    ),
                )
            }
            Unusable::Malformed { attribute, found } => {
                let advice = "look at the item and delete it once nobody works on its key";
                (FailKind::MalformedRow, format!("an item whose `{attribute}` {found}; {advice}"))
            }
        };
        self.failed(call, kind, format!("where the state is to be (the lock's key and `#state`) stands {found}"))
    }

    fn failed(&self, call: u64, kind: FailKind, message: impl Into<String>) -> FromKeeper {
        FromKeeper::StateFailed { id: self.id, call, kind, message: wording::cut(message.into()) }
    }
}
