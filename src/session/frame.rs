//! A line on the socket: at most 64 KiB, one JSON object, ended by `\n`.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest line, without its end.
pub const MAX_LINE: usize = 64 * 1024;

/// Why no line could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The connection ended within a line.
    #[error("the connection ended in the middle of a line")]
    HalfLine,
    /// A line is longer than [`MAX_LINE`].
    #[error("a line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// A line is not the JSON of a message.
    #[error("a line is not a message of this session: {0}")]
    NotAMessage(#[source] serde_json::Error),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads lines.
#[derive(Debug)]
pub struct LineReader<R> {
    inner: R,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no line end.
    scanned: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines from `inner`.
    pub const fn new(inner: R) -> Self {
        Self { inner, buffer: Vec::new(), scanned: 0 }
    }

    /// The next message; `None` when the connection ended between two lines.
    ///
    /// # Errors
    ///
    /// When the connection fails, ends within a line, or brings a line that is too long or no message.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost: bytes that were read stay in the buffer.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(Some(message));
            }
            if self.inner.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(FrameError::HalfLine) };
            }
        }
    }

    /// A message that is in the buffer already.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn buffered<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some(end) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            return if self.scanned > MAX_LINE { Err(FrameError::TooLong) } else { Ok(None) };
        };
        let end = self.scanned + end;
        if end > MAX_LINE {
            return Err(FrameError::TooLong);
        }
        let message = serde_json::from_slice(&self.buffer[..end]).map_err(FrameError::NotAMessage);
        self.buffer.drain(..=end);
        self.scanned = 0;
        message.map(Some)
    }
}

/// Writes lines.
#[derive(Debug)]
pub struct LineWriter<W> {
    inner: W,
}

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    /// Writes lines to `inner`.
    pub const fn new(inner: W) -> Self {
        Self { inner }
    }

    /// Writes one message.
    ///
    /// # Errors
    ///
    /// When the connection fails, or the message does not fit a line.
    ///
    /// # Cancellation
    ///
    /// A line may have been written in part: the connection is then of no more use.
    pub async fn send<T: Serialize + Sync>(&mut self, message: &T) -> Result<(), FrameError> {
        self.inner.write_all(&encode(message)?).await?;
        Ok(())
    }
}

/// A message as a line, its end included.
///
/// # Errors
///
/// When the message does not fit a line.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut line = serde_json::to_vec(message).map_err(FrameError::NotAMessage)?;
    if line.len() > MAX_LINE {
        return Err(FrameError::TooLong);
    }
    line.push(b'\n');
    Ok(line)
}
