//! A line on the socket: at most 64 KiB, one JSON object, ended by `\n`.

use std::io;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest line, without its end.
pub const MAX_LINE: usize = 64 * 1024;

/// How much is read at a time: a line that is too long is noticed before more than this of it lies beyond the bound.
const CHUNK: usize = 4 * 1024;

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

/// Reads lines, with at most [`MAX_LINE`] and one chunk of bytes in memory, and next to none between two lines.
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
            if self.read_chunk().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(FrameError::HalfLine) };
            }
        }
    }

    /// Reads what is there, and no more than a chunk.
    async fn read_chunk(&mut self) -> io::Result<usize> {
        // The room is made exactly: left to itself, a vector that grows doubles.
        let room = self.buffer.capacity() - self.buffer.len();
        if room < CHUNK {
            self.buffer.reserve_exact(CHUNK);
        }
        self.inner.read_buf(&mut self.buffer).await
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
        let line = &self.buffer[..end];
        let message = read(line).map_err(|error| FrameError::NotAMessage(told(line, error)));
        self.take_out(end + 1);
        message.map(Some)
    }

    /// Takes a line out of the buffer. A long one's memory goes with it: a connection may stay for a process's life.
    fn take_out(&mut self, bytes: usize) {
        self.scanned = 0;
        self.buffer.drain(..bytes);
        if self.buffer.capacity() > 2 * CHUNK && self.buffer.len() <= CHUNK {
            self.buffer.shrink_to(CHUNK);
        }
    }
}

/// Reads a line as text, as a handler's events are read: two ways to read JSON are twice as much to carry along.
fn read<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(line) {
        Ok(line) => serde_json::from_str(line),
        // Fails, and tells where.
        Err(_) => serde_json::from_slice::<Box<RawValue>>(line)
            .and_then(|_| Err(serde_json::Error::io(io::ErrorKind::InvalidData.into()))),
    }
}

/// The error in the words of the session, whose lines are objects.
fn told(line: &[u8], error: serde_json::Error) -> serde_json::Error {
    let is_object = line.trim_ascii_start().starts_with(b"{");
    if is_object || !error.is_data() { error } else { serde_json::Error::custom("it must be an object with a `type`") }
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    /// Everything that a reader makes of these bytes and the end after them.
    async fn read(bytes: &[u8]) -> Vec<Result<Option<String>, FrameError>> {
        let (mut there, here) = duplex(1024);
        let bytes = bytes.to_vec();
        let writer = tokio::spawn(async move {
            // The reader may be gone after a line that it refuses.
            let _ = there.write_all(&bytes).await;
        });
        let mut reader = LineReader::new(here);
        let mut lines = Vec::new();
        loop {
            let line = reader.next::<String>().await;
            assert!(reader.buffer.capacity() <= MAX_LINE + 2 * CHUNK, "{} bytes", reader.buffer.capacity());
            let is_last = !matches!(line, Ok(Some(_)) | Err(FrameError::NotAMessage(_)));
            lines.push(line);
            if is_last {
                break;
            }
        }
        drop(reader);
        writer.await.unwrap();
        lines
    }

    fn line_of(length: usize) -> Vec<u8> {
        let mut line = vec![b'a'; length];
        line[0] = b'"';
        line[length - 1] = b'"';
        line.push(b'\n');
        line
    }

    #[tokio::test]
    async fn lines_come_one_by_one_and_the_end_between_two_is_clean() {
        let lines = read(b"\"a\"\n\"b\"\r\n  \"c\" \n").await;
        let texts: Vec<_> = lines.into_iter().map(|line| line.unwrap()).collect();
        assert_eq!(texts, [Some("a".to_owned()), Some("b".to_owned()), Some("c".to_owned()), None]);
    }

    #[tokio::test]
    async fn an_end_within_a_line_is_no_clean_end() {
        for bytes in [b"\"a".as_slice(), b"\"a\"", b"\"a\"\n\""] {
            assert!(matches!(read(bytes).await.last(), Some(Err(FrameError::HalfLine))));
        }
        assert!(matches!(read(b"").await.last(), Some(Ok(None))));
    }

    #[tokio::test]
    async fn the_longest_line_is_read_and_one_byte_more_is_not() {
        let lines = read(&line_of(MAX_LINE)).await;
        assert!(matches!(&lines[..], [Ok(Some(text)), Ok(None)] if text.len() == MAX_LINE - 2));
        assert!(matches!(&read(&line_of(MAX_LINE + 1)).await[..], [Err(FrameError::TooLong)]));
        let without_an_end = vec![b'x'; 10 * MAX_LINE];
        assert!(matches!(&read(&without_an_end).await[..], [Err(FrameError::TooLong)]));
    }

    #[tokio::test]
    async fn what_is_no_message_is_told_and_the_next_line_is_still_read() {
        let lines = read(b"\n{}\n\xff\xfe\n\"a\xff\"\nnull\n\"b\"\n").await;
        assert_eq!(lines.len(), 7);
        assert!(lines[..5].iter().all(|line| matches!(line, Err(FrameError::NotAMessage(_)))), "{lines:?}");
        assert!(matches!(&lines[5..], [Ok(Some(text)), Ok(None)] if text == "b"));
    }

    #[tokio::test]
    async fn a_long_lines_memory_is_given_back() {
        let (mut there, here) = duplex(2 * MAX_LINE);
        let mut reader = LineReader::new(here);
        there.write_all(&line_of(MAX_LINE)).await.unwrap();
        there.write_all(b"\"next\"\n").await.unwrap();
        reader.next::<String>().await.unwrap();
        assert!(reader.buffer.capacity() <= 2 * CHUNK, "{} bytes", reader.buffer.capacity());
        assert_eq!(reader.next::<String>().await.unwrap().as_deref(), Some("next"));
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_loses_nothing() {
        let (mut there, here) = duplex(1024);
        let mut reader = LineReader::new(here);
        there.write_all(b"\"half").await.unwrap();
        {
            let mut given_up = tokio_test::task::spawn(reader.next::<String>());
            assert!(given_up.poll().is_pending());
        }
        there.write_all(b" and half\"\n").await.unwrap();
        assert_eq!(reader.next::<String>().await.unwrap().as_deref(), Some("half and half"));
    }

    #[tokio::test]
    async fn it_does_not_matter_where_the_bytes_are_cut() {
        let bytes = "\"é\"\n\"b\"\n".as_bytes();
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            let mut builder = tokio_test::io::Builder::new();
            for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
                builder.read(part);
            }
            let mut reader = LineReader::new(builder.build());
            for expected in [Some("é"), Some("b"), None] {
                assert_eq!(reader.next::<String>().await.unwrap().as_deref(), expected, "cut at {at}");
            }
        }
    }

    #[tokio::test]
    async fn a_message_that_does_not_fit_is_not_written() {
        let (there, mut here) = duplex(1024);
        let mut writer = LineWriter::new(there);
        assert!(matches!(writer.send(&"x".repeat(MAX_LINE)).await, Err(FrameError::TooLong)));
        writer.send(&"fits").await.unwrap();
        drop(writer);
        let mut written = Vec::new();
        here.read_to_end(&mut written).await.unwrap();
        assert_eq!(written, b"\"fits\"\n");
    }
}
