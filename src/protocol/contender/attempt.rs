//! What a contender sends: attempts under ever new identities, looks, and a release when it gives up.

use std::time::Duration;

use super::{Attempt, Contender, InFlight, Kind};
use crate::clock::Now;
use crate::protocol::row::rounded_up;
use crate::protocol::timing::{REQUEST_TIMEOUT, request_timeout, usual_timeout};
use crate::protocol::{Action, Context, OwnerId, Request, RequestId, Sample, Version, Versions};

/// The least that one request of several gets: two such fit into the shortest wait that is worth dividing.
const SHORTEST_SHARE: Duration = Duration::from_millis(750);

impl Contender {
    pub(super) fn send_acquire(&mut self, cx: &mut Context<'_>) {
        let attempt = self.new_attempt(cx, false);
        let Attempt { owner, expires_at, .. } = attempt;
        let unknown = self.replaceable(cx, owner);
        let (version, at, lease) = (self.first_version(cx), cx.now.wall, self.settings.lease);
        let served = self.served();
        let request = Request::Acquire { owner, version, at, lease, expires_at, unknown, served };
        self.send(cx, Kind::Attempt(attempt), request);
    }

    /// Takes the row from the holder last seen, or acquires where none was.
    pub(super) fn send_takeover(&mut self, cx: &mut Context<'_>) {
        let Some((seen_owner, seen_version)) = self.held.as_ref().map(|held| (held.owner, held.version)) else {
            return self.send_acquire(cx);
        };
        let attempt = self.new_attempt(cx, true);
        let Attempt { owner, expires_at, .. } = attempt;
        let (version, at, lease) = (self.first_version(cx), cx.now.wall, self.settings.lease);
        let served = self.served();
        let request = Request::TakeOver { owner, version, at, lease, expires_at, seen_owner, seen_version, served };
        self.send(cx, Kind::Attempt(attempt), request);
    }

    /// A fresh identity and the `expires_at` to write: by server time where an answer of this session says it, else by
    /// the wall clock, which the attempt's own answer will check.
    fn new_attempt(&mut self, cx: &mut Context<'_>, took_over: bool) -> Attempt {
        self.writes += 1;
        let fresh = cx.entropy.owner();
        let expires_at = self.settings.server_time.then(|| {
            let server = self.server_sample(cx).map(|sample| sample.upper(cx.now, Sample::granularity()));
            rounded_up(server.unwrap_or(cx.now.wall) + self.settings.lease)
        });
        Attempt { owner: self.identity(fresh), expires_at, took_over }
    }

    /// The version that an attempt writes, where the store does not count one on.
    fn first_version(&self, cx: &mut Context<'_>) -> Option<Version> {
        match self.settings.format.abilities().versions {
            Versions::Counted => None,
            Versions::Opaque => Some(cx.entropy.version()),
        }
    }

    pub(super) fn send(&mut self, cx: &mut Context<'_>, kind: Kind, request: Request) {
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let until_stop = self.budget.stop.since(cx.now.mono);
        let until_latest = self.budget.latest.map_or(Duration::MAX, |latest| latest.since(cx.now.mono));
        let share = self.share(cx.now);
        let (usual, left) = match kind {
            Kind::Attempt(_) => (share.unwrap_or(REQUEST_TIMEOUT).min(REQUEST_TIMEOUT), until_latest),
            // What a look shows after the end of the wait is of no use.
            Kind::Look | Kind::Ticket => {
                (share.unwrap_or(until_stop).min(usual_timeout(self.settings.lease)), until_latest)
            }
            Kind::Cleanup => (usual_timeout(self.settings.lease), Duration::MAX),
        };
        let timeout = request_timeout(usual, left, cx.client_is_warm);
        self.next = None;
        self.in_flight =
            Some(InFlight { id, sent: cx.now, epoch: cx.server_time.epoch(), warm: cx.client_is_warm, kind });
        self.actions.push_back(Action::Send { id, request, timeout });
    }

    /// Half of what is left of the wait, so that one request without an answer does not use it all up; `None` where
    /// half of it is too little, and the request is the last.
    fn share(&self, now: Now) -> Option<Duration> {
        let half = self.budget.stop.since(now.mono) / 2;
        (half >= SHORTEST_SHARE).then_some(half)
    }

    #[cfg(not(feature = "simulation"))]
    #[allow(clippy::unused_self, clippy::needless_pass_by_ref_mut)]
    const fn identity(&mut self, fresh: OwnerId) -> OwnerId {
        fresh
    }

    #[cfg(feature = "simulation")]
    fn identity(&mut self, fresh: OwnerId) -> OwnerId {
        if self.settings.rules.broken(crate::protocol::Mutant::OneOwnerForAllAttempts) {
            return *self.one_owner.get_or_insert(fresh);
        }
        fresh
    }

    /// The attempts that the next one may replace: this acquisition's own unknown ones.
    #[cfg(not(feature = "simulation"))]
    fn replaceable(&self, _cx: &mut Context<'_>, _owner: OwnerId) -> Vec<OwnerId> {
        self.unknown.clone()
    }

    /// The attempts that the next one may replace: this acquisition's own unknown ones, or with a rule switched off
    /// those of all its keeper's acquisitions.
    #[cfg(feature = "simulation")]
    fn replaceable(&self, cx: &mut Context<'_>, owner: OwnerId) -> Vec<OwnerId> {
        if self.settings.rules.broken(crate::protocol::Mutant::UnknownAttemptsPerKeeper) {
            let shared = cx.observations.shared_attempts(&self.subject);
            let all = shared.clone();
            shared.push(owner);
            return all;
        }
        self.unknown.clone()
    }
}
