//! An Extensions API that a test plays by hand: it sees each request and decides, byte by byte if need be, on the answer.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::soon;

/// The API.
pub(crate) struct FakeApi {
    address: String,
    calls: mpsc::UnboundedReceiver<Call>,
}

/// One request, which waits for its answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    /// Counts the connections: a retry has to come on a new one.
    pub(crate) connection: u32,
    answer: oneshot::Sender<Answer>,
}

#[derive(Debug)]
enum Answer {
    /// These bytes, and the connection stays.
    Bytes(Vec<u8>),
    /// These bytes, and the connection is closed.
    Last(Vec<u8>),
    /// The connection is reset.
    Reset,
}

impl FakeApi {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, calls) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for connection in 1.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, connection, sender.clone()));
            }
        });
        Self { address, calls }
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The next request.
    pub(crate) async fn call(&mut self) -> Call {
        soon(self.calls.recv()).await.unwrap()
    }

    /// The next request, which has to be Next.
    pub(crate) async fn next(&mut self) -> Call {
        let call = self.call().await;
        assert!(call.is_next(), "{call:?}");
        call
    }

    /// Registers the extension and answers with the first Next, unanswered.
    pub(crate) async fn ready(&mut self) -> Call {
        let call = self.call().await;
        assert!(call.is_registration(), "{call:?}");
        call.register();
        self.next().await
    }

    /// Whether no request waits.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.calls.is_empty()
    }
}

impl Call {
    pub(crate) fn is_registration(&self) -> bool {
        self.method == "POST" && self.path.ends_with("/2020-01-01/extension/register")
    }

    pub(crate) fn is_next(&self) -> bool {
        self.method == "GET"
            && self.path.ends_with("/2020-01-01/extension/event/next")
            && self.headers["lambda-extension-identifier"] == "the-identifier"
    }

    pub(crate) fn register(self) {
        let body = r#"{"functionName":"f","functionVersion":"$LATEST","handler":"bootstrap"}"#;
        self.reply(200, "Lambda-Extension-Identifier: the-identifier\r\n", body);
    }

    pub(crate) fn invoke(self, request_id: &str, deadline_ms: u64) {
        let body = format!(
            r#"{{"eventType":"INVOKE","deadlineMs":{deadline_ms},"requestId":"{request_id}","invokedFunctionArn":"arn","tracing":{{"type":"X-Amzn-Trace-Id","value":"v"}}}}"#
        );
        self.reply(200, "", &body);
    }

    pub(crate) fn shutdown(self) {
        let deadline_ms = crate::now_ms() + 2_000;
        let body = format!(r#"{{"eventType":"SHUTDOWN","shutdownReason":"spindown","deadlineMs":{deadline_ms}}}"#);
        self.reply(200, "", &body);
    }

    pub(crate) fn reply(self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Said\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.answer(Answer::Bytes((head + body).into_bytes()));
    }

    /// Says something and hangs up.
    pub(crate) fn say(self, bytes: impl AsRef<[u8]>) {
        self.answer(Answer::Last(bytes.as_ref().to_vec()));
    }

    pub(crate) fn reset(self) {
        self.answer(Answer::Reset);
    }

    fn answer(self, answer: Answer) {
        self.answer.send(answer).unwrap();
    }
}

async fn serve(stream: TcpStream, connection: u32, calls: mpsc::UnboundedSender<Call>) {
    let mut stream = BufReader::new(stream);
    while let Some((method, path, headers, body)) = read_request(&mut stream).await {
        let (answer, answered) = oneshot::channel();
        if calls.send(Call { method, path, headers, body, connection, answer }).is_err() {
            return;
        }
        let Ok(answer) = answered.await else { return };
        match answer {
            Answer::Bytes(bytes) => stream.write_all(&bytes).await.unwrap(),
            Answer::Last(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                return;
            }
            Answer::Reset => {
                stream.get_ref().set_zero_linger().unwrap();
                return;
            }
        }
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<(String, String, HashMap<String, String>, String)> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((method, path, headers, String::from_utf8(body).unwrap()))
}
