//! A keeper over an in-memory store, and bytes that stand for what up to four peers do: what they send, when they hang up,
//! when they read, and how DynamoDB fares meanwhile.
//!
//! All bytes but 255 are sent as they are, on the current connection. 255 and the byte behind it are a deed; see
//! [`Deed`]. Time is paused, so that waiting costs nothing and a run is the same each time.
//!
//! Whatever came in: nothing panics, what is said is made of the session's lines, and once all peers are gone no session
//! is open, no write is owed, no task is left, and no row is held but those that a crash is to leave and those that are
//! parked, under an owner that was granted to nobody.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::{Clock, Mono, Now, Wall};
use leasehold::keeper::{Home, Keeper, KeeperOptions, Peer, SessionId};
use leasehold::protocol::{
    Answer, Failure, FailureKind, HeldRow, Hints, HolderInfo, Outcome, OwnerId, Request, Row, Version,
};
use leasehold::session::{FromKeeper, LineReader, MAX_LINE};
use leasehold::store::{Lock, StateAnswer, StateItem, StateOutcome, StateRequest, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
/// What no lease outlives whose session is over: its renewals and releases are given up within it.
const LONG: Duration = Duration::from_secs(200_000);

/// What a byte after 255 asks for; its argument is the byte behind it.
pub mod deed {
    /// 255 itself is sent; no argument.
    pub const LITERAL: u8 = 0;
    /// The connection of this number, of four, is the current one, and is opened if it is not.
    pub const TURN_TO: u8 = 1;
    /// Time passes: so many tenths of a second.
    pub const WAIT: u8 = 2;
    /// The current connection is closed; no argument.
    pub const HANG_UP: u8 = 3;
    /// What came on the current connection is read; no argument.
    pub const READ: u8 = 4;
    /// From here on DynamoDB answers at once, throttles who wants a lease, or answers after a second.
    pub const STORE: u8 = 5;
}

/// Runs one input.
///
/// # Panics
///
/// When something is not as the first lines of this file say.
pub fn run(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(play(bytes));
}

async fn play(bytes: &[u8]) {
    let mut stage = Stage::new();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == 255) {
        stage.send(&rest[..at]).await;
        let argument = rest.get(at + 2).copied().unwrap_or_default();
        let length = match rest.get(at + 1).map(|deed| deed % 6) {
            None => 1,
            Some(deed::LITERAL) => {
                stage.send(&[255]).await;
                2
            }
            Some(deed::TURN_TO) => {
                stage.current = usize::from(argument % 4);
                3
            }
            Some(deed::WAIT) => {
                sleep(Duration::from_millis(100) * u32::from(argument)).await;
                3
            }
            Some(deed::HANG_UP) => {
                stage.hang_up().await;
                2
            }
            Some(deed::READ) => {
                stage.read().await;
                2
            }
            Some(_) => {
                stage.world.store.set(argument % 3);
                3
            }
        };
        rest = rest.get(at + length..).unwrap_or_default();
    }
    stage.send(rest).await;
    stage.end().await;
}

struct Stage {
    keeper: Keeper,
    world: Arc<World>,
    connections: [Option<Connection>; 4],
    current: usize,
    owners: HashSet<OwnerId>,
}

struct Connection {
    stream: UnixStream,
    served: JoinHandle<()>,
    said: Vec<u8>,
}

impl Stage {
    fn new() -> Self {
        let world = Arc::new(World { store: InMemory::default(), ..World::default() });
        let clock = Arc::new(PausedClock(Instant::now()));
        let keeper = Keeper::new(Shared(world.clone()), clock, world.clone(), KeeperOptions::default());
        Self { keeper, world, connections: [const { None }; 4], current: 0, owners: HashSet::new() }
    }

    fn connection(&mut self) -> &mut Connection {
        let keeper = &self.keeper;
        self.connections[self.current].get_or_insert_with(|| {
            let (stream, theirs) = UnixStream::pair().unwrap();
            let keeper = keeper.clone();
            let served = tokio::spawn(async move { keeper.serve(theirs, Peer { pid: 0 }).await });
            Connection { stream, served, said: Vec::new() }
        })
    }

    async fn send(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            // One that is closed, or that waits for who does not read, takes no more.
            let _ = timeout(SECOND, self.connection().stream.write_all(bytes)).await;
        }
    }

    async fn read(&mut self) {
        let connection = self.connection();
        let mut chunk = [0; 4096];
        while let Ok(Ok(read @ 1..)) = timeout(Duration::from_millis(10), connection.stream.read(&mut chunk)).await {
            connection.said.extend_from_slice(&chunk[..read]);
        }
    }

    async fn hang_up(&mut self) {
        self.read().await;
        let Some(Connection { stream, served, said }) = self.connections[self.current].take() else { return };
        drop(stream);
        timeout(LONG, served).await.expect("its task ends").expect("nothing panics");
        check_lines(&said, &mut self.owners).await;
    }

    async fn end(mut self) {
        for at in 0..self.connections.len() {
            self.current = at;
            if self.connections[at].is_some() {
                self.hang_up().await;
            }
        }
        assert_eq!(self.world.open.load(Ordering::Relaxed), 0, "sessions are open");
        // Everything that is held goes back by itself.
        let patience = Instant::now() + LONG;
        while self.keeper.held() + self.keeper.writes_in_flight() > 0 && Instant::now() < patience {
            sleep(SECOND).await;
        }
        assert_eq!((self.keeper.held(), self.keeper.writes_in_flight()), (0, 0));
        let drained = self.keeper.drain(60 * SECOND).await;
        let (parked, released) = (drained.parked, drained.released);
        assert_eq!((parked, released, drained.failed, drained.kept, drained.left), (0, 0, 0, 0, 0), "left for the end");
        let kept = self.world.kept.lock().unwrap();
        for (key, row) in &*self.world.store.rows.lock().unwrap() {
            let Row::Held(held) = row else { continue };
            let parked = held.holder.as_ref().is_some_and(|holder| holder.parked);
            assert!(kept.contains(&held.owner) || parked, "{key} is held: {row:?}");
            assert!(!parked || !self.owners.contains(&held.owner), "{key} is parked under its holder: {row:?}");
        }
    }
}

/// All that was said to one peer.
async fn check_lines(said: &[u8], owners: &mut HashSet<OwnerId>) {
    assert!(said.split(|byte| *byte == b'\n').all(|line| line.len() <= MAX_LINE));
    let (mut lines, mut at, mut over) = (LineReader::new(said), 0, false);
    // A peer that did not read may find the last line cut.
    while let Ok(Some(line)) = lines.next::<FromKeeper>().await.map_err(|error| {
        assert!(!error.to_string().contains("not a message"), "{error} in {}", said.escape_ascii());
    }) {
        assert!(!over, "{line:?} came after an error");
        match &line {
            FromKeeper::Error { .. } => over = true,
            FromKeeper::Began { .. } => assert_eq!(at, 0),
            FromKeeper::Granted { owner, .. } => assert!(owners.insert(*owner), "{owner} was granted twice"),
            FromKeeper::Checked(_) => {}
            _ => assert_ne!(at, 0, "{line:?} came first"),
        }
        at += 1;
    }
}

/// What the keeper lives in, and what it told.
#[derive(Debug, Default)]
struct World {
    store: InMemory,
    open: AtomicUsize,
    /// The owners whose rows a crash is to leave.
    kept: Mutex<HashSet<OwnerId>>,
}

impl Home for World {
    fn session_began(&self, _: SessionId, _: &str) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    fn session_ended(&self, _: SessionId, _: &str) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    fn may_answer_before_write(&self, session: SessionId) -> bool {
        session.0.is_multiple_of(2)
    }

    fn attempt(&self, _: Peer, _: &Lock, owner: OwnerId, keep_on_crash: bool) {
        if keep_on_crash {
            self.kept.lock().unwrap().insert(owner);
        }
    }
}

/// Both clocks, from tokio's.
#[derive(Debug)]
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Now {
        let since = self.0.elapsed();
        Now { mono: Mono::from_origin(SECOND + since), wall: Wall::from_millis(1_800_000_000_000) + since }
    }
}

#[derive(Debug, Default)]
struct InMemory {
    rows: Mutex<HashMap<String, Row>>,
    mood: AtomicU8,
}

impl InMemory {
    fn set(&self, mood: u8) {
        self.mood.store(mood, Ordering::Relaxed);
    }

    fn apply(&self, lock: &Lock, request: Request) -> Outcome {
        let mut rows = self.rows.lock().unwrap();
        let place = format!("{:?} {}", lock.table, lock.key);
        let row = rows.get(&place).cloned().unwrap_or(Row::Absent);
        let held = |owner, version, lease| {
            Row::Held(HeldRow { owner, version, lease, expires_at: None, holder: None, hints: Hints::default() })
        };
        let new = match (request, &row) {
            (Request::Read, _) => return Outcome::Read { row },
            (Request::Ticket, Row::Held(_)) => return Outcome::Numbered { row },
            (Request::Acquire { owner, version, at, lease, .. }, Row::Absent) => {
                held(owner, version.unwrap_or(Version::Counter(at.as_millis() + 1)), lease)
            }
            (Request::Acquire { owner, lease, .. }, Row::Free { version, .. }) => {
                held(owner, Version::Counter(version + 1), lease)
            }
            (Request::Acquire { owner, version, lease, unknown, .. }, Row::Held(now))
                if unknown.contains(&now.owner) =>
            {
                held(owner, version.unwrap_or(after(now.version)), lease)
            }
            (Request::TakeOver { owner, version, lease, seen_owner, seen_version, .. }, Row::Held(now))
                if (now.owner, now.version) == (seen_owner, seen_version) =>
            {
                held(owner, version.unwrap_or(after(seen_version)), lease)
            }
            (Request::Renew { owner, version, new_version, .. }, Row::Held(now))
                if (now.owner, now.version) == (owner, version) =>
            {
                held(owner, new_version, now.lease)
            }
            (Request::Park { owner, version, parked, new_version, lease, .. }, Row::Held(now))
                if (now.owner, now.version) == (owner, version) =>
            {
                let holder = Some(Box::new(HolderInfo { parked: true, ..lock.holder.clone() }));
                Row::Held(HeldRow {
                    owner: parked,
                    version: new_version,
                    lease,
                    expires_at: None,
                    holder,
                    hints: Hints::default(),
                })
            }
            (Request::Release { owners, .. }, Row::Held(now)) if owners.contains(&now.owner) => {
                now.version.counter().map_or(Row::Absent, |version| Row::Free { version, hints: Hints::default() })
            }
            _ => return Outcome::Refused { row },
        };
        let version = if let Row::Held(now) = &new { now.version } else { Version::Counter(0) };
        rows.insert(place, new);
        Outcome::written(version)
    }
}

impl InMemory {
    /// Nothing is kept of a state, but for who may write it and the row that goes with it.
    fn apply_state(&self, lock: &Lock, request: &StateRequest) -> StateOutcome {
        let StateRequest::Write(write) = request else { return StateOutcome::Read(StateItem::Absent) };
        let mut rows = self.rows.lock().unwrap();
        let row = rows.entry(format!("{:?} {}", lock.table, lock.key)).or_insert(Row::Absent);
        match row {
            Row::Held(held) if held.owner == write.owner => {
                if write.release.is_some() {
                    *row = held
                        .version
                        .counter()
                        .map_or(Row::Absent, |version| Row::Free { version, hints: Hints::default() });
                }
                StateOutcome::Written
            }
            _ => StateOutcome::NotHeld(row.clone()),
        }
    }
}

fn after(version: Version) -> Version {
    version.counter().map_or(version, |counter| Version::Counter(counter + 1))
}

#[derive(Debug)]
struct Shared(Arc<World>);

impl Store for Shared {
    async fn send(&self, lock: &Lock, request: Request, limit: Duration) -> Answer {
        let store = &self.0.store;
        let wants = matches!(request, Request::Acquire { .. } | Request::TakeOver { .. } | Request::Read);
        let mood = store.mood.load(Ordering::Relaxed);
        if mood == 1 && wants {
            return Answer::new(Outcome::Failed(Failure::new(FailureKind::Throttled, "throttled")), None);
        }
        let takes = if mood == 2 { SECOND } else { Duration::from_millis(2) };
        let outcome = timeout(limit, async {
            let outcome = store.apply(lock, request);
            sleep(takes).await;
            outcome
        });
        let outcome = outcome.await.unwrap_or_else(|_| Outcome::Failed(Failure::new(FailureKind::Timeout, "late")));
        Answer::new(outcome, None)
    }

    async fn send_state(&self, lock: &Lock, request: StateRequest, limit: Duration) -> StateAnswer {
        let store = &self.0.store;
        let mood = store.mood.load(Ordering::Relaxed);
        let failed = |kind| StateOutcome::Failed(Failure::new(kind, "not now"));
        if mood == 1 {
            return StateAnswer::new(failed(FailureKind::Throttled));
        }
        let takes = if mood == 2 { SECOND } else { Duration::from_millis(2) };
        let outcome = timeout(limit, async {
            let outcome = store.apply_state(lock, &request);
            sleep(takes).await;
            outcome
        });
        StateAnswer::new(outcome.await.unwrap_or_else(|_| failed(FailureKind::Timeout)))
    }

    async fn warm_up(&self) {}

    fn drop_connections(&self) {}
}
