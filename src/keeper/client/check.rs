//! Asking whether a lease is held, by blocking: over connections of their own, kept open for the next question.

use std::future::Future as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{fmt, io};

use super::socket::{Reading, Reads, Socket, connect};
use crate::protocol::OwnerId;
use crate::session::{CheckAnswer, FrameError, FromKeeper, LineReader, ToKeeper, encode};

/// How many connections are kept: one for each handler that asks at the same moment.
const KEPT: usize = 8;

/// The connections that wait for the next question.
#[derive(Debug, Default)]
pub(super) struct Checks {
    idle: Mutex<Vec<CheckLine>>,
}

impl Checks {
    /// Asks, within this time; over a new connection where the one from before is broken.
    pub(super) fn ask(&self, path: &Path, owner: OwnerId, within: Duration) -> Result<CheckAnswer, String> {
        let end = Instant::now() + within;
        let kept = self.idle().pop();
        if let Some(mut line) = kept {
            match line.ask(owner, end) {
                Ok(answer) => return Ok(self.keep(line, answer)),
                Err(NoAnswer::InTime) => return Err(NoAnswer::InTime.to_string()),
                // What breaks one, a new keeper for example, breaks all.
                Err(NoAnswer::Broken(_)) => self.idle().clear(),
            }
        }
        let stream = connect(path).map_err(|error| format!("the keeper can't be reached: {error}"))?;
        let mut line = CheckLine::new(stream);
        match line.ask(owner, end) {
            Ok(answer) => Ok(self.keep(line, answer)),
            Err(none) => Err(none.to_string()),
        }
    }

    fn keep(&self, line: CheckLine, answer: CheckAnswer) -> CheckAnswer {
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push(line);
        }
        answer
    }

    fn idle(&self) -> MutexGuard<'_, Vec<CheckLine>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a connection brought no answer. It is dropped in both cases: a late answer would be taken for the next one's.
enum NoAnswer {
    InTime,
    Broken(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTime => f.write_str("the keeper did not answer in time"),
            Self::Broken(reason) => write!(f, "the keeper's connection broke: {reason}"),
        }
    }
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::InTime,
            _ => Self::Broken(error.to_string()),
        }
    }
}

/// One connection.
#[derive(Debug)]
struct CheckLine {
    socket: Arc<Socket>,
    reader: LineReader<Reads>,
}

impl CheckLine {
    fn new(stream: UnixStream) -> Self {
        let socket = Arc::new(Socket::unregistered(stream));
        Self { reader: LineReader::new(Reads(socket.clone())), socket }
    }

    fn ask(&mut self, owner: OwnerId, end: Instant) -> Result<CheckAnswer, NoAnswer> {
        let question = encode(&ToKeeper::Check { owner }).map_err(|error| NoAnswer::Broken(error.to_string()))?;
        self.socket.write(&question)?;
        self.socket.read_by(Reading::Until(end));
        // Read by blocking, the line is there with the first poll or never.
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(self.reader.next::<FromKeeper>()).poll(&mut cx) {
            Poll::Ready(Ok(Some(FromKeeper::Checked(answer)))) => Ok(answer),
            Poll::Ready(Ok(Some(FromKeeper::Error { message, .. }))) => Err(NoAnswer::Broken(message)),
            Poll::Ready(Ok(Some(_))) => Err(NoAnswer::Broken("it answered something else".to_owned())),
            Poll::Ready(Ok(None)) => Err(NoAnswer::Broken("it was closed".to_owned())),
            Poll::Ready(Err(FrameError::Io(error))) => Err(error.into()),
            Poll::Ready(Err(error)) => Err(NoAnswer::Broken(error.to_string())),
            Poll::Pending => Err(NoAnswer::InTime),
        }
    }
}
