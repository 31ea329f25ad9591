//! One session: the leases that one invocation asked for over one connection.
//!
//! The session only passes orders on. It never waits for a lease's task, and no task waits for it: a peer that reads or
//! writes nothing for minutes holds up nobody, and its leases are renewed all the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;

use super::connection::{Connection, Received};
use super::desk::{Desk, GiveBack, Stage};
use super::handle::Keeper;
use super::home::{Peer, SessionId};
use super::inspect::Looks;
use super::lease_counts::LeaseCounts;
use super::lease_task::{Assignment, LeaseTask};
use super::outbox::Outbox;
use super::state::{self, Ask};
use super::terms::{Invocation, Terms};
use super::wording::failed;
use crate::protocol::{Settings, Subject};
use crate::session::{Acquire, ErrorKind, FailKind, FromKeeper, Inspect, ReleaseReason, ToKeeper};

/// How many leases one session may have under way.
pub(super) const MAX_LEASES: usize = 1024;
/// How many all sessions of a keeper may have: each takes some memory, and a function has little.
pub(super) const MAX_LEASES_IN_ALL: usize = 4096;
/// How long a connection stays open after `end`, for answers that wait for a write.
const LINGER: Duration = Duration::from_secs(5);

/// A session from its `begin` on. Dropped before its end, everything it holds goes the way of a crash.
#[derive(Debug)]
pub(super) struct Session {
    keeper: Keeper,
    id: SessionId,
    peer: Peer,
    request_id: String,
    invocation: Invocation,
    outbox: Arc<Outbox>,
    leases: HashMap<u64, Lease>,
    looks: Looks,
    over: bool,
}

#[derive(Debug)]
struct Lease {
    subject: Subject,
    /// Why it can have no state, if it can't.
    stateless: Option<String>,
    desk: Arc<Desk>,
    counts: Arc<LeaseCounts>,
}

impl Session {
    /// Begins a session and tells so.
    pub(super) fn begin(
        keeper: Keeper,
        peer: Peer,
        request_id: String,
        deadline_ms: Option<u64>,
        outbox: Arc<Outbox>,
        began: FromKeeper,
    ) -> Self {
        let shared = &keeper.inner.shared;
        let (id, epoch) = shared.begin();
        let invocation = Invocation::new(epoch, deadline_ms, shared.options.managed_instances, shared.now());
        shared.home.session_began(id, &request_id);
        outbox.tell(&began);
        let (leases, looks) = (HashMap::new(), Looks::default());
        Self { id, peer, request_id, invocation, outbox, leases, looks, over: false, keeper }
    }

    /// Serves the session to its end.
    pub(super) async fn run(mut self, connection: &mut Connection) {
        loop {
            let (kind, message) = match connection.receive().await {
                Received::Line(ToKeeper::Acquire(acquire)) => {
                    self.acquire(*acquire);
                    continue;
                }
                Received::Line(ToKeeper::Release { id, reason, wait, hold_at_least_ms }) => {
                    self.release(id, order(reason, hold_at_least_ms), wait);
                    continue;
                }
                Received::Line(ToKeeper::Progress { id }) => {
                    // Where nothing is held under the id any more, it has crossed the loss.
                    if let Some(lease) = self.leases.get(&id) {
                        lease.desk.tell_progress();
                    }
                    continue;
                }
                Received::Line(ToKeeper::Inspect(inspect)) => {
                    self.inspect(*inspect);
                    continue;
                }
                Received::Line(ToKeeper::Count { id }) => {
                    self.count(id);
                    continue;
                }
                Received::Line(ToKeeper::LoadState { id, call }) => {
                    self.ask(id, Ask::Load { call });
                    continue;
                }
                Received::Line(ToKeeper::SaveState { id, call, value, on_release }) => {
                    let ask = if on_release { Ask::SaveOnRelease { call, value } } else { Ask::Save { call, value } };
                    self.ask(id, ask);
                    continue;
                }
                Received::Line(ToKeeper::End) => {
                    self.end(GiveBack::Finished);
                    connection.linger(LINGER, || self.leases.values().all(Lease::is_ended)).await;
                    return;
                }
                Received::Line(ToKeeper::Hello { .. } | ToKeeper::Begin { .. } | ToKeeper::Check { .. }) => {
                    let takes = "a session takes `acquire`, `progress`, `load_state`, `save_state`, `release`, `inspect`, `count` \
                                 and `end`";
                    (ErrorKind::Order, takes.to_owned())
                }
                Received::Unserved(kind, message) => (kind, message),
                Received::End => {
                    self.end(GiveBack::Crash);
                    return;
                }
            };
            self.tell_all_lost();
            self.end(GiveBack::Crash);
            connection.refuse(kind, message).await;
            return;
        }
    }

    fn acquire(&mut self, acquire: Acquire) {
        let id = acquire.id;
        match self.admit(acquire) {
            Ok(terms) => self.start(id, terms),
            Err((kind, message)) => self.outbox.tell(&failed(id, kind, message)),
        }
    }

    fn admit(&mut self, acquire: Acquire) -> Result<Terms, (FailKind, String)> {
        let shared = &self.keeper.inner.shared;
        self.leases.retain(|_, lease| !lease.is_ended());
        if *shared.closing.borrow() {
            return Err((FailKind::ShuttingDown, "the keeper is shutting down".to_owned()));
        }
        if self.leases.contains_key(&acquire.id) {
            return Err((FailKind::BadRequest, format!("`id` {} is in use in this session", acquire.id)));
        }
        if self.leases.len() >= MAX_LEASES {
            return Err((FailKind::BadRequest, format!("a session may have at most {MAX_LEASES} leases under way")));
        }
        if self.keeper.inner.tasks.live() >= MAX_LEASES_IN_ALL {
            return Err((
                FailKind::BadRequest,
                format!("a keeper may have at most {MAX_LEASES_IN_ALL} leases under way"),
            ));
        }
        let terms =
            Terms::read(acquire, &self.invocation, shared.now()).map_err(|message| (FailKind::BadRequest, message))?;
        // One that is lost or on its way back no longer counts: the new one waits for its row like anybody else.
        let taken = |lease: &Lease| lease.subject == terms.subject && lease.desk.stage() < Stage::Over;
        if self.leases.values().any(taken) {
            let message = format!("this session holds or asks for the key `{}` already", terms.lock.key);
            return Err((FailKind::AlreadyHeld, message));
        }
        Ok(terms)
    }

    fn start(&mut self, id: u64, terms: Terms) {
        let (desk, counts) = (Arc::new(Desk::default()), Arc::new(LeaseCounts::default()));
        let (subject, stateless) = (terms.subject.clone(), state::stateless(&terms));
        self.leases.insert(id, Lease { subject, stateless, desk: desk.clone(), counts: counts.clone() });
        let shared = self.keeper.inner.shared.clone();
        shared.home.lease_asked(self.id, terms.settings.lease);
        let tally = shared.tallies.of(&terms.lock.holder.template);
        // For what the AWS SDK says below it; our own lines name the lease themselves.
        let (table, key, request_id) = (&terms.lock.table.name, &terms.lock.key, &terms.lock.holder.request_id);
        let span = tracing::debug_span!(target: "leasehold::keeper", "lease", %table, %key, %request_id);
        let task = LeaseTask::new(Assignment {
            shared,
            desk,
            outbox: self.outbox.clone(),
            id,
            peer: self.peer,
            terms,
            tally,
            counts,
        });
        self.keeper.inner.tasks.spawn(task.run().instrument(span));
    }

    fn inspect(&mut self, inspect: Inspect) {
        let id = inspect.id;
        if let Err(message) = self.looks.begin(&self.keeper.inner.shared, &self.outbox, inspect) {
            self.outbox.tell(&failed(id, FailKind::BadRequest, message));
        }
    }

    fn count(&self, id: u64) {
        match self.leases.get(&id) {
            Some(lease) => self.outbox.tell(&FromKeeper::Counted(Box::new(lease.counts.snapshot(id)))),
            None => {
                let message = format!("this session has no lease under the `id` {id} whose requests could be counted");
                self.outbox.tell(&failed(id, FailKind::BadRequest, message));
            }
        }
    }

    fn release(&self, id: u64, order: GiveBack, wait: bool) {
        let shared = &self.keeper.inner.shared;
        let at_once = !wait && shared.home.may_answer_before_write(self.id);
        let passed_on =
            self.leases.get(&id).is_some_and(|lease| lease.desk.give_back(order, !at_once, || shared.wire.owe()));
        // Where nothing is held under the id any more, the release has nothing left to wait for.
        if at_once || !passed_on {
            self.outbox.tell(&FromKeeper::Released { id });
        }
    }

    /// Passes on what is asked about a lease's state, if it can be served.
    fn ask(&self, id: u64, ask: Ask) {
        let call = ask.call();
        let refusal = match self.leases.get(&id) {
            None => Some((FailKind::NotHeld, "no lease is held under this `id`".to_owned())),
            Some(lease) => lease.refusal(&ask).map(|message| (FailKind::BadRequest, message)).or_else(|| {
                let kind = if lease.desk.stage() == Stage::Granted { FailKind::BadRequest } else { FailKind::NotHeld };
                let message = "the lease is not held, or more than 64 questions about its state wait: await each";
                (!lease.desk.ask(ask)).then(|| (kind, message.to_owned()))
            }),
        };
        if let Some((kind, message)) = refusal {
            self.outbox.tell(&FromKeeper::StateFailed { id, call, kind, message });
        }
    }

    /// The handler's side is over. What is still held goes back; its writes are in flight before the home hears of it.
    fn end(&mut self, order: GiveBack) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let shared = &self.keeper.inner.shared;
        for lease in self.leases.values() {
            lease.desk.give_back(order, false, || shared.wire.owe());
        }
        shared.home.session_ended(self.id, &self.request_id);
    }

    /// Whoever is at the other end of a connection that is about to be closed must not go on believing.
    fn tell_all_lost(&self) {
        for (id, lease) in self.leases.iter().filter(|(_, lease)| lease.desk.stage() == Stage::Granted) {
            let reason = "the session broke off at a line that could not be served".to_owned();
            let _told = lease.desk.advance(Stage::Over, || self.outbox.tell(&FromKeeper::Lost { id: *id, reason }));
        }
    }
}

/// What a release asks for. Only what is done keeps a minimum: what was broken off, or never begun, may be tried again
/// at once. A minimum that no row can hold is cut to what one can: a release is to fail for nothing.
fn order(reason: ReleaseReason, hold_at_least_ms: Option<u64>) -> GiveBack {
    match (reason, hold_at_least_ms) {
        (ReleaseReason::Finished, None | Some(0)) => GiveBack::Finished,
        (ReleaseReason::Finished, Some(ms)) => GiveBack::Kept(Duration::from_millis(ms).min(Settings::MAX_MINIMUM)),
        (ReleaseReason::Dropped, _) => GiveBack::Dropped,
        (ReleaseReason::Cancelled, _) => GiveBack::Cancelled,
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end(GiveBack::Crash);
    }
}

impl Lease {
    /// What is wrong with a question or an order about the state, whatever the lease's standing.
    fn refusal(&self, ask: &Ask) -> Option<String> {
        self.stateless.clone().or_else(|| ask.refusal())
    }

    fn is_ended(&self) -> bool {
        self.desk.stage() == Stage::Ended
    }
}
