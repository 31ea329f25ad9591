//! The socket with sessions that a test makes up.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made/on/the/way/keeper.sock");
    (folder, path)
}

async fn own<F>(mut bound: Bound, session: impl Fn(UnixStream, Peer, Told) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (_sender, events) = watch::channel(());
    serve(&mut bound, events, session).await;
}

/// Says the peer's process id and closes; panics for a client that says `!`.
async fn say_pid(mut stream: UnixStream, peer: Peer, _: Told) {
    assert_ne!(stream.read_u8().await.unwrap(), b'!', "asked for");
    stream.write_u32(peer.pid).await.unwrap();
}

async fn ask_pid(path: &Path) -> u32 {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_u8(b'?').await.unwrap();
    stream.read_u32().await.unwrap()
}

#[tokio::test]
async fn a_session_knows_its_peer_and_a_panic_ends_only_its_own() {
    let (_folder, path) = folder();
    let server = tokio::spawn(own(bind(&path).await.unwrap(), say_pid));
    assert_eq!(ask_pid(&path).await, std::process::id());
    let mut bad = UnixStream::connect(&path).await.unwrap();
    bad.write_u8(b'!').await.unwrap();
    assert!(bad.read_u8().await.is_err(), "its connection is closed");
    assert_eq!(ask_pid(&path).await, std::process::id());
    server.abort();
}

#[tokio::test]
async fn a_socket_that_was_taken_away_is_bound_again_and_connections_stay() {
    let (_folder, path) = folder();
    let (sender, events) = watch::channel(());
    let mut bound = bind(&path).await.unwrap();
    let server = tokio::spawn(async move { serve(&mut bound, events, say_pid).await });
    let mut kept = UnixStream::connect(&path).await.unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    sender.send_replace(());
    let mut next = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => break stream,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    next.write_u8(b'?').await.unwrap();
    assert_eq!(next.read_u32().await.unwrap(), std::process::id());
    kept.write_u8(b'?').await.unwrap();
    assert_eq!(kept.read_u32().await.unwrap(), std::process::id());
    server.abort();
}

#[tokio::test]
async fn the_sessions_end_with_the_server() {
    let (_folder, path) = folder();
    let alive = Arc::new(());
    let kept = Arc::clone(&alive);
    let listener = bind(&path).await.unwrap();
    let server = tokio::spawn(own(listener, move |stream, _, _| {
        let kept = Arc::clone(&kept);
        async move {
            let _kept = (stream, kept);
            std::future::pending::<()>().await;
        }
    }));
    let mut client = UnixStream::connect(&path).await.unwrap();
    server.abort();
    let _ = server.await;
    assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)), "its connection is closed");
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test]
async fn a_dead_socket_is_replaced() {
    let (_folder, path) = folder();
    drop(bind(&path).await.unwrap());
    assert!(path.exists(), "closing a socket leaves its file");
    let listener = bind(&path).await.unwrap();
    let server = tokio::spawn(own(listener, say_pid));
    assert_eq!(ask_pid(&path).await, std::process::id());
    server.abort();
}

#[tokio::test]
async fn a_socket_that_is_listened_on_is_left_alone() {
    let (_folder, path) = folder();
    let listener = bind(&path).await.unwrap();
    assert!(matches!(bind(&path).await, Err(BindError::InUse { .. })));
    let server = tokio::spawn(own(listener, say_pid));
    assert_eq!(ask_pid(&path).await, std::process::id());
    server.abort();
}

#[tokio::test]
async fn what_is_not_a_socket_is_left_alone_and_named() {
    let (_folder, path) = folder();
    std::fs::create_dir_all(&path).unwrap();
    let error = bind(&path).await.unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }));
    assert!(error.to_string().contains("LEASEHOLD_SOCKET"), "{error}");
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(bind(&path).await, Err(BindError::NotASocket { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn a_path_that_no_socket_can_have_is_an_error() {
    let (folder, _) = folder();
    let path = folder.path().join("long".repeat(50));
    assert!(matches!(bind(&path).await, Err(BindError::Bind { .. })));
    let path = folder.path().join("file/keeper.sock");
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert!(matches!(bind(&path).await, Err(BindError::Folder { .. })));
}
