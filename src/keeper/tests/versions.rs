//! Layer and keeper of different releases, by a session version 2 that exists in these tests only: they pick what both
//! know, and where there is nothing to pick, it is said which side is the older.

use std::future::{Future as _, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::task::Poll;

use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::support::{SECOND, World, acquire};
use crate::keeper::Peer;
use crate::keeper::client::{Answer, Broken, KeeperClient, Session, Which};
use crate::session::{ErrorKind, FromKeeper, LineReader, LineWriter, ToKeeper, VersionRange};

const OLD: VersionRange = VersionRange { min: 1, max: 1 };
const BOTH: VersionRange = VersionRange { min: 1, max: 2 };
const NEW: VersionRange = VersionRange { min: 2, max: 2 };

/// A keeper that serves these versions, behind a socket.
struct Served {
    world: World,
    folder: TempDir,
    accepting: JoinHandle<()>,
}

impl Served {
    fn speaking(versions: VersionRange) -> Self {
        let (world, folder) = (World::speaking(versions), tempfile::tempdir().unwrap());
        let listener = UnixListener::bind(folder.path().join("keeper.sock")).unwrap();
        let keeper = world.keeper.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let keeper = keeper.clone();
                tokio::spawn(async move { keeper.serve(stream, Peer { pid: 0 }).await });
            }
        });
        Self { world, folder, accepting }
    }

    /// A layer's session with it, under these versions.
    fn session(&self, versions: VersionRange) -> Session {
        client(&self.folder.path().join("keeper.sock"), versions).begin("r-1", None).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn client(socket: &Path, versions: VersionRange) -> KeeperClient {
    KeeperClient::speaking(socket, versions)
}

/// What comes of a session's first order.
async fn asked(session: &Session) -> Result<Answer, Broken> {
    let asking = async {
        poll_fn(|cx| session.poll_version(cx)).await?;
        session.acquire(Which::Main, Box::new(acquire(1, "a")));
        poll_fn(|cx| session.poll_answer(cx)).await
    };
    timeout(60 * SECOND, asking).await.unwrap()
}

#[tokio::test]
async fn an_old_layer_and_a_newer_keeper_and_the_reverse_speak_what_both_know() {
    for (layers, keepers) in [(OLD, BOTH), (BOTH, OLD), (BOTH, BOTH), (BOTH, NEW), (NEW, BOTH)] {
        let served = Served::speaking(keepers);
        let session = served.session(layers);
        let answer = asked(&session).await;
        assert!(matches!(answer, Ok(Answer::Granted(_))), "{layers:?} {keepers:?} {answer:?}");
        session.close();
        served.world.all_ended().await;
    }
}

#[tokio::test]
async fn the_answer_is_the_highest_version_that_both_speak() {
    for (layers, keepers, picked) in [(OLD, BOTH, 1), (BOTH, OLD, 1), (BOTH, BOTH, 2), (NEW, BOTH, 2)] {
        let world = World::speaking(keepers);
        for begin in [false, true] {
            let mut client = world.connect();
            client.send(&first(layers, begin)).await;
            assert_eq!(client.receive().await, FromKeeper::Began { version: picked });
        }
    }
}

#[tokio::test]
async fn no_version_in_common_is_told_to_the_layer_with_the_side_to_upgrade() {
    for (layers, keepers, what_to_do) in [
        (OLD, NEW, "the layer is the older one: build the function with a release that speaks version 2"),
        (NEW, OLD, "the keeper is the older one: deploy an extension that speaks version 2"),
    ] {
        let served = Served::speaking(keepers);
        let session = served.session(layers);
        let Err(Broken::Version(reason)) = asked(&session).await else { panic!("they have none in common") };
        assert!(reason.contains(what_to_do), "{reason}");
        assert_eq!(served.world.home.told(), [], "nothing was begun");
    }
}

#[tokio::test]
async fn a_first_order_waits_for_the_pick_only_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper.sock");
    let listener = UnixListener::bind(&path).unwrap();
    for (layers, waits) in [(OLD, false), (NEW, false), (BOTH, true)] {
        let session = client(&path, layers).begin("r-1", None).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut order = pin!(poll_fn(|cx| session.poll_version(cx)));
        assert_eq!(poll_fn(|cx| Poll::Ready(order.as_mut().poll(cx).is_pending())).await, waits, "{layers:?}");
        if waits {
            let (_reader, writer) = stream.into_split();
            LineWriter::new(writer).send(&FromKeeper::Began { version: 1 }).await.unwrap();
            assert_eq!(timeout(60 * SECOND, order).await.unwrap(), Ok(()));
        }
    }
}

#[tokio::test]
async fn a_keeper_that_picks_what_was_not_offered_is_not_spoken_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let session = client(&path, OLD).begin("r-1", None).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (_reader, writer) = stream.into_split();
    LineWriter::new(writer).send(&FromKeeper::Began { version: 2 }).await.unwrap();
    assert!(matches!(asked(&session).await, Err(Broken::Version(_))));
}

#[tokio::test]
async fn what_a_newer_peer_adds_to_a_line_is_ignored() {
    // On the way to the keeper.
    let world = World::new();
    let mut newer = world.connect();
    newer
        .send_bytes(
            b"{\"type\":\"begin\",\"versions\":{\"min\":1,\"max\":2,\"best\":2},\"request_id\":\"r\",\"new\":[1]}\n\
              {\"type\":\"acquire\",\"id\":1,\"key\":\"a\",\"table\":{\"name\":\"t\",\"key_attribute\":\"key\",\"new\":1},\
              \"lease_ms\":30000,\"wait_ms\":0,\"max_hold_ms\":1000,\"holder\":{\"new\":true},\"new\":{\"a\":null}}\n",
        )
        .await;
    assert_eq!(newer.receive().await, FromKeeper::Began { version: 1 });
    newer.granted(1).await;
    newer.send_bytes(b"{\"type\":\"end\",\"new\":\"\"}\n").await;
    assert_eq!(newer.next().await, None);

    // On the way to the layer.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let session = client(&path, BOTH).begin("r-1", None).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (reader, mut writer) = stream.into_split();
    let owner = "11111111-1111-4111-8111-111111111111";
    let say = async |writer: &mut _, line: &str| {
        tokio::io::AsyncWriteExt::write_all(writer, format!("{line}\n").as_bytes()).await.unwrap();
    };
    say(&mut writer, r#"{"type":"began","version":1,"new":1}"#).await;
    let granted = format!(
        r#"{{"type":"granted","id":1,"owner":"{owner}","token":7,"valid_for_ms":1000,"waited_ms":0,"attempts":1,"new":{{}}}}"#
    );
    let saying = async {
        let mut lines = LineReader::new(reader);
        while !matches!(lines.next().await.unwrap(), Some(ToKeeper::Acquire(_))) {}
        say(&mut writer, &granted).await;
    };
    let (answer, ()) = tokio::join!(asked(&session), saying);
    assert!(matches!(answer, Ok(Answer::Granted(_))), "{answer:?}");
    drop(writer);
}

#[tokio::test]
async fn a_message_that_only_a_newer_version_knows_is_answered_with_its_kind_of_error() {
    // To an older keeper: by a layer that does not keep to the version that was picked.
    let world = World::new();
    let mut client_of_two = world.begin().await;
    client_of_two.send_bytes(b"{\"type\":\"prolong\",\"id\":1,\"by_ms\":5}\n").await;
    let line = client_of_two.receive().await;
    assert!(
        matches!(&line, FromKeeper::Error { kind: ErrorKind::Message, message } if message.contains("prolong")),
        "{line:?}"
    );
    assert_eq!(client_of_two.next().await, None);

    // To an older layer, as a kind of error that it does not know.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let session = client(&path, OLD).begin("r-1", None).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (reader, writer) = stream.into_split();
    let line = b"{\"type\":\"error\",\"kind\":\"quota\",\"message\":\"too many\"}\n";
    tokio::io::AsyncWriteExt::write_all(&mut { writer }, line).await.unwrap();
    assert_eq!(asked(&session).await.unwrap_err(), Broken::Version("too many".to_owned()));
    let mut lines = LineReader::new(reader);
    assert!(matches!(lines.next().await.unwrap(), Some(ToKeeper::Begin { versions: OLD, .. })));
}

fn first(versions: VersionRange, begin: bool) -> ToKeeper {
    if begin {
        ToKeeper::Begin { versions, request_id: "r".to_owned(), deadline_ms: None, lost: vec![] }
    } else {
        ToKeeper::Hello { versions }
    }
}
