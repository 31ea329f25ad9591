//! A process's outputs, line by line, into the log.

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::{EnvironmentId, EventKind, Process, Stream, log::Log};

/// A longer line is cut into pieces of this length, so that a process can't fill the sandbox's memory with one.
const LONGEST_LINE: u64 = 64 * 1024;

/// Where the lines of a process go.
#[derive(Debug, Clone)]
pub(super) struct Sink {
    pub(super) log: Log,
    pub(super) environment: EnvironmentId,
    pub(super) init: u32,
    pub(super) process: Process,
}

/// Reads until the end of the output.
pub(super) async fn read(source: Option<impl AsyncRead + Unpin>, sink: Sink, stream: Stream) {
    let Some(source) = source else { return };
    let mut source = BufReader::new(source);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut source).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(process = %sink.process, %error, "an output could not be read to its end");
                return;
            }
        }
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        let kind = EventKind::Output { process: sink.process.clone(), stream, line: text };
        sink.log.push(Some(sink.environment), sink.init, kind);
    }
}
