//! A keeper with everything around it in a test's hands, and a client that speaks lines.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::memory_store::MemoryStore;
use crate::clock::{Clock, Mono, Now, Wall};
use crate::keeper::standing::Standings;
use crate::keeper::{Home, Keeper, KeeperOptions, Peer, SessionId};
use crate::protocol::{HolderInfo, OwnerId};
use crate::session::{
    Acquire, FailKind, FromKeeper, LineReader, OnCrash, PollingMs, ReleaseReason, Table, ToKeeper, VersionRange, encode,
};
use crate::store::Lock;

pub(super) const START_MS: u64 = 1_800_000_000_000;
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Wall and monotonic time as tokio's paused clock has them; clones share a shift of the wall clock.
#[derive(Clone, Debug)]
pub(super) struct TestClock {
    origin: Instant,
    frozen: Arc<Mutex<Duration>>,
}

impl TestClock {
    pub(super) fn new() -> Self {
        Self { origin: Instant::now(), frozen: Arc::default() }
    }

    /// The environment was frozen for this long: only the wall clock went on.
    pub(super) fn freeze(&self, by: Duration) {
        *self.frozen.lock().unwrap() += by;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Now {
        let since = self.origin.elapsed();
        let frozen = *self.frozen.lock().unwrap();
        Now { mono: Mono::from_origin(SECOND + since), wall: Wall::from_millis(START_MS) + since + frozen }
    }
}

/// What the keeper told its home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Hello,
    Began(SessionId, String),
    Ended(SessionId, String),
    Attempt { pid: u32, key: String, owner: OwnerId, keep_on_crash: bool },
    Settled(OwnerId),
}

#[derive(Debug, Default)]
pub(super) struct RecordingHome {
    pub(super) answers_before_write: AtomicBool,
    told: Mutex<Vec<Told>>,
}

impl RecordingHome {
    pub(super) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// The attempts that were noted and are not settled.
    pub(super) fn unsettled(&self) -> Vec<OwnerId> {
        let mut open = Vec::new();
        for told in self.told() {
            match told {
                Told::Attempt { owner, .. } => open.push(owner),
                Told::Settled(owner) => open.retain(|noted| *noted != owner),
                _ => {}
            }
        }
        open
    }

    fn tell(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Home for RecordingHome {
    fn hello(&self) {
        self.tell(Told::Hello);
    }

    fn session_began(&self, session: SessionId, request_id: &str) {
        self.tell(Told::Began(session, request_id.to_owned()));
    }

    fn session_ended(&self, session: SessionId, request_id: &str) {
        self.tell(Told::Ended(session, request_id.to_owned()));
    }

    fn may_answer_before_write(&self, _session: SessionId) -> bool {
        self.answers_before_write.load(Ordering::Relaxed)
    }

    fn attempt(&self, peer: Peer, lock: &Lock, owner: OwnerId, keep_on_crash: bool) {
        self.tell(Told::Attempt { pid: peer.pid, key: lock.key.clone(), owner, keep_on_crash });
    }

    fn settled(&self, owner: OwnerId) {
        self.tell(Told::Settled(owner));
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: TestClock,
    pub(super) store: MemoryStore,
    pub(super) home: Arc<RecordingHome>,
    pub(super) keeper: Keeper,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(KeeperOptions::default())
    }

    pub(super) fn with(options: KeeperOptions) -> Self {
        let clock = TestClock::new();
        let store = MemoryStore::new(clock.clone());
        let home = Arc::new(RecordingHome::default());
        let keeper = Keeper::new(store.clone(), Arc::new(clock.clone()), home.clone(), options);
        Self { clock, store, home, keeper }
    }

    /// One whose keeper serves these session versions.
    pub(super) fn speaking(versions: VersionRange) -> Self {
        let world = Self::new();
        let (store, clock) = (Box::new(world.store.clone()), Arc::new(world.clock.clone()));
        let standings = Arc::new(Standings::new(clock.clone()));
        let options = KeeperOptions::default();
        let keeper = Keeper::with_standings(store, clock, world.home.clone(), options, standings, versions);
        Self { keeper, ..world }
    }

    /// Another keeper, as another environment has one, over the same rows.
    pub(super) fn elsewhere(&self) -> Self {
        let home = Arc::new(RecordingHome::default());
        let options = KeeperOptions::default();
        let keeper = Keeper::new(self.store.clone(), Arc::new(self.clock.clone()), home.clone(), options);
        Self { clock: self.clock.clone(), store: self.store.clone(), home, keeper }
    }

    /// How long this world has been there, by its clock.
    pub(super) fn clock_since_start(&self) -> Duration {
        self.clock.now().wall.since(Wall::from_millis(START_MS))
    }

    pub(super) fn connect(&self) -> Client {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let keeper = self.keeper.clone();
        let served = tokio::spawn(async move { keeper.serve(theirs, Peer { pid: 77 }).await });
        let (reader, writer) = ours.into_split();
        Client { reader: LineReader::new(reader), writer, served }
    }

    /// A session without a deadline.
    pub(super) async fn begin(&self) -> Client {
        self.begin_until(None).await
    }

    pub(super) async fn begin_until(&self, deadline: Option<Duration>) -> Client {
        let mut client = self.connect();
        let deadline_ms = deadline.map(|left| self.clock.now().wall.as_millis() + left.as_millis() as u64);
        let begin =
            ToKeeper::Begin { versions: VersionRange::SPOKEN, request_id: "r-1".to_owned(), deadline_ms, lost: vec![] };
        client.send(&begin).await;
        assert_eq!(client.receive().await, FromKeeper::Began { version: 1 });
        client
    }

    /// Wall time, in milliseconds since the Unix epoch.
    pub(super) fn clock_ms(&self) -> u64 {
        self.clock.now().wall.as_millis()
    }

    /// Waits until no lease's task is left.
    pub(super) async fn all_ended(&self) {
        timeout(300 * SECOND, self.keeper.inner.tasks.all_ended()).await.expect("the leases' tasks end");
        assert_eq!(self.keeper.writes_in_flight(), 0);
        assert_eq!(self.keeper.held(), 0);
        let counts = self.keeper.counts();
        let ends = counts.granted + counts.grants_undone + counts.attempts_refused + counts.attempts_unknown;
        assert_eq!(counts.attempts, ends, "each attempt ends in one way: {counts:?}");
        let ends = counts.given_back + counts.lost + counts.crash_releases + counts.abandoned + counts.expired;
        assert_eq!(counts.granted, ends, "each lease ends in one way: {counts:?}");
        for (template, tally) in self.keeper.inner.shared.tallies.all() {
            assert_eq!(tally.look(0).still_held, 0, "a lease of {template} is counted as held for ever");
        }
    }
}

#[derive(Debug)]
pub(super) struct Client {
    reader: LineReader<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
    pub(super) served: JoinHandle<()>,
}

/// A grant, as the line tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) owner: OwnerId,
    pub(super) token: u64,
    pub(super) valid_for_ms: u64,
    pub(super) waited_ms: u64,
    pub(super) attempts: u32,
    pub(super) queued_ms: u64,
}

impl Client {
    pub(super) async fn send(&mut self, line: &ToKeeper) {
        self.send_bytes(&encode(line).unwrap()).await;
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }

    pub(super) async fn receive(&mut self) -> FromKeeper {
        self.next().await.expect("a line, not the end")
    }

    /// The next line, or the end.
    pub(super) async fn next(&mut self) -> Option<FromKeeper> {
        timeout(3600 * SECOND, self.reader.next()).await.expect("something comes").unwrap()
    }

    /// The next line as it was said, or the end.
    pub(super) async fn next_json(&mut self) -> Option<serde_json::Value> {
        timeout(3600 * SECOND, self.reader.next()).await.expect("something comes").unwrap()
    }

    /// Nothing comes for this long.
    pub(super) async fn hears_nothing(&mut self, during: Duration) {
        let line = timeout(during, self.reader.next::<FromKeeper>()).await;
        assert!(line.is_err(), "{line:?}");
    }

    /// For this long, nothing worse comes than that a lease is at risk, and secured again.
    pub(super) async fn loses_nothing(&mut self, during: Duration) {
        let losing = async {
            loop {
                match self.receive().await {
                    FromKeeper::AtRisk { .. } | FromKeeper::Secured { .. } => {}
                    line => return line,
                }
            }
        };
        let line = timeout(during, losing).await;
        assert!(line.is_err(), "{line:?}");
    }

    pub(super) async fn acquire(&mut self, acquire: Acquire) {
        self.send(&ToKeeper::Acquire(Box::new(acquire))).await;
    }

    pub(super) async fn release(&mut self, id: u64, reason: ReleaseReason, wait: bool) {
        self.send(&ToKeeper::Release { id, reason, wait, hold_at_least_ms: None }).await;
    }

    /// The work is done, and the key is to stay held.
    pub(super) async fn park(&mut self, id: u64, reason: ReleaseReason, minimum: Duration) {
        let hold_at_least_ms = Some(minimum.as_millis() as u64);
        self.send(&ToKeeper::Release { id, reason, wait: true, hold_at_least_ms }).await;
    }

    /// Takes `id` back, whatever has become of it, and hears so as the last thing about it.
    pub(super) async fn cancel(&mut self, id: u64) {
        self.release(id, ReleaseReason::Cancelled, true).await;
        loop {
            match self.receive().await {
                FromKeeper::Released { id: told } if told == id => break,
                FromKeeper::Granted { id: told, .. } if told == id => {}
                line => panic!("{line:?}"),
            }
        }
    }

    /// Acquires `key` as `id` and is granted it.
    pub(super) async fn take(&mut self, id: u64, key: &str) -> Grant {
        self.acquire(acquire(id, key)).await;
        self.granted(id).await
    }

    pub(super) async fn granted(&mut self, id: u64) -> Grant {
        match self.receive().await {
            FromKeeper::Granted { id: told, owner, token, valid_for_ms, waited_ms, attempts, queued_ms }
                if told == id =>
            {
                Grant { owner, token: token.unwrap().get(), valid_for_ms, waited_ms, attempts, queued_ms }
            }
            line => panic!("no grant of {id}: {line:?}"),
        }
    }

    pub(super) async fn failed(&mut self, id: u64) -> (FailKind, String) {
        match self.receive().await {
            FromKeeper::Failed { id: told, kind, message } if told == id => (kind, message),
            line => panic!("no failure of {id}: {line:?}"),
        }
    }

    /// Takes no more part: its end of the connection is closed. Returns when the keeper has taken note.
    pub(super) async fn vanish(self) {
        let Self { reader, writer, served } = self;
        drop((reader, writer));
        served.await.unwrap();
    }
}

pub(super) fn acquire(id: u64, key: &str) -> Acquire {
    Acquire {
        id,
        key: key.to_owned(),
        table: Table::new("locks"),
        lease_ms: 30_000,
        wait_ms: 2_000,
        answer_within_ms: None,
        polling: Some(PollingMs::default()),
        on_crash: OnCrash::Release,
        server_time: true,
        max_hold_ms: 900_000,
        max_silence_ms: None,
        state_retention_ms: None,
        attributes: Default::default(),
        holder: HolderInfo { function: "orders".to_owned(), request_id: format!("r-{id}"), ..HolderInfo::default() },
    }
}
