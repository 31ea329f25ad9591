//! Where a keeper lives, and what that place must know of it.

use std::fmt;
use std::time::Duration;

use crate::protocol::OwnerId;
use crate::store::Lock;

/// One connection that began a session, for as long as the keeper lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// The process at the other end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its process id as this process sees it; 0 where that can't be known.
    pub pid: u32,
}

/// What the keeper tells the place that it lives in: the extension holds Next and keeps its journal by it; a thread
/// of the handler's own process needs none of it.
///
/// The calls come from the sessions' tasks, in order for one session, and must return at once.
pub trait Home: fmt::Debug + Send + Sync + 'static {
    /// A layer says that it exists.
    fn hello(&self) {}

    /// A session was opened for this invocation.
    fn session_began(&self, session: SessionId, request_id: &str) {
        let _ = (session, request_id);
    }

    /// The session's connection is closed or said `end`: the handler's side of it is over. Its leases may still be on
    /// their way back.
    fn session_ended(&self, session: SessionId, request_id: &str) {
        let _ = (session, request_id);
    }

    /// Whether the environment cannot freeze under this session: `released` may then be told before the row is written.
    fn may_answer_before_write(&self, session: SessionId) -> bool;

    /// An attempt is about to be written; returns when the note of it is safe. `keep_on_crash` says that a crash must
    /// not free it.
    fn attempt(&self, peer: Peer, lock: &Lock, owner: OwnerId, keep_on_crash: bool) {
        let _ = (peer, lock, owner, keep_on_crash);
    }

    /// A lease of this length was asked for in a session.
    fn lease_asked(&self, session: SessionId, lease: Duration) {
        let _ = (session, lease);
    }

    /// The layer's process lost these leases with an earlier keeper and believes in them no longer.
    fn no_longer_believed(&self, owners: &[OwnerId]) {
        let _ = owners;
    }

    /// The attempt was refused, released or lost: it needs no note any more.
    fn settled(&self, owner: OwnerId) {
        let _ = owner;
    }
}

/// A place in which nothing freezes and nothing is noted.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainHome;

impl Home for PlainHome {
    fn may_answer_before_write(&self, _session: SessionId) -> bool {
        true
    }
}
