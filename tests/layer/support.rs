//! A keeper played by hand: real connections, raw lines, and nothing said that a test does not say.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lambda_runtime::{Context, LambdaEvent};
use leasehold::layer::TemplateText;
use leasehold::{KeeperChoice, LeaseLayer, LeaseLayerBuilder, Leasehold};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const OWNER: &str = "11111111-1111-4111-8111-111111111111";
const PATIENCE: Duration = Duration::from_secs(5);

/// The keeper's socket.
pub(crate) struct Keeper {
    listener: UnixListener,
    dir: TempDir,
}

impl Keeper {
    pub(crate) fn bind() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("keeper.sock")).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener, dir }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("keeper.sock")
    }

    /// Takes leases of this keeper by hand.
    pub(crate) fn by_hand(&self) -> Leasehold {
        let variables: [(&str, &str); 0] = [];
        let builder = Leasehold::builder().table("locks").keeper(KeeperChoice::Extension).socket(self.path());
        builder.environment(variables).build().unwrap()
    }

    /// A layer that talks to this keeper, and to no environment.
    pub(crate) fn layer<T>(&self, template: &str) -> LeaseLayerBuilder<T, TemplateText> {
        self.layer_under(template, &[])
    }

    /// A layer that talks to this keeper, with these variables.
    pub(crate) fn layer_under<T>(
        &self,
        template: &str,
        variables: &[(&str, &str)],
    ) -> LeaseLayerBuilder<T, TemplateText> {
        LeaseLayer::builder(template)
            .table("locks")
            .socket(self.path())
            .keeper(KeeperChoice::Extension)
            .environment(variables.iter().copied())
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> Peer {
        accept(&self.listener)
    }

    /// The connection that a layer says hello over, before anything else.
    pub(crate) fn accept_hello(&self) {
        let mut peer = self.accept();
        assert_eq!(peer.hear("hello")["versions"], json!({ "min": 1, "max": 1 }));
        peer.hear_the_end();
    }

    /// A session, to where it has begun.
    pub(crate) fn accept_session(&self) -> Peer {
        let mut peer = self.accept();
        peer.hear("begin");
        peer.say(json!({ "type": "began", "version": 1 }));
        peer
    }

    /// Begins the next session on a thread of its own.
    pub(crate) fn accept_in_background(&self) -> std::thread::JoinHandle<Peer> {
        let listener = self.listener.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut peer = accept(&listener);
            peer.hear("begin");
            peer.say(json!({ "type": "began", "version": 1 }));
            peer
        })
    }

    /// Leaves a socket that nobody listens on.
    pub(crate) fn die(self) -> TempDir {
        self.dir
    }

    /// Nobody is waiting to be let in.
    pub(crate) fn assert_alone(&self) {
        match self.listener.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => panic!("{other:?}"),
        }
    }
}

fn accept(listener: &UnixListener) -> Peer {
    let end = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Peer::new(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("nobody came: {error}"),
        }
    }
}

/// The layer's side of one connection, as the keeper sees it.
pub(crate) struct Peer {
    reader: BufReader<UnixStream>,
}

impl Peer {
    fn new(stream: UnixStream) -> Self {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// The next line, of this type.
    pub(crate) fn hear(&mut self, kind: &str) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no {kind} but {line:?}"));
        assert_eq!(line["type"], kind, "{line}");
        line
    }

    /// The end of the connection.
    pub(crate) fn hear_the_end(&mut self) {
        assert_eq!(self.hear_out(), "");
    }

    /// All lines up to the end of the connection.
    pub(crate) fn hear_out(&mut self) -> String {
        let mut rest = String::new();
        if let Err(error) = self.reader.read_to_string(&mut rest) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        rest
    }

    /// Says nothing more, and hears the layer out.
    #[allow(dead_code, reason = "the table of bad input needs it, the layer's own tests do not")]
    pub(crate) fn hang_up(&mut self) -> String {
        // A layer that is gone needs no end.
        let _ = self.reader.get_ref().shutdown(std::net::Shutdown::Write);
        self.hear_out()
    }

    /// Nothing was said and the connection is open.
    pub(crate) fn assert_silent(&mut self) {
        let stream = self.reader.get_ref();
        stream.set_nonblocking(true).unwrap();
        let mut byte = [0];
        let read = self.reader.read(&mut byte);
        assert!(matches!(&read, Err(error) if error.kind() == ErrorKind::WouldBlock), "{read:?} {byte:?}");
        self.reader.get_ref().set_nonblocking(false).unwrap();
    }

    pub(crate) fn say(&mut self, line: Value) {
        self.say_raw(format!("{line}\n"));
    }

    /// Says it to whoever may be gone already.
    pub(crate) fn say_if_open(&mut self, line: Value) {
        let _ = self.reader.get_mut().write_all(format!("{line}\n").as_bytes());
    }

    pub(crate) fn say_raw(&mut self, bytes: impl AsRef<[u8]>) {
        match self.reader.get_mut().write_all(bytes.as_ref()) {
            // A layer that does not wait any more is not told.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
    }

    /// Hears `acquire`, without an answer yet.
    pub(crate) fn hear_acquire(&mut self) -> Value {
        self.hear("acquire")
    }

    /// Answers the last `acquire`.
    pub(crate) fn grant(&mut self) {
        self.say(granted());
    }

    /// Hears `release` and confirms it.
    pub(crate) fn free(&mut self) -> Value {
        let release = self.hear("release");
        self.say(released());
        release
    }

    /// Hears the session out.
    pub(crate) fn hear_end(&mut self) {
        self.hear("end");
        self.hear_the_end();
    }
}

pub(crate) fn granted() -> Value {
    json!({
        "type": "granted", "id": 1, "owner": OWNER, "token": 7, "valid_for_ms": 27_000, "waited_ms": 3, "attempts": 1,
    })
}

pub(crate) fn busy() -> Value {
    json!({
        "type": "busy", "id": 1, "waited_ms": 2000, "attempts": 3, "retry_after_ms": 11_000,
        "holder": { "function": "billing", "request_id": "r-other" },
    })
}

pub(crate) fn failed(kind: &str) -> Value {
    json!({ "type": "failed", "id": 1, "kind": kind, "message": "as DynamoDB says" })
}

pub(crate) fn lost() -> Value {
    json!({ "type": "lost", "id": 1, "reason": "the row was deleted" })
}

pub(crate) fn at_risk() -> Value {
    json!({ "type": "at_risk", "id": 1 })
}

pub(crate) fn secured() -> Value {
    json!({ "type": "secured", "id": 1 })
}

pub(crate) fn released() -> Value {
    json!({ "type": "released", "id": 1 })
}

/// An event as `lambda_runtime` hands it on.
pub(crate) fn event(payload: Value) -> LambdaEvent<Box<RawValue>> {
    event_within(payload, None)
}

/// An event whose invocation ends after this long.
pub(crate) fn event_within(payload: Value, within: Option<Duration>) -> LambdaEvent<Box<RawValue>> {
    let mut context = Context::default();
    context.request_id = "r-1".to_owned();
    if let Some(within) = within {
        let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + within;
        context.deadline = deadline.as_millis() as u64;
    }
    LambdaEvent::new(serde_json::value::to_raw_value(&payload).unwrap(), context)
}

pub(crate) fn order() -> LambdaEvent<Box<RawValue>> {
    event(json!({ "id": "A-17" }))
}

/// Lets the runtime see what the keeper said.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}
