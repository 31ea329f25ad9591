//! 1,500 connections to an extension that has 1,024 descriptors, as Lambda gives it: it neither spins nor dies, what is
//! held goes on being renewed, and there is room for new sessions.

use std::path::Path;

use leasehold::session::{FromKeeper, OnCrash};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::extension::{Extension, Place};
use crate::fake_api::FakeApi;
use crate::session::{Client, Rows};
use crate::soon;

const CROWD: usize = 1_500;
const DESCRIPTORS: u64 = 1_024;
/// Renewed every second.
const LEASE_MS: u64 = 3_000;
/// For a build without optimizations, of which all but some 30 MiB are the crowd's.
const MOST_KIB: u64 = 96 * 1024;
const BEGIN: &[u8] = b"{\"type\":\"begin\",\"versions\":{\"min\":1,\"max\":1},\"request_id\":\"crowd\"}\n";

/// The test holds the other ends.
fn allow_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    assert!(maximum.is_none_or(|maximum| maximum > 4 * CROWD as u64), "this test needs descriptors: ulimit -Hn");
}

async fn started(api: &mut FakeApi, place: &Place, rows: &Rows) -> Extension {
    allow_descriptors();
    let extension = Extension::start(place, api.address(), &[rows.variables()[0], ("LEASEHOLD_LOG", "warn")]);
    let _ = api.ready().await;
    extension.limit_descriptors(DESCRIPTORS);
    extension
}

/// Many connections that say this and then nothing.
async fn crowd(socket: &Path, says: &[u8]) -> Vec<UnixStream> {
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        let mut stream = soon(UnixStream::connect(socket)).await.unwrap();
        // One that was closed already for the next one has heard enough.
        let _ = stream.write_all(says).await;
        crowd.push(stream);
    }
    crowd
}

async fn hold(socket: &Path, key: &str) -> Client {
    let mut client = Client::begin(socket, key).await;
    client.lease_ms = LEASE_MS;
    let answer = client.acquire(key, OnCrash::Release).await;
    assert!(matches!(answer, FromKeeper::Granted { .. }), "{answer:?}");
    client
}

/// Waits for this many renewals; the ticks that the extension took meanwhile.
async fn renewals(rows: &Rows, extension: &Extension, key: &str, many: u64) -> u64 {
    let (ticks, version) = (extension.ticks(), rows.version(key).await);
    soon(async {
        while rows.version(key).await < version + many {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    extension.ticks() - ticks
}

#[tokio::test]
async fn silent_connections_take_no_sessions_place() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let mut extension = started(&mut api, &place, &rows).await;
    let socket = place.socket();
    let _holder = hold(&socket, "held").await;
    let alone = renewals(&rows, &extension, "held", 3).await;
    let silent = crowd(&socket, b"").await;
    // They are all still there, and say nothing.
    let mut next = hold(&socket, "next").await;
    next.release().await;
    let crowded = renewals(&rows, &extension, "held", 3).await;
    // One that spins takes all of a processor: 100 ticks a second.
    assert!(crowded <= alone + 50, "{crowded} ticks, and {alone} without a crowd");
    assert!(extension.count_said("descriptors run short") <= 12);
    assert!(extension.count_said("") <= 40, "the log stays short");
    assert!(extension.peak_memory() <= MOST_KIB, "{} KiB", extension.peak_memory());
    drop(silent);
    assert!(extension.is_running());
}

#[tokio::test]
async fn a_lease_is_renewed_while_four_hundred_are_asked_for() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let mut extension = started(&mut api, &place, &rows).await;
    let socket = place.socket();
    let _holder = hold(&socket, "held").await;
    let before = rows.version("held").await;
    let mut asking = Client::begin(&socket, "many").await;
    asking.wait_ms = 60_000;
    for id in 1..=400 {
        asking.ask(id, &format!("k-{id}"), OnCrash::Release).await;
    }
    for _ in 1..=400 {
        let answer = asking.hear().await;
        assert!(matches!(answer, FromKeeper::Granted { .. }), "{answer:?}");
    }
    // All are held at the same time, and the first as well.
    renewals(&rows, &extension, "held", 3).await;
    assert!(rows.is_held("held").await && rows.version("held").await >= before + 3);
    assert_eq!(extension.count_said("lost"), 0);
    drop(asking);
    rows.freed("k-400").await;
    assert!(extension.is_running());
}

#[tokio::test]
async fn more_sessions_than_descriptors_wait_their_turn() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let mut extension = started(&mut api, &place, &rows).await;
    let socket = place.socket();
    let _holder = hold(&socket, "held").await;
    let alone = renewals(&rows, &extension, "held", 3).await;
    let mut sessions = crowd(&socket, BEGIN).await;
    let crowded = renewals(&rows, &extension, "held", 3).await;
    assert!(crowded <= alone + 50, "{crowded} ticks, and {alone} without a crowd");
    let begun = |sessions: &[UnixStream]| {
        let began = |stream: &&UnixStream| {
            let mut line = [0; 64];
            matches!(stream.try_read(&mut line), Ok(read) if read > 0)
        };
        sessions.iter().filter(began).count()
    };
    let served = begun(&sessions);
    assert!((400..=500).contains(&served), "{served} are served at once");
    // They wait in the order in which they came: as many are let in as leave.
    let mut waiting = sessions.split_off(served);
    drop(sessions);
    for stream in &mut waiting[..served] {
        let mut line = [0; 64];
        assert!(soon(stream.read(&mut line)).await.unwrap() > 0);
    }
    drop(waiting);
    let mut next = hold(&socket, "next").await;
    next.release().await;
    renewals(&rows, &extension, "held", 1).await;
    assert!(extension.count_said("descriptors run short") <= 12);
    assert!(extension.count_said("") <= 40, "the log stays short");
    assert!(extension.peak_memory() <= MOST_KIB, "{} KiB", extension.peak_memory());
    assert!(extension.is_running());
}
