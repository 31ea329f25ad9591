//! One invocation's session with a keeper, as the layer leads it.

use std::time::Duration;

use leasehold::keeper::{Keeper, Peer};
use leasehold::protocol::{HolderInfo, OwnerId};
use leasehold::session::{
    Acquire, CheckAnswer, Counted, FailKind, FromKeeper, LineReader, LineWriter, OnCrash, PollingMs, RawState,
    ReleaseReason, Table, ToKeeper, VersionRange,
};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::{KEY, LONG};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub lease: Duration,
    pub wait: Duration,
    pub answer_within: Option<Duration>,
}

impl Ask {
    /// A lease that needs no renewal while the test lasts, by who can wait.
    pub fn patient() -> Self {
        Self { lease: Duration::from_secs(60), wait: LONG, answer_within: None }
    }

    pub fn lease(self, millis: u64) -> Self {
        Self { lease: Duration::from_millis(millis), ..self }
    }

    pub fn wait(self, millis: u64) -> Self {
        Self { wait: Duration::from_millis(millis), ..self }
    }

    pub fn answer_within(self, millis: u64) -> Self {
        Self { answer_within: Some(Duration::from_millis(millis)), ..self }
    }
}

/// A lease as the layer is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    pub owner: OwnerId,
    pub token: u64,
    pub attempts: usize,
}

/// The session; dropping it is a crash.
#[derive(Debug)]
pub struct Session {
    pub keeper: Keeper,
    reader: LineReader<OwnedReadHalf>,
    writer: LineWriter<OwnedWriteHalf>,
}

impl Session {
    pub async fn begin(keeper: &Keeper, request_id: &str) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let serving = keeper.clone();
        tokio::spawn(async move { serving.serve(theirs, Peer { pid: 0 }).await });
        let (reader, writer) = ours.into_split();
        let mut session =
            Self { keeper: keeper.clone(), reader: LineReader::new(reader), writer: LineWriter::new(writer) };
        let versions = VersionRange::SPOKEN;
        let request_id = request_id.to_owned();
        session.send(ToKeeper::Begin { versions, request_id, deadline_ms: None, lost: vec![] }).await;
        assert!(matches!(session.next().await, FromKeeper::Began { .. }));
        session
    }

    async fn send(&mut self, line: ToKeeper) {
        self.writer.send(&line).await.unwrap();
    }

    /// The next line about the lease, but for those that only tell how it is doing.
    async fn next(&mut self) -> FromKeeper {
        loop {
            let line = timeout(LONG, self.reader.next()).await.expect("a line in time").unwrap();
            match line.expect("an open connection") {
                FromKeeper::AtRisk { .. } | FromKeeper::Secured { .. } => {}
                line => return line,
            }
        }
    }

    pub async fn ask_for(&mut self, key: &str, ask: Ask) {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
        let acquire = Acquire {
            id: 1,
            key: key.to_owned(),
            table: Table::new("locks"),
            lease_ms: millis(ask.lease),
            wait_ms: millis(ask.wait),
            answer_within_ms: ask.answer_within.map(millis),
            polling: Some(PollingMs { first: 20, max: 250 }),
            on_crash: OnCrash::Release,
            server_time: true,
            max_hold_ms: 900_000,
            max_silence_ms: None,
            state_retention_ms: None,
            attributes: Default::default(),
            holder: HolderInfo { function: "orders".into(), ..HolderInfo::default() },
        };
        self.send(ToKeeper::Acquire(Box::new(acquire))).await;
    }

    pub async fn ask(&mut self, ask: Ask) {
        self.ask_for(KEY, ask).await;
    }

    pub async fn granted(&mut self) -> Grant {
        match self.next().await {
            FromKeeper::Granted { owner, token, attempts, .. } => {
                Grant { owner, token: token.unwrap().get(), attempts: usize::try_from(attempts).unwrap() }
            }
            line => panic!("not granted: {line:?}"),
        }
    }

    /// The typed failure that it is told.
    pub async fn failed(&mut self) -> FailKind {
        match self.next().await {
            FromKeeper::Failed { kind, .. } => kind,
            line => panic!("not failed: {line:?}"),
        }
    }

    /// Who holds it, as it is told.
    pub async fn busy(&mut self) -> HolderInfo {
        match self.next().await {
            FromKeeper::Busy { holder, .. } => holder.expect("a holder"),
            line => panic!("not busy: {line:?}"),
        }
    }

    /// Why it is lost.
    pub async fn lost(&mut self) -> String {
        match self.next().await {
            FromKeeper::Lost { reason, .. } => reason,
            line => panic!("not lost: {line:?}"),
        }
    }

    /// Gives it back without waiting for what comes of it.
    pub async fn give_back(&mut self) {
        self.send(ToKeeper::Release { id: 1, reason: ReleaseReason::Finished, wait: true, hold_at_least_ms: None })
            .await;
    }

    /// Gives it back without waiting for what comes of it; the key is to stay held until so long after it was acquired.
    pub async fn keep(&mut self, minimum: Duration) {
        let hold_at_least_ms = Some(u64::try_from(minimum.as_millis()).unwrap());
        self.send(ToKeeper::Release { id: 1, reason: ReleaseReason::Finished, wait: true, hold_at_least_ms }).await;
    }

    /// The row is free.
    pub async fn released(&mut self) {
        let line = self.next().await;
        assert!(matches!(line, FromKeeper::Released { .. }), "not released: {line:?}");
    }

    pub async fn release(&mut self) {
        self.give_back().await;
        self.released().await;
    }

    pub async fn save_state(&mut self, call: u64, value: &str, on_release: bool) {
        let value = Some(RawState::parse(value).unwrap());
        self.send(ToKeeper::SaveState { id: 1, call, value, on_release }).await;
    }

    /// The state is saved, or noted for the release.
    pub async fn state_saved(&mut self, call: u64) {
        assert_eq!(self.next().await, FromKeeper::StateSaved { id: 1, call });
    }

    /// Why it is not.
    pub async fn state_failed(&mut self, call: u64) -> FailKind {
        match self.next().await {
            FromKeeper::StateFailed { call: told, kind, .. } if told == call => kind,
            line => panic!("not failed: {line:?}"),
        }
    }

    /// The state that is there.
    pub async fn load_state(&mut self) -> Option<String> {
        self.send(ToKeeper::LoadState { id: 1, call: 99 }).await;
        match self.next().await {
            FromKeeper::State { call: 99, value, .. } => value.map(|value| value.get().to_owned()),
            line => panic!("no state: {line:?}"),
        }
    }

    /// What its lease has taken up to now.
    pub async fn counted(&mut self) -> Counted {
        self.send(ToKeeper::Count { id: 1 }).await;
        match self.next().await {
            FromKeeper::Counted(counted) => *counted,
            line => panic!("no counts: {line:?}"),
        }
    }

    /// Nothing was told that was not read.
    pub async fn assert_silent(&mut self) {
        let line = timeout(Duration::ZERO, self.next()).await;
        assert!(line.is_err(), "{line:?}");
    }

    pub fn holds(&self, owner: OwnerId) -> bool {
        matches!(self.keeper.check(owner), CheckAnswer::Held { .. })
    }
}
