//! What a session's lines go over: a socket, or a test double's memory.

use std::future::Future as _;
use std::io;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::socket::{Reading, Reads, Socket};
use crate::session::{FrameError, FromKeeper, LineReader, ToKeeper, encode};

/// One connection to a keeper.
#[derive(Debug)]
pub(super) enum Connection {
    /// To the extension, or to a thread of this process.
    Socket { socket: Arc<Socket>, reader: LineReader<Reads> },
    /// To a test double.
    #[cfg(feature = "testing")]
    Double(crate::testing::Connection),
}

impl Connection {
    /// Over this stream, which must not block.
    pub(super) fn over(stream: UnixStream) -> io::Result<Self> {
        let socket = Arc::new(Socket::registered(stream)?);
        Ok(Self::Socket { reader: LineReader::new(Reads(socket.clone())), socket })
    }

    /// Sends a line, without waiting.
    pub(super) fn send(&self, line: ToKeeper) -> io::Result<()> {
        match self {
            Self::Socket { socket, .. } => socket.write(&encode(&line).map_err(io::Error::other)?),
            #[cfg(feature = "testing")]
            Self::Double(connection) => {
                connection.say(line);
                Ok(())
            }
        }
    }

    /// The next line; `None` at the connection's end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<FromKeeper>, FrameError>> {
        match self {
            // A new future for each poll: the reader loses nothing by it, and nothing unnamed needs to be kept.
            Self::Socket { reader, .. } => pin!(reader.next::<FromKeeper>()).poll(cx),
            #[cfg(feature = "testing")]
            Self::Double(connection) => connection.poll_next(cx).map(Ok),
        }
    }

    /// Changes how the connection is read.
    pub(super) fn read_by(&self, reading: Reading) {
        match self {
            Self::Socket { socket, .. } => socket.read_by(reading),
            // All that it will say by itself is there already.
            #[cfg(feature = "testing")]
            Self::Double(_) => {}
        }
    }

    /// Ends the connection for both sides; what was sent before still arrives.
    pub(super) fn shut_down(&self) {
        match self {
            Self::Socket { socket, .. } => socket.shut_down(),
            #[cfg(feature = "testing")]
            Self::Double(connection) => connection.close(),
        }
    }
}
