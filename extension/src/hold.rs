//! The hold on Next: when the extension may say that it is done with an invocation, as a pure state machine.
//!
//! The environment may freeze as soon as the runtime and every extension have called Next. So Next is not called while
//! a session of this invocation is open, nor before what it left behind is back in DynamoDB; but never so late that
//! the function would time out on the extension's account.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use leasehold::clock::{Mono, Now, Wall};
use leasehold::keeper::SessionId;

#[cfg(test)]
mod tests;

/// How long an invocation of a function with a layer is given to open its session.
const SESSION_GRACE: Duration = Duration::from_millis(50);
/// The longest cleanup.
const CLEANUP: Duration = Duration::from_millis(1_200);
/// A cleanup that began before the deadline ends this long before it.
const DEADLINE_MARGIN: Duration = Duration::from_millis(100);
/// How long after the deadline Next is called whatever is open: a forked child can keep a descriptor.
const OVERTIME: Duration = Duration::from_millis(1_500);
/// How many sessions without their invocation are remembered.
const REMEMBERED: usize = 32;
/// Deadlines before 2020 come from local emulators, which know none.
const FIRST_CREDIBLE: Wall = Wall::from_millis(1_577_836_800_000);

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this moment, or before something happens.
    Wait {
        /// When to look again; `None` where only an event ends the wait.
        until: Option<Mono>,
    },
    /// The writes in flight are to be awaited and then reported with [`Hold::handle_settled`]; the connections of
    /// those that are not answered by then are to be closed, for a frozen socket would deliver them minutes later.
    Settle {
        /// The bound; it may have passed already.
        until: Mono,
    },
    /// Next is to be called.
    Next,
}

/// Decides when Next is called.
///
/// Feed it every event by `handle_*` as it happens. Whenever Next is to be called, ask [`poll`](Self::poll) until it
/// says so: after each event and at the wake-up that it named. A needless or late question does no harm.
#[derive(Debug, Default)]
pub struct Hold {
    /// Whether this function is known to have a layer.
    layer_seen: bool,
    /// The open sessions and the request ids that they named.
    open: HashMap<SessionId, String>,
    /// The request ids of sessions that closed before their invocation came, oldest first.
    remembered: VecDeque<String>,
    /// The one that Next is held for; none before the first, and while Next is out.
    invocation: Option<Invocation>,
    /// The last thing before every Next.
    cleanup: Option<Cleanup>,
    /// Whether an invocation was waited for in vain since this was last asked.
    in_vain: bool,
}

/// The invocation that Next is held for.
#[derive(Debug)]
struct Invocation {
    request_id: String,
    came: Mono,
    deadline: Option<Mono>,
    /// Whether it ever had a session.
    had_session: bool,
    /// The shortest lease that was asked for in it.
    shortest_lease: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Cleanup {
    until: Mono,
    settled: bool,
}

impl Hold {
    /// A layer was built into the function's service.
    pub fn handle_hello(&mut self) {
        self.layer_seen = true;
    }

    /// An invocation was announced; `deadline_ms` in milliseconds since the Unix epoch, 0 where it is unknown.
    pub fn handle_invoke(&mut self, now: Now, request_id: String, deadline_ms: u64) {
        // Invocations come one at a time, so what another one's sessions left behind was too late for it.
        let remembered = std::mem::take(&mut self.remembered).contains(&request_id);
        let had_session = remembered || self.open.values().any(|id| *id == request_id);
        self.invocation = Some(Invocation {
            request_id,
            came: now.mono,
            deadline: credible_deadline(now, deadline_ms),
            had_session,
            shortest_lease: None,
        });
        self.cleanup = None;
    }

    /// A session was opened for the invocation of this request id.
    pub fn handle_began(&mut self, session: SessionId, request_id: &str) {
        self.layer_seen = true;
        self.open.insert(session, request_id.to_owned());
        if let Some(invocation) = self.invocation_of(request_id) {
            invocation.had_session = true;
            // What it is about to write comes after whatever was awaited so far.
            self.cleanup = None;
        }
    }

    /// A lease of this length was asked for in a session.
    pub fn handle_lease(&mut self, session: SessionId, lease: Duration) {
        let Some(request_id) = self.open.get(&session).cloned() else { return };
        if let Some(invocation) = self.invocation_of(&request_id) {
            invocation.shortest_lease = Some(invocation.shortest_lease.map_or(lease, |shortest| shortest.min(lease)));
        }
    }

    /// A session closed.
    pub fn handle_ended(&mut self, session: SessionId) {
        let Some(request_id) = self.open.remove(&session) else { return };
        if self.invocation_of(&request_id).is_some() {
            return;
        }
        if self.remembered.len() == REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(request_id);
    }

    /// The writes in flight were awaited, or the bound was reached and their connections closed.
    pub fn handle_settled(&mut self) {
        if let Some(cleanup) = &mut self.cleanup {
            cleanup.settled = true;
        }
    }

    /// What is to be done now. Once it answers [`Step::Next`], the invocation is over for the extension.
    pub fn poll(&mut self, now: Mono) -> Step {
        if let Some(until) = self.reason_to_wait(now) {
            return Step::Wait { until };
        }
        let until = self.cleanup_bound(now);
        let cleanup = self.cleanup.get_or_insert(Cleanup { until, settled: false });
        if !cleanup.settled {
            return Step::Settle { until: cleanup.until };
        }
        self.let_go();
        Step::Next
    }

    /// Whether the environment can't freeze before this session is over, because Next is held for it.
    #[must_use]
    pub fn is_held_for(&self, session: SessionId) -> bool {
        let held = self.invocation.as_ref().map(|invocation| &invocation.request_id);
        held.is_some() && held == self.open.get(&session)
    }

    /// Whether the environment was held for a session that did not come, since this was last asked.
    pub fn take_in_vain(&mut self) -> bool {
        std::mem::take(&mut self.in_vain)
    }

    fn invocation_of(&mut self, request_id: &str) -> Option<&mut Invocation> {
        self.invocation.as_mut().filter(|invocation| invocation.request_id == request_id)
    }

    /// Until when a session of the invocation is waited for, if one is.
    fn reason_to_wait(&self, now: Mono) -> Option<Option<Mono>> {
        let invocation = self.invocation.as_ref()?;
        let bound = invocation.bound();
        if bound.is_some_and(|bound| now >= bound) {
            return None;
        }
        if self.open.values().any(|id| *id == invocation.request_id) {
            return Some(bound);
        }
        let grace = invocation.came + SESSION_GRACE;
        let may_come = self.layer_seen && !invocation.had_session && now < grace;
        may_come.then(|| Some(bound.map_or(grace, |bound| bound.min(grace))))
    }

    /// When a cleanup that begins now has to end.
    fn cleanup_bound(&self, now: Mono) -> Mono {
        let Some(invocation) = &self.invocation else { return now + CLEANUP };
        let length = invocation.shortest_lease.map_or(CLEANUP, |lease| lease.mul_f64(0.6).min(CLEANUP));
        let mut until = now + length;
        if let Some(deadline) = invocation.deadline.filter(|deadline| now < *deadline) {
            until = until.min(deadline - DEADLINE_MARGIN);
        }
        invocation.bound().map_or(until, |bound| until.min(bound))
    }

    /// Ends the invocation. A session that is still open was given up with it: it must not hold the retry, which comes
    /// under the same request id.
    fn let_go(&mut self) {
        self.cleanup = None;
        if let Some(invocation) = self.invocation.take() {
            self.in_vain |= self.layer_seen && !invocation.had_session;
            self.open.retain(|_, id| *id != invocation.request_id);
        }
    }
}

impl Invocation {
    /// When Next is called whatever is open.
    fn bound(&self) -> Option<Mono> {
        self.deadline.map(|deadline| deadline + OVERTIME)
    }
}

/// The deadline on the monotonic clock, if there is one to be believed.
fn credible_deadline(now: Now, deadline_ms: u64) -> Option<Mono> {
    let deadline = Wall::from_millis(deadline_ms);
    (deadline >= FIRST_CREDIBLE).then(|| now.mono + deadline.since(now.wall) - now.wall.since(deadline))
}
