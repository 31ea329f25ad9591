//! A DynamoDB that does what a real one seldom does: a socket that answers given bytes, late, broken or never.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to a request.
#[derive(Clone)]
pub enum Fault {
    /// These bytes come as the answer, after this time.
    Answer(Duration, Vec<u8>),
    /// These bytes come as the answer, once so many requests have come.
    AnswerOnce(usize, Vec<u8>),
    /// These bytes come, then the connection is closed.
    AnswerAndClose(Vec<u8>),
    /// No answer, ever.
    Hang,
    /// The connection is closed without an answer.
    Close,
    /// The connection is reset before the request was read.
    Reset,
}

impl Fault {
    /// An answer of this status with a `Date` of 2023-11-14T22:13:20Z.
    pub fn answer(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self::answer_with(status, &[("Date", "Tue, 14 Nov 2023 22:13:20 GMT"), ("x-amzn-RequestId", "REQ1")], body)
    }

    /// An answer of this status with these headers and the body's length.
    pub fn answer_with(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut text = format!("HTTP/1.1 {status} X\r\nContent-Type: application/x-amz-json-1.0\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        Self::Answer(Duration::ZERO, [text.as_bytes(), body].concat())
    }

    /// A service's error by its name.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        Self::answer(status, format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"{message}"}}"#))
    }

    /// The same answer, but later.
    pub fn after(self, delay: Duration) -> Self {
        match self {
            Self::Answer(_, bytes) => Self::Answer(delay, bytes),
            other => other,
        }
    }

    /// The same answer, but not before so many requests have come.
    pub fn once(self, requests: usize) -> Self {
        match self {
            Self::Answer(_, bytes) => Self::AnswerOnce(requests, bytes),
            other => other,
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(_, bytes) | Self::AnswerOnce(_, bytes) => write!(f, "Answer({})", bytes.escape_ascii()),
            Self::AnswerAndClose(bytes) => write!(f, "AnswerAndClose({})", bytes.escape_ascii()),
            Self::Hang => f.write_str("Hang"),
            Self::Close => f.write_str("Close"),
            Self::Reset => f.write_str("Reset"),
        }
    }
}

/// The `Date` of [`Fault::answer`].
pub const DATE: u64 = 1_700_000_000;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The operation's name.
    pub operation: String,
    /// Its parameters.
    pub body: serde_json::Value,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    closed: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
}

/// The server; its threads end with the test.
#[derive(Debug)]
pub struct FaultServer {
    url: String,
    counts: Arc<Counts>,
}

impl FaultServer {
    /// A server that treats every request like this.
    pub fn always(fault: Fault) -> Self {
        Self::start(move |_| fault.clone())
    }

    /// A server that treats request number `n`, from 0, like this.
    pub fn start(fault: impl Fn(usize) -> Fault + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("the port"));
        let counts = Arc::new(Counts::default());
        let (fault, shared) = (Arc::new(fault), Arc::clone(&counts));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.accepted.fetch_add(1, Ordering::SeqCst);
                let (fault, counts) = (Arc::clone(&fault), Arc::clone(&shared));
                thread::spawn(move || {
                    // However the connection ends, it is over.
                    let _ = serve(&stream, &*fault, &counts);
                    counts.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, counts }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connections made.
    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// Connections that are over.
    pub fn closed(&self) -> usize {
        self.counts.closed.load(Ordering::SeqCst)
    }

    /// Requests that came.
    pub fn seen(&self) -> Vec<Seen> {
        self.counts.seen.lock().expect("no test panicked here").clone()
    }
}

fn serve(stream: &TcpStream, fault: &dyn Fn(usize) -> Fault, counts: &Counts) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        if matches!(fault(counts.seen.lock().expect("no test panicked here").len()), Fault::Reset) {
            // Closing a socket with unread bytes in it resets the connection.
            stream.peek(&mut [0])?;
            counts
                .seen
                .lock()
                .expect("no test panicked here")
                .push(Seen { operation: "unread".into(), body: serde_json::Value::Null });
            return Ok(());
        }
        let Some(request) = read_request(&mut reader)? else {
            return Ok(());
        };
        let number = {
            let mut seen = counts.seen.lock().expect("no test panicked here");
            seen.push(request);
            seen.len() - 1
        };
        let mut writer = stream;
        match fault(number) {
            Fault::Answer(delay, bytes) => {
                thread::sleep(delay);
                writer.write_all(&bytes)?;
            }
            Fault::AnswerOnce(requests, bytes) => {
                while counts.seen.lock().expect("no test panicked here").len() < requests {
                    thread::sleep(Duration::from_millis(1));
                }
                writer.write_all(&bytes)?;
            }
            Fault::AnswerAndClose(bytes) => return writer.write_all(&bytes),
            Fault::Hang => {
                // Nothing but the end of the connection can come now.
                let _ = reader.read(&mut [0])?;
                return Ok(());
            }
            Fault::Close | Fault::Reset => return Ok(()),
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Seen>> {
    let (mut length, mut operation, mut line) = (0, String::new(), String::new());
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().expect("a length"),
            "x-amz-target" => operation = value.rsplit('.').next().unwrap_or_default().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Seen { operation, body: serde_json::from_slice(&body).unwrap_or_default() }))
}
