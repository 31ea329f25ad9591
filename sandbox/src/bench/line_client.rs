//! A client that speaks the session's lines by hand: for keepers that no layer is in front of.

use std::{io, time::Duration};

use leasehold::{
    keeper::{Keeper, Peer},
    session::{Acquire, FromKeeper, LineReader, LineWriter, ReleaseReason, ToKeeper, VersionRange},
};
use serde_json::{Value, json};
use tokio::{
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
};

use super::ground::TABLE;
use crate::Error;

/// A session.
#[derive(Debug)]
pub(super) struct LineClient {
    from: LineReader<OwnedReadHalf>,
    to: LineWriter<OwnedWriteHalf>,
    _served: Option<Served>,
}

/// The keeper's side of a connection, where it is in this process; it ends by itself when the client's end closes.
#[derive(Debug)]
struct Served(#[allow(dead_code, reason = "kept, so that it belongs to somebody")] JoinHandle<()>);

/// How a lease is asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) lease: Duration,
    pub(super) wait: Duration,
    /// What its `acquire` says of how to wait.
    pub(super) polling: Option<Value>,
}

impl LineClient {
    /// A session with a keeper in this process.
    pub(super) async fn of(keeper: &Keeper, deadline_ms: Option<u64>) -> Result<Self, Error> {
        let (ours, theirs) = UnixStream::pair().map_err(Error::io("make a pair of sockets"))?;
        let keeper = keeper.clone();
        let served = tokio::spawn(async move { keeper.serve(theirs, Peer { pid: 0 }).await });
        Self::begin(ours, deadline_ms, Some(Served(served))).await
    }

    /// A session over this connection.
    pub(super) async fn over(stream: UnixStream) -> Result<Self, Error> {
        Self::begin(stream, None, None).await
    }

    async fn begin(stream: UnixStream, deadline_ms: Option<u64>, served: Option<Served>) -> Result<Self, Error> {
        let (read, write) = stream.into_split();
        let mut client = Self { from: LineReader::new(read), to: LineWriter::new(write), _served: served };
        let request_id = "bench".to_owned();
        client
            .say(&ToKeeper::Begin { versions: VersionRange::SPOKEN, request_id, deadline_ms, lost: Vec::new() })
            .await?;
        match client.hear().await? {
            FromKeeper::Began { .. } => Ok(client),
            other => Err(unexpected("began", &other)),
        }
    }

    pub(super) async fn say(&mut self, line: &ToKeeper) -> Result<(), Error> {
        self.to.send(line).await.map_err(|error| Error::io("write to the keeper")(io::Error::other(error)))
    }

    /// The next line but those that tell how a lease's renewals fare.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn hear(&mut self) -> Result<FromKeeper, Error> {
        let failed = Error::io("read from the keeper");
        loop {
            match self.from.next().await {
                Ok(Some(FromKeeper::AtRisk { .. } | FromKeeper::Secured { .. })) => {}
                Ok(Some(line)) => return Ok(line),
                Ok(None) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Err(failed(io::Error::other(error))),
            }
        }
    }

    /// Asks for a lease; its answer comes later.
    pub(super) async fn acquire(&mut self, id: u64, asked: &Asked) -> Result<(), Error> {
        self.say(&ToKeeper::Acquire(Box::new(asked.line(id)?))).await
    }

    /// Asks for a lease and waits for the grant.
    pub(super) async fn granted(&mut self, id: u64, asked: &Asked) -> Result<(), Error> {
        self.acquire(id, asked).await?;
        match self.hear().await? {
            FromKeeper::Granted { id: of, .. } if of == id => Ok(()),
            other => Err(unexpected("granted", &other)),
        }
    }

    /// Gives a lease back and waits until its row is free.
    pub(super) async fn release(&mut self, id: u64) -> Result<(), Error> {
        let reason = ReleaseReason::Finished;
        self.say(&ToKeeper::Release { id, reason, wait: true, hold_at_least_ms: None }).await?;
        match self.hear().await? {
            FromKeeper::Released { id: of } if of == id => Ok(()),
            other => Err(unexpected("released", &other)),
        }
    }
}

impl Asked {
    /// Through JSON, as a layer of any age: what this does not name has the keeper's defaults.
    fn line(&self, id: u64) -> Result<Acquire, Error> {
        let mut line = json!({
            "id": id, "key": self.key, "lease_ms": millis(self.lease), "wait_ms": millis(self.wait),
            "max_hold_ms": millis(Duration::from_secs(15 * 60)),
            "table": { "name": TABLE, "key_attribute": "key" },
            "holder": { "function": "bench", "version": "1", "request_id": id.to_string(), "template": "bench:{id}" },
        });
        if let Some(delays) = &self.polling {
            line["polling"] = delays.clone();
        }
        serde_json::from_value(line).map_err(|error| Error::io("ask for a lease")(io::Error::other(error)))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The keeper said something else.
pub(super) fn unexpected(wanted: &str, line: &FromKeeper) -> Error {
    let problem = format!("the keeper answered {line:?} where `{wanted}` was due");
    Error::io("measure")(io::Error::other(problem))
}
