//! One connection: its first line says what it is for, and the rest follows from that.
//!
//! A line that can't be served (not JSON, not UTF-8, too long, of a type or with a field that this version does not know
//! how to read, or out of place) is answered with `error`, and the connection is closed: what the peer believes about
//! the session is no longer known. Fields that are not known are ignored.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::handle::Keeper;
use super::home::Peer;
use super::outbox::Outbox;
use super::session::Session;
use super::shared::set;
use super::wording::cut;
use crate::session::{ErrorKind, FrameError, FromKeeper, LineReader, ToKeeper, VersionRange};

/// How long a connection may stay without its first line.
const FIRST_LINE: Duration = Duration::from_secs(10);
/// What a peer had said before it closed its end is read for this long; mostly the end of file is there before.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// How long the last lines may take to leave.
const FAREWELL: Duration = Duration::from_millis(250);

/// Lines in and lines out.
#[derive(Debug)]
pub(super) struct Connection {
    reader: LineReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    stopping: watch::Receiver<bool>,
    pub(super) outbox: Arc<Outbox>,
    /// Set once nobody reads what is written: until when what the peer had still said is read.
    deaf_until: Option<Instant>,
}

/// What came.
#[derive(Debug)]
pub(super) enum Received {
    /// A line.
    Line(ToKeeper),
    /// A line that can't be served, and why.
    Unserved(ErrorKind, String),
    /// The peer is gone, does not read, or is not served any longer.
    End,
}

impl Connection {
    fn new(stream: UnixStream, stopping: watch::Receiver<bool>) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader: LineReader::new(reader), writer, stopping, outbox: Arc::default(), deaf_until: None }
    }

    /// The next line; lines go out meanwhile.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub(super) async fn receive(&mut self) -> Received {
        loop {
            if let Some(received) = self.turn().await {
                return received;
            }
        }
    }

    /// Lines go out, and what comes in is ignored, until `done` says so, the peer is gone, or the limit is reached.
    /// `done` is asked again after each nudge of the outbox.
    pub(super) async fn linger(&mut self, limit: Duration, done: impl Fn() -> bool) {
        let _ = timeout(limit, async {
            while !(done() && self.outbox.is_empty()) {
                if let Some(Received::Unserved(..) | Received::End) = self.turn().await {
                    return;
                }
            }
        })
        .await;
    }

    /// Tells why the last line is not served, as the last thing that is told.
    pub(super) async fn refuse(&mut self, kind: ErrorKind, message: String) {
        if kind == ErrorKind::Silence {
            // There may be many, and none of them has asked for anything.
            tracing::debug!("a connection is closed that said nothing");
        } else {
            tracing::warn!(reason = message, "a connection is closed for a line that can't be served");
        }
        self.outbox.tell(&FromKeeper::Error { kind, message: cut(message) });
        let _ = timeout(FAREWELL, async {
            while !self.outbox.is_empty() {
                if self.outbox.write(&self.writer).await.is_err() {
                    return;
                }
            }
        })
        .await;
    }

    async fn turn(&mut self) -> Option<Received> {
        if let Some(until) = self.deaf_until {
            return Some(timeout_at(until, heard(&mut self.reader)).await.unwrap_or(Received::End));
        }
        tokio::select! {
            biased;
            written = self.outbox.write(&self.writer) => match written {
                Ok(()) => None,
                // It said all it had to say, and did not wait for the answers: a release may be among it.
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                    self.deaf_until = Some(Instant::now() + LAST_WORDS);
                    None
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection can't be written to");
                    Some(Received::End)
                }
            },
            received = heard(&mut self.reader) => Some(received),
            () = set(&mut self.stopping) => Some(Received::End),
        }
    }
}

/// What comes next.
async fn heard(reader: &mut LineReader<OwnedReadHalf>) -> Received {
    match reader.next::<ToKeeper>().await {
        Ok(Some(line)) => Received::Line(line),
        Ok(None) => Received::End,
        Err(FrameError::NotAMessage(error)) if error.is_data() => {
            Received::Unserved(ErrorKind::Message, FrameError::NotAMessage(error).to_string())
        }
        Err(error @ (FrameError::TooLong | FrameError::NotAMessage(_))) => {
            Received::Unserved(ErrorKind::Line, error.to_string())
        }
        Err(error) => {
            tracing::debug!(%error, "a connection broke");
            Received::End
        }
    }
}

/// What a connection is for, as its first line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A layer says that it is there.
    Hello,
    /// Somebody asks whether leases are held.
    Check,
    /// A session, whose end is a handler's.
    Session,
}

/// Serves a connection to its end, and tells what it is for.
pub(super) async fn serve(keeper: &Keeper, stream: UnixStream, peer: Peer, opened: impl FnOnce(Opening)) {
    let shared = &keeper.inner.shared;
    let mut connection = Connection::new(stream, shared.stopping.subscribe());
    let Ok(first) = timeout(FIRST_LINE, connection.receive()).await else {
        return connection.refuse(ErrorKind::Silence, "no line came".to_owned()).await;
    };
    match first {
        Received::Line(ToKeeper::Hello { versions }) => {
            if let Some(began) = began(&mut connection, shared.versions, versions).await {
                opened(Opening::Hello);
                shared.home.hello();
                connection.outbox.tell(&began);
                only(connection, "`hello` comes alone on its connection", |_| None).await;
            }
        }
        Received::Line(ToKeeper::Begin { versions, request_id, deadline_ms, lost }) => {
            if let Some(began) = began(&mut connection, shared.versions, versions).await {
                opened(Opening::Session);
                if !lost.is_empty() {
                    shared.home.no_longer_believed(&lost);
                }
                Session::begin(keeper.clone(), peer, request_id, deadline_ms, connection.outbox.clone(), began)
                    .run(&mut connection)
                    .await;
            }
        }
        Received::Line(line @ ToKeeper::Check { .. }) => {
            opened(Opening::Check);
            let answer = |line: &ToKeeper| match line {
                ToKeeper::Check { owner } => Some(FromKeeper::Checked(keeper.check(*owner))),
                _ => None,
            };
            if let Some(checked) = answer(&line) {
                connection.outbox.tell(&checked);
            }
            only(connection, "a connection that began with `check` takes nothing else", answer).await;
        }
        Received::Line(_) => {
            let message = "the first line must be `hello`, `begin` or `check`".to_owned();
            connection.refuse(ErrorKind::Order, message).await;
        }
        Received::Unserved(kind, message) => connection.refuse(kind, message).await,
        Received::End => {}
    }
}

/// Answers the lines that `answer` knows an answer to, and none other.
async fn only(mut connection: Connection, otherwise: &str, answer: impl Fn(&ToKeeper) -> Option<FromKeeper>) {
    loop {
        match connection.receive().await {
            Received::Line(line) => match answer(&line) {
                Some(line) => connection.outbox.tell(&line),
                None => return connection.refuse(ErrorKind::Order, otherwise.to_owned()).await,
            },
            Received::Unserved(kind, message) => return connection.refuse(kind, message).await,
            Received::End => return,
        }
    }
}

/// The answer that picks a version; without one in common the peer is refused.
async fn began(connection: &mut Connection, spoken: VersionRange, offered: VersionRange) -> Option<FromKeeper> {
    match spoken.pick(offered) {
        Some(version) => Some(FromKeeper::Began { version }),
        None => {
            connection.refuse(ErrorKind::Versions, spoken.refusal(offered)).await;
            None
        }
    }
}
