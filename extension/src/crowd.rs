//! How many connections are served at once, and which are closed when there are more: descriptors are few, and a session
//! must find one, whoever else connects and says nothing.
//!
//! A connection takes two descriptors, its own and one that watches its process. Some are kept for DynamoDB, the
//! Extensions API and the journal. Where the rest is used up, a connection that is no session is closed for the next
//! one: first those that have not said what they are for, the oldest first, then idle ones. Where all are sessions, the
//! next one waits to be accepted until one ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use leasehold::keeper::Opening;
use rustix::process::{Resource, getrlimit};
use tokio::task::{AbortHandle, Id};
use tokio::time::Instant;

use crate::backoff::Backoff;

/// A connection's own, and its process's.
const EACH: u64 = 2;
/// Kept for everything else: DynamoDB has some 96 connections at most, the keeper's lanes see to that.
const RESERVED: u64 = 128;

/// How long a connection has at least to say what it is for: its first line may be there and not be read yet.
const TURN: Duration = Duration::from_millis(50);

/// How many connections may be open: read again each time, for the limit can be changed while the process runs.
pub(crate) fn room() -> usize {
    // No limit at all is none to keep to.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = limit.saturating_sub(RESERVED.min(limit / 2)) / EACH;
    usize::try_from(room).unwrap_or(usize::MAX).max(1)
}

/// What a connection is for, told by whoever serves it.
#[derive(Clone, Debug, Default)]
pub struct Told(Arc<AtomicU8>);

const SILENT: u8 = 0;
const IDLE: u8 = 1;
const SESSION: u8 = 2;

impl Told {
    /// The connection's first line came.
    pub fn opened(&self, opening: Opening) {
        let standing = match opening {
            Opening::Hello | Opening::Check => IDLE,
            Opening::Session => SESSION,
        };
        self.0.store(standing, Ordering::Relaxed);
    }

    fn standing(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The open connections, oldest first.
#[derive(Debug)]
pub(crate) struct Crowd {
    open: Vec<Member>,
    /// Counts what was closed, for the log.
    closed: Backoff,
    /// Counts how often nothing could be, for the log.
    full: Backoff,
}

#[derive(Debug)]
struct Member {
    task: AbortHandle,
    told: Told,
    since: Instant,
}

impl Crowd {
    pub(crate) const fn new() -> Self {
        let counts = Backoff::new(Duration::ZERO, Duration::ZERO);
        Self { open: Vec::new(), closed: counts, full: counts }
    }

    /// A connection was accepted and is served by this task.
    pub(crate) fn joined(&mut self, task: AbortHandle, told: Told) {
        self.open.push(Member { task, told, since: Instant::now() });
    }

    /// A task ended.
    pub(crate) fn left(&mut self, task: Id) {
        self.open.retain(|member| member.task.id() != task);
    }

    /// Whether there is no room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= room()
    }

    /// From when on a connection can be closed for another; `None` where all are sessions.
    pub(crate) fn dispensable_from(&self) -> Option<Instant> {
        let dispensable = self.open.iter().filter(|member| member.told.standing() != SESSION);
        dispensable.map(|member| member.since + TURN).min()
    }

    /// Closes the connection that can best be done without, of those that had their turn to say what they are for. Its
    /// descriptors are free once its task has ended.
    pub(crate) fn close_one(&mut self) {
        let now = Instant::now();
        let had_their_turn = self.open.iter().enumerate().filter(|(_, member)| member.since + TURN <= now);
        // The first of the smallest is the oldest of the most dispensable.
        let most_dispensable = had_their_turn.map(|(at, member)| (member.told.standing(), at)).min();
        if let Some((SILENT | IDLE, at)) = most_dispensable {
            self.open.remove(at).task.abort();
            self.closed.failed();
            if self.closed.is_worth_a_line() {
                tracing::warn!("descriptors run short: a connection that is no session is closed for the next one");
            }
        }
    }

    /// Notes that who connects next waits until somebody leaves.
    pub(crate) fn note_full(&mut self) {
        self.full.failed();
        if self.full.is_worth_a_line() {
            tracing::warn!(
                open = self.open.len(),
                "descriptors run short: who connects next waits until a session ends"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;
    use tokio::time::advance;

    use super::*;

    /// Opens these connections, one a millisecond, and closes one after the other, this long after the first, until none
    /// can be; in which order.
    async fn order(openings: &[Option<Opening>], after: Duration) -> Vec<usize> {
        let start = Instant::now();
        let (mut crowd, mut tasks, mut ids) = (Crowd::new(), JoinSet::new(), Vec::new());
        for opening in openings {
            let task = tasks.spawn(std::future::pending::<()>());
            let told = Told::default();
            if let Some(opening) = opening {
                told.opened(*opening);
            }
            ids.push(task.id());
            crowd.joined(task, told);
            advance(Duration::from_millis(1)).await;
        }
        advance(after - start.elapsed()).await;
        let mut closed = Vec::new();
        loop {
            let before = crowd.open.len();
            crowd.close_one();
            if crowd.open.len() == before {
                return closed;
            }
            let ended = tasks.join_next().await.unwrap().unwrap_err();
            assert!(ended.is_cancelled());
            closed.push(ids.iter().position(|id| *id == ended.id()).unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_silent_go_first_then_the_idle_the_oldest_first_and_no_session_ever() {
        use Opening::{Check, Hello, Session};
        let openings = [Some(Check), None, Some(Session), Some(Hello), None, Some(Session)];
        assert_eq!(order(&openings, Duration::from_secs(1)).await, [1, 4, 0, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_just_came_may_still_say_what_it_is_for() {
        assert_eq!(order(&[None, None, None], TURN + Duration::from_millis(1)).await, [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_left_is_not_closed_and_is_not_waited_for() {
        let (mut crowd, mut tasks) = (Crowd::new(), JoinSet::new());
        let task = tasks.spawn(async {});
        let id = task.id();
        crowd.joined(task, Told::default());
        assert_eq!(crowd.dispensable_from(), Some(Instant::now() + TURN));
        crowd.left(id);
        assert_eq!(crowd.dispensable_from(), None);
    }
}
