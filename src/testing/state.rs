//! What a double knows: who holds what, who waits, and what was said to whom.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::Happened;
use super::held::Held;
use crate::clock::{Clock as _, ManualClock, Mono};
use crate::protocol::{HolderInfo, OwnerId};
use crate::session::{
    Acquire, CheckAnswer, Counted, FailKind, FromKeeper, OnCrash, RawState, ReleaseReason, ToKeeper, VERSION,
};

/// Whether requests for leases are served.
#[derive(Debug)]
pub(super) enum Health {
    Serves,
    Fails { kind: FailKind, message: String },
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) clock: ManualClock,
    pub(super) health: Health,
    pub(super) delay: Duration,
    pub(super) happened: Vec<Happened>,
    pub(super) renewing: bool,
    gone: bool,
    pub(super) sessions: BTreeMap<u64, Session>,
    pub(super) held: HashMap<String, Held>,
    pub(super) waiting: VecDeque<Waiting>,
    /// The version of each key's row, once there is one.
    pub(super) versions: HashMap<String, u64>,
    ended: HashMap<OwnerId, String>,
    /// What was left for the next holder, by key.
    pub(super) states: HashMap<String, RawState>,
    pub(super) token: u64,
    opened: u64,
    events: u64,
}

#[derive(Debug)]
pub(super) struct Session {
    waker: Waker,
    lines: VecDeque<FromKeeper>,
    spoke: bool,
    pub(super) has_deadline: bool,
    /// What its leases have taken, by the id that it asked for them with.
    pub(super) counted: HashMap<u64, Counted>,
}

/// Who waits for a lease of the same test's.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) session: u64,
    pub(super) acquire: Box<Acquire>,
    pub(super) since: Mono,
}

impl State {
    pub(super) fn new(clock: ManualClock) -> Self {
        Self {
            clock,
            health: Health::Serves,
            delay: Duration::ZERO,
            happened: Vec::new(),
            renewing: true,
            gone: false,
            sessions: BTreeMap::new(),
            held: HashMap::new(),
            waiting: VecDeque::new(),
            versions: HashMap::new(),
            ended: HashMap::new(),
            states: HashMap::new(),
            token: 0,
            opened: 0,
            events: 0,
        }
    }

    pub(super) fn now(&self) -> Mono {
        self.clock.now().mono
    }

    pub(super) fn next_request_id(&mut self) -> String {
        self.events += 1;
        format!("test-request-{}", self.events)
    }

    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn is_held_here(&self, key: &str) -> bool {
        matches!(self.held.get(key), Some(Held::Here(_)))
    }

    /// The wakers of the sessions that were spoken to.
    pub(super) fn take_woken(&mut self) -> Vec<Waker> {
        let spoken_to = |session: &mut Session| std::mem::take(&mut session.spoke).then(|| session.waker.clone());
        self.sessions.values_mut().filter_map(spoken_to).collect()
    }

    pub(super) fn open(&mut self, waker: Waker) -> u64 {
        self.opened += 1;
        let session =
            Session { waker, lines: VecDeque::new(), spoke: false, has_deadline: false, counted: HashMap::new() };
        self.sessions.insert(self.opened, session);
        self.opened
    }

    pub(super) fn next_line(&mut self, session: u64) -> Poll<Option<FromKeeper>> {
        match self.sessions.get_mut(&session).map(|session| session.lines.pop_front()) {
            Some(Some(line)) => Poll::Ready(Some(line)),
            Some(None) if !self.gone => Poll::Pending,
            _ => Poll::Ready(None),
        }
    }

    pub(super) fn hear(&mut self, session: u64, line: ToKeeper) {
        match line {
            ToKeeper::Begin { request_id, deadline_ms, .. } => {
                self.happened.push(Happened::Began { request_id });
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.has_deadline = deadline_ms.is_some();
                }
                self.say(session, FromKeeper::Began { version: VERSION });
            }
            ToKeeper::Acquire(acquire) => self.asked(session, acquire),
            ToKeeper::Progress { id } => {
                self.settle();
                self.hear_progress(session, id);
            }
            ToKeeper::Release { id, reason, hold_at_least_ms, .. } => {
                self.give_back(session, Some(id), reason, hold_at_least_ms.map(Duration::from_millis));
                self.say(session, FromKeeper::Released { id });
                self.settle();
            }
            ToKeeper::Inspect(inspect) => self.inspect(session, *inspect),
            ToKeeper::Count { id } => self.count(session, id),
            ToKeeper::LoadState { id, call } => self.load_state(session, id, call),
            ToKeeper::SaveState { id, call, value, on_release } => {
                self.save_state(session, id, call, value, on_release);
            }
            ToKeeper::End => self.close(session),
            // Asked and said past the session.
            ToKeeper::Hello { .. } | ToKeeper::Check { .. } => {}
        }
    }

    /// The connection's end: what is still held was not given back.
    pub(super) fn close(&mut self, session: u64) {
        if self.sessions.remove(&session).is_some() {
            self.give_back(session, None, ReleaseReason::Dropped, None);
            self.settle();
        }
    }

    pub(super) fn vanish(&mut self) {
        self.gone = true;
        self.held.retain(|_, held| matches!(held, Held::Elsewhere { .. }));
        for session in self.sessions.values_mut() {
            session.spoke = true;
        }
    }

    pub(super) fn renew(&mut self, renewing: bool) {
        // What was due before is of the time before.
        self.settle();
        self.renewing = renewing;
        self.settle();
    }

    pub(super) fn give_away(&mut self, key: String, holder: HolderInfo, until: Option<Mono>) {
        self.lose(&key, "the row now belongs to another owner");
        self.versions.insert(key.clone(), self.token);
        let (owner, since) = (OwnerId::random(), self.now());
        self.held.insert(key, Held::Elsewhere { holder: Box::new(holder), owner, since, until });
    }

    /// The next version of this key's row, which is higher than all before.
    pub(super) fn raise(&mut self, key: &str) -> u64 {
        self.token += 1;
        self.versions.insert(key.to_owned(), self.token);
        self.token
    }

    pub(super) fn free_elsewhere(&mut self, key: &str) {
        if matches!(self.held.get(key), Some(Held::Elsewhere { .. })) {
            self.held.remove(key);
        }
        self.settle();
    }

    pub(super) fn lose(&mut self, key: &str, reason: &str) {
        match self.held.remove(key) {
            Some(Held::Here(lease)) => {
                self.ended.insert(lease.owner, reason.to_owned());
                self.happened.push(Happened::Lost { key: key.to_owned(), reason: reason.to_owned() });
                self.say(lease.session, FromKeeper::Lost { id: lease.id, reason: reason.to_owned() });
            }
            Some(elsewhere) => drop(self.held.insert(key.to_owned(), elsewhere)),
            None => {}
        }
    }

    pub(super) fn check(&self, owner: OwnerId) -> CheckAnswer {
        let leases = self.held.values().filter_map(|held| match held {
            Held::Here(lease) => Some(lease),
            Held::Elsewhere { .. } => None,
        });
        match leases.into_iter().find(|lease| lease.owner == owner) {
            Some(lease) => CheckAnswer::Held { valid_for_ms: millis(lease.valid_until.since(self.now())) },
            None => match self.ended.get(&owner) {
                Some(reason) => CheckAnswer::Lost { reason: reason.clone() },
                None => CheckAnswer::Unknown,
            },
        }
    }

    /// The work under a lease goes on.
    fn hear_progress(&mut self, session: u64, id: u64) {
        let now = self.now();
        let held = self.held.iter_mut().find(|(_, held)| held.is_of(session, Some(id)));
        if let Some((key, Held::Here(lease))) = held {
            lease.heard_until = lease.max_silence.map(|silence| now + silence);
            self.happened.push(Happened::Progress { key: key.clone() });
        }
        self.settle();
    }

    /// Answers all who wait for a lease that there is none.
    pub(super) fn fail_waits(&mut self, kind: FailKind, message: &str) {
        for Waiting { session, acquire, .. } in std::mem::take(&mut self.waiting) {
            self.fail(session, &acquire, kind, message.to_owned());
        }
    }

    /// Ends what a session holds or waits for, under this id or any.
    fn give_back(&mut self, session: u64, id: Option<u64>, reason: ReleaseReason, hold_at_least: Option<Duration>) {
        let is_it = |waiting: &Waiting| waiting.session == session && id.is_none_or(|id| id == waiting.acquire.id);
        self.waiting.retain(|waiting| !is_it(waiting));
        let now = self.now();
        let keys: Vec<_> =
            self.held.iter().filter(|(_, held)| held.is_of(session, id)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(Held::Here(lease)) = self.held.remove(&key) else { continue };
            if let (ReleaseReason::Finished, Some(value)) = (reason, lease.on_release) {
                self.keep_state(key.clone(), value);
            }
            if reason == ReleaseReason::Dropped && lease.on_crash == OnCrash::Expire {
                // It ends by itself.
                let until = Some(now + lease.length);
                let (holder, owner) = (lease.holder, lease.owner);
                self.held.insert(key.clone(), Held::Elsewhere { holder, owner, since: now, until });
            } else if let Some(minimum) = hold_at_least
                && reason == ReleaseReason::Finished
                && lease.since + minimum > now
            {
                let holder = Box::new(HolderInfo { parked: true, ..*lease.holder });
                let (owner, until) = (OwnerId::random(), Some(lease.since + minimum));
                self.held.insert(key.clone(), Held::Elsewhere { holder, owner, since: now, until });
            }
            self.happened.push(Happened::Released { key, reason });
        }
    }

    pub(super) fn say(&mut self, session: u64, line: FromKeeper) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.lines.push_back(line);
            session.spoke = true;
        }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
