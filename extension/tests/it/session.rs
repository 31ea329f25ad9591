//! Sessions over the socket, with a DynamoDB behind: when the row is free, and when Next is called.

use std::path::Path;
use std::process::Stdio;

use leasehold::protocol::{HolderInfo, OwnerId};
use leasehold::session::{
    Acquire, FailKind, FromKeeper, LineReader, LineWriter, OnCrash, PollingMs, ReleaseReason, Table, ToKeeper,
    VersionRange,
};
use leasehold_sandbox::Sandbox;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};

use crate::extension::{Extension, Place};
use crate::fake_api::{Call, FakeApi};
use crate::{now_ms, soon};

pub(crate) const TABLE: &str = "locks";
const SOCKET: &str = "LEASEHOLD_TEST_SOCKET";
/// Set where that handler is to have a child.
const CHILD: &str = "LEASEHOLD_TEST_CHILD";

/// A DynamoDB with a lock table.
pub(crate) struct Rows {
    pub(crate) sandbox: Sandbox,
}

impl Rows {
    pub(crate) async fn new() -> Self {
        let sandbox = Sandbox::builder().function("/bin/true").start().await.unwrap();
        sandbox.tables().create_lock_table(TABLE).await.unwrap();
        Self { sandbox }
    }

    pub(crate) fn variables(&self) -> [(&str, &str); 1] {
        [("AWS_ENDPOINT_URL_DYNAMODB", self.sandbox.endpoint_url().unwrap())]
    }

    /// The row's version: one more with each renewal.
    pub(crate) async fn version(&self, key: &str) -> u64 {
        let row = self.sandbox.tables().row(TABLE, key).await.unwrap().expect("a row that was held stays");
        row["version"].as_n().unwrap().parse().unwrap()
    }

    pub(crate) async fn is_held(&self, key: &str) -> bool {
        let row = self.sandbox.tables().row(TABLE, key).await.unwrap();
        row.expect("a row that was held stays").contains_key("owner")
    }

    pub(crate) async fn freed(&self, key: &str) {
        soon(async {
            while self.is_held(key).await {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// A layer's end of a connection.
pub(crate) struct Client {
    reader: LineReader<OwnedReadHalf>,
    writer: LineWriter<OwnedWriteHalf>,
    pub(crate) lease_ms: u64,
    pub(crate) wait_ms: u64,
}

impl Client {
    pub(crate) async fn connect(socket: &Path) -> Self {
        Self::over(UnixStream::connect(socket).await.unwrap())
    }

    pub(crate) fn over(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader: LineReader::new(reader), writer: LineWriter::new(writer), lease_ms: 300_000, wait_ms: 0 }
    }

    async fn hello(socket: &Path) {
        let mut client = Self::connect(socket).await;
        client.say(&ToKeeper::Hello { versions: VersionRange::SPOKEN }).await;
        assert!(matches!(client.hear().await, FromKeeper::Began { .. }));
    }

    pub(crate) async fn begin(socket: &Path, request_id: &str) -> Self {
        Self::begin_after_losing(socket, request_id, vec![]).await
    }

    async fn begin_after_losing(socket: &Path, request_id: &str, lost: Vec<OwnerId>) -> Self {
        Self::connect(socket).await.begun(request_id, lost).await
    }

    pub(crate) async fn begun(mut self, request_id: &str, lost: Vec<OwnerId>) -> Self {
        let deadline_ms = Some(now_ms() + 600_000);
        let request_id = request_id.to_owned();
        self.say(&ToKeeper::Begin { versions: VersionRange::SPOKEN, request_id, deadline_ms, lost }).await;
        assert!(matches!(self.hear().await, FromKeeper::Began { .. }));
        self
    }

    pub(crate) async fn acquire(&mut self, key: &str, on_crash: OnCrash) -> FromKeeper {
        self.ask(1, key, on_crash).await;
        self.hear().await
    }

    /// Asks for a lease and does not wait for it.
    pub(crate) async fn ask(&mut self, id: u64, key: &str, on_crash: OnCrash) {
        let acquire = Acquire {
            id,
            key: key.to_owned(),
            table: Table::new(TABLE),
            lease_ms: self.lease_ms,
            wait_ms: self.wait_ms,
            answer_within_ms: None,
            polling: Some(PollingMs::default()),
            on_crash,
            server_time: true,
            max_hold_ms: 900_000,
            max_silence_ms: None,
            state_retention_ms: None,
            attributes: Default::default(),
            holder: HolderInfo::default(),
        };
        self.say(&ToKeeper::Acquire(Box::new(acquire))).await;
    }

    pub(crate) async fn hold(socket: &Path, request_id: &str, key: &str) -> Self {
        let mut client = Self::begin(socket, request_id).await;
        let answer = client.acquire(key, OnCrash::Release).await;
        assert!(matches!(answer, FromKeeper::Granted { .. }), "{answer:?}");
        client
    }

    pub(crate) async fn release(&mut self) {
        self.say(&ToKeeper::Release { id: 1, reason: ReleaseReason::Finished, wait: false, hold_at_least_ms: None })
            .await;
        assert_eq!(self.hear().await, FromKeeper::Released { id: 1 });
    }

    pub(crate) async fn say(&mut self, line: &ToKeeper) {
        self.writer.send(line).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> FromKeeper {
        soon(self.reader.next()).await.unwrap().expect("the keeper hung up")
    }
}

fn far() -> u64 {
    now_ms() + 600_000
}

/// An extension with a DynamoDB behind, up to its first Next.
async fn started(rows: &Rows, place: &Place, api: &mut FakeApi) -> (Extension, Call) {
    let extension = Extension::start(place, api.address(), &rows.variables());
    let next = api.ready().await;
    (extension, next)
}

#[tokio::test]
async fn a_handler_that_dies_frees_its_row_before_next() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (_extension, next) = started(&rows, &place, &mut api).await;
    let client = Client::hold(&place.socket(), "r", "k").await;
    next.invoke("r", far());
    assert!(rows.is_held("k").await);
    drop(client);
    api.next().await;
    assert!(!rows.is_held("k").await);
}

#[tokio::test]
async fn a_handler_that_ends_frees_its_row_before_next_and_is_answered_before_that() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (mut extension, next) = started(&rows, &place, &mut api).await;
    next.invoke("r", far());
    let next = api.next().await;
    let mut client = Client::hold(&place.socket(), "r2", "k").await;
    next.invoke("r2", far());
    extension.said("invocation request_id=r2").await;
    client.release().await;
    assert!(api.is_quiet(), "the session is open");
    client.say(&ToKeeper::End).await;
    api.next().await;
    assert!(!rows.is_held("k").await);
    assert_eq!(std::fs::read_dir(place.journal()).unwrap().count(), 0);
}

#[tokio::test]
async fn every_session_of_the_invocation_is_held_for() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (mut extension, next) = started(&rows, &place, &mut api).await;
    Client::hello(&place.socket()).await;
    let outer = Client::hold(&place.socket(), "r", "a").await;
    let inner = Client::hold(&place.socket(), "r", "b").await;
    next.invoke("r", far());
    extension.said("invocation request_id=r").await;
    drop(inner);
    rows.freed("b").await;
    assert!(api.is_quiet() && rows.is_held("a").await);
    drop(outer);
    api.next().await;
    assert!(!rows.is_held("a").await);
}

#[tokio::test]
async fn a_session_that_was_over_before_its_invocation_came_is_not_waited_for() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (_extension, next) = started(&rows, &place, &mut api).await;
    Client::hello(&place.socket()).await;
    drop(Client::hold(&place.socket(), "r", "k").await);
    next.invoke("r", far());
    api.next().await;
    assert!(!rows.is_held("k").await);
}

#[tokio::test]
async fn shutdown_gives_back_what_is_held_and_ends_the_process() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (mut extension, next) = started(&rows, &place, &mut api).await;
    let mut client = Client::hold(&place.socket(), "r", "k").await;
    next.shutdown();
    assert!(matches!(client.hear().await, FromKeeper::Lost { id: 1, .. }));
    assert_eq!(extension.exited().await.code(), Some(0));
    assert!(!rows.is_held("k").await);
    assert!(api.is_quiet());
}

#[tokio::test]
async fn a_dynamodb_that_cannot_be_reached_is_answered_and_ends_nothing() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut extension = Extension::start(&place, api.address(), &[]);
    let next = api.ready().await;
    let mut client = Client::begin(&place.socket(), "r").await;
    next.invoke("r", far());
    let answer = client.acquire("k", OnCrash::Release).await;
    assert!(matches!(answer, FromKeeper::Failed { kind: FailKind::Connection, .. }), "{answer:?}");
    drop(client);
    api.next().await.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
}

/// Not a test but the handler of one: a process of its own, which can be killed.
#[tokio::test]
#[ignore = "the tests below run it as a process of its own"]
async fn handler() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let stream = std::os::unix::net::UnixStream::connect(Path::new(&socket)).unwrap();
    // A child that goes on with the descriptor when its parent is dead.
    let child = std::env::var_os(CHILD).is_some();
    let _child = child.then(|| {
        let kept: std::os::fd::OwnedFd = stream.try_clone().unwrap().into();
        std::process::Command::new("sleep").arg("60").stdin(kept).stdout(Stdio::null()).spawn().unwrap()
    });
    stream.set_nonblocking(true).unwrap();
    let mut client = Client::over(UnixStream::from_std(stream).unwrap()).begun("r", vec![]).await;
    let answer = client.acquire("k", OnCrash::Release).await;
    assert!(matches!(answer, FromKeeper::Granted { .. }), "{answer:?}");
    println!("handler has it");
    std::future::pending::<()>().await;
}

/// Starts that process; it holds `k`.
async fn handler_process(place: &Place) -> Child {
    handler_process_with(place, &[]).await
}

async fn handler_process_with(place: &Place, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "session::handler", "--ignored", "--nocapture"])
        .env(SOCKET, place.socket())
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    soon(async { while !lines.next_line().await.unwrap().expect("the handler ended").contains("handler has it") {} })
        .await;
    child
}

#[tokio::test]
async fn what_a_killed_extension_left_behind_is_freed_once_the_handler_is_gone() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (extension, _next) = started(&rows, &place, &mut api).await;
    let mut handler = handler_process(&place).await;
    extension.kill().await;
    assert_eq!(std::fs::read_dir(place.journal()).unwrap().count(), 1);

    // The handler lives on, and may not have noticed yet.
    let (extension, next) = started(&rows, &place, &mut api).await;
    drop(Client::hold(&place.socket(), "r1", "other").await);
    next.invoke("r1", far());
    let _next = api.next().await;
    assert!(rows.is_held("k").await);
    extension.kill().await;

    handler.kill().await.unwrap();
    let (_extension, _next) = started(&rows, &place, &mut api).await;
    rows.freed("k").await;
    soon(async {
        while std::fs::read_dir(place.journal()).unwrap().count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_outlives_its_extension_is_freed_when_it_dies() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (extension, _next) = started(&rows, &place, &mut api).await;
    let mut handler = handler_process(&place).await;
    extension.kill().await;
    let (_extension, _next) = started(&rows, &place, &mut api).await;
    handler.kill().await.unwrap();
    // The next invocation's session is the occasion to look.
    drop(Client::begin(&place.socket(), "r1").await);
    rows.freed("k").await;
}

#[tokio::test]
async fn a_child_that_keeps_the_descriptor_does_not_keep_the_lease() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (_extension, next) = started(&rows, &place, &mut api).await;
    let mut handler = handler_process_with(&place, &[(CHILD, "1")]).await;
    next.invoke("r", far());
    handler.kill().await.unwrap();
    rows.freed("k").await;
    api.next().await;
}

#[tokio::test]
async fn a_handler_that_says_what_it_lost_has_it_freed_while_it_lives() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (extension, _next) = started(&rows, &place, &mut api).await;
    let _handler = handler_process(&place).await;
    extension.kill().await;
    // A note bears its owner's name.
    let note = std::fs::read_dir(place.journal()).unwrap().next().unwrap().unwrap().file_name();
    let owner = OwnerId::parse(note.to_str().unwrap()).unwrap();
    let (_extension, _next) = started(&rows, &place, &mut api).await;
    drop(Client::begin_after_losing(&place.socket(), "r1", vec![OwnerId::from_u128(1)]).await);
    assert!(rows.is_held("k").await, "another owner was lost, not this one");
    drop(Client::begin_after_losing(&place.socket(), "r2", vec![owner]).await);
    rows.freed("k").await;
}

#[tokio::test]
async fn what_is_left_to_expire_is_not_noted() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let (_extension, _next) = started(&rows, &place, &mut api).await;
    let mut client = Client::begin(&place.socket(), "r").await;
    assert!(matches!(client.acquire("k", OnCrash::Expire).await, FromKeeper::Granted { .. }));
    assert!(!place.journal().exists());
}
