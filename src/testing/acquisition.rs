//! How a double answers a request for a lease.

use std::time::Duration;

use super::held::{Held, Lease, validity};
use super::state::{Health, State, Waiting, millis};
use super::{Answer, Happened};
use crate::clock::Mono;
use crate::protocol::{FencingToken, Format, HolderInfo, OwnerId};
use crate::session::{Acquire, Counted, FailKind, FromKeeper};

impl State {
    /// Answers a request for a lease at once, or lets it wait for one of the same test's.
    pub(super) fn asked(&mut self, session: u64, acquire: Box<Acquire>) {
        self.happened.push(Happened::Asked { key: acquire.key.clone() });
        if let Some(session) = self.sessions.get_mut(&session) {
            let asked = Counted { write_requests: 1, attempts: 1, ..Counted::default() };
            session.counted.insert(acquire.id, asked);
        }
        let began = self.now();
        self.clock.advance(std::mem::take(&mut self.delay));
        self.settle();
        let is_late = |now: Mono| {
            let within = acquire.answer_within_ms.map(Duration::from_millis);
            within.is_some_and(|within| now.since(began) >= within)
        };
        if let Health::Fails { kind, message } = &self.health {
            let (kind, message) = (*kind, message.clone());
            return self.fail(session, &acquire, kind, message);
        }
        let wait = Duration::from_millis(acquire.wait_ms);
        let left = match self.held.get(&acquire.key) {
            None => Some(Duration::ZERO),
            Some(Held::Here(lease)) if lease.session == session => {
                let message = "this session holds the key already".to_owned();
                return self.fail(session, &acquire, FailKind::AlreadyHeld, message);
            }
            // A wait of nothing is over already: nobody moves the clock for it.
            Some(held @ Held::Here(_)) if wait.is_zero() => {
                let now = self.now();
                let (holder, retry_after) = held.told(now);
                self.note(session, acquire.id, |counted| *counted = Counted::default());
                return self.refuse(session, &acquire, now.since(began), 0, holder, retry_after);
            }
            // It waits in line, and sends nothing before its turn.
            Some(Held::Here(_)) => {
                self.note(session, acquire.id, |counted| *counted = Counted::default());
                self.waiting.push_back(Waiting { session, acquire, since: began });
                return;
            }
            Some(Held::Elsewhere { until, .. }) => until.map(|until| until.since(self.now())),
        };
        let waits = left.map_or(wait, |left| left.min(wait));
        self.clock.advance(waits);
        self.settle();
        let (now, attempts) = (self.now(), if waits.is_zero() { 1 } else { 2 });
        match self.held.get(&acquire.key) {
            Some(held) => {
                let (holder, retry_after) = held.told(now);
                self.refuse(session, &acquire, now.since(began), 1, holder, retry_after);
            }
            None if is_late(now) => {
                let message = "the answer came after the latest moment at which the work could begin".to_owned();
                self.fail(session, &acquire, FailKind::TooLate, message);
            }
            None => self.grant(session, &acquire, now.since(began), attempts, Duration::ZERO),
        }
    }

    pub(super) fn grant(&mut self, session: u64, acquire: &Acquire, waited: Duration, attempts: u32, queued: Duration) {
        let token = self.raise(&acquire.key);
        let has_tokens = acquire.table.format.parse().is_ok_and(|format: Format| format.abilities().fencing_token());
        let (owner, token) = (OwnerId::random(), has_tokens.then(|| FencingToken::new(token)));
        let length = Duration::from_millis(acquire.lease_ms);
        let now = self.now();
        let has_deadline = self.sessions.get(&session).is_some_and(|session| session.has_deadline);
        let lease = Lease {
            session,
            id: acquire.id,
            owner,
            since: now,
            length,
            valid_until: now + validity(length),
            ends_at: (!has_deadline).then(|| now + Duration::from_millis(acquire.max_hold_ms)),
            max_silence: acquire.max_silence_ms.map(Duration::from_millis),
            heard_until: acquire.max_silence_ms.map(|silence| now + Duration::from_millis(silence)),
            at_risk: false,
            counted_until: now,
            on_crash: acquire.on_crash,
            holder: Box::new(acquire.holder.clone()),
            on_release: None,
        };
        self.held.insert(acquire.key.clone(), Held::Here(lease));
        self.note(session, acquire.id, |counted| counted.granted(attempts, waited));
        self.answered(acquire, Answer::Granted(token));
        let granted = FromKeeper::Granted {
            id: acquire.id,
            owner,
            token,
            valid_for_ms: millis(validity(length)),
            waited_ms: millis(waited),
            attempts,
            queued_ms: millis(queued),
        };
        self.say(session, granted);
    }

    pub(super) fn refuse(
        &mut self,
        session: u64,
        acquire: &Acquire,
        waited: Duration,
        attempts: u32,
        holder: HolderInfo,
        retry_after: Duration,
    ) {
        self.answered(acquire, Answer::Busy);
        let busy = FromKeeper::Busy {
            id: acquire.id,
            holder: Some(holder),
            waited_ms: millis(waited),
            attempts,
            retry_after_ms: millis(retry_after),
        };
        self.say(session, busy);
    }

    pub(super) fn fail(&mut self, session: u64, acquire: &Acquire, kind: FailKind, message: String) {
        self.answered(acquire, Answer::Failed(kind));
        self.say(session, FromKeeper::Failed { id: acquire.id, kind, message });
    }

    fn answered(&mut self, acquire: &Acquire, with: Answer) {
        self.happened.push(Happened::Answered { key: acquire.key.clone(), with });
    }
}
