//! Peers that do not keep to the session.

use tokio::time::sleep;

use super::memory_store::Fate;
use super::support::{Client, SECOND, Told, World, acquire};
use crate::protocol::{FailureKind, OwnerId, Request};
use crate::session::{FromKeeper, MAX_LINE, ReleaseReason, ToKeeper, VersionRange};

/// An `error` line, and the end.
async fn is_refused(client: &mut Client) -> String {
    let Some(FromKeeper::Error { message }) = client.next().await else { panic!("not refused") };
    assert_eq!(client.next().await, None);
    message
}

const HOSTILE: [&[u8]; 9] = [
    b"\n",
    b"hello\n",
    b"\xff\xfe\xfd\n",
    b"{\"type\":\"dance\"}\n",
    b"{\"type\":\"release\",\"id\":-1,\"reason\":\"finished\"}\n",
    b"{\"type\":\"release\",\"id\":99999999999999999999999999,\"reason\":\"finished\"}\n",
    b"{\"type\":\"release\",\"id\":1,\"reason\":[[[[[[[[]]]]]]]]}\n",
    b"{\"type\":\"acquire\",\"id\":\"one\"}\n",
    b"[1,2,3]\n",
];

#[tokio::test(start_paused = true)]
async fn a_first_line_that_cannot_be_served_is_refused() {
    let world = World::new();
    let too_long = vec![b'x'; MAX_LINE + 1];
    let out_of_place = b"{\"type\":\"end\"}\n".as_slice();
    for bytes in HOSTILE.into_iter().chain([&too_long[..], out_of_place]) {
        let mut client = world.connect();
        client.send_bytes(bytes).await;
        is_refused(&mut client).await;
    }
    assert_eq!(world.home.told(), []);
}

#[tokio::test(start_paused = true)]
async fn a_session_breaks_off_at_such_a_line_and_its_leases_do_not_vanish_silently() {
    let too_long = vec![b'x'; MAX_LINE + 1];
    let again = b"{\"type\":\"begin\",\"versions\":{\"min\":1,\"max\":1},\"request_id\":\"r\"}\n".as_slice();
    for bytes in HOSTILE.into_iter().chain([&too_long[..], again]) {
        let world = World::new();
        let mut client = world.begin().await;
        client.take(1, "a").await;
        client.send_bytes(bytes).await;
        assert!(matches!(client.receive().await, FromKeeper::Lost { id: 1, .. }));
        is_refused(&mut client).await;
        world.all_ended().await;
        assert!(world.store.is_free("a"));
        assert!(world.home.told().iter().any(|told| matches!(told, Told::Ended(..))));
    }
}

#[tokio::test(start_paused = true)]
async fn fields_that_are_not_known_are_ignored() {
    let world = World::new();
    let mut client = world.connect();
    client
        .send_bytes(
            b"{\"type\":\"begin\",\"versions\":{\"min\":1,\"max\":9},\"request_id\":\"r\",\"colour\":{\"a\":[1]}}\r\n",
        )
        .await;
    assert_eq!(client.receive().await, FromKeeper::Began { version: 1 });
    client.take(1, "a").await;
}

#[tokio::test(start_paused = true)]
async fn no_version_in_common_is_an_error_that_names_both() {
    let world = World::new();
    for (min, max) in [(2, 7), (0, 0), (7, 2)] {
        let versions = VersionRange { min, max };
        let begin = ToKeeper::Begin { versions, request_id: "r".to_owned(), deadline_ms: None, lost: vec![] };
        for line in [begin, ToKeeper::Hello { versions }] {
            let mut client = world.connect();
            client.send(&line).await;
            let message = is_refused(&mut client).await;
            assert!(message.contains(&format!("{min} to {max}")) && message.contains("1 to 1"), "{message}");
        }
    }
    assert_eq!(world.home.told(), []);
}

#[tokio::test(start_paused = true)]
async fn hello_is_told_to_the_home_and_comes_alone() {
    let world = World::new();
    let mut client = world.connect();
    client.send(&ToKeeper::Hello { versions: VersionRange::SPOKEN }).await;
    assert_eq!(client.receive().await, FromKeeper::Began { version: 1 });
    assert_eq!(world.home.told(), [Told::Hello]);
    client.send(&ToKeeper::End).await;
    is_refused(&mut client).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_checks_takes_nothing_else() {
    let world = World::new();
    let mut holder = world.begin().await;
    let grant = holder.take(1, "a").await;
    for bytes in HOSTILE.into_iter().chain([b"{\"type\":\"end\"}\n".as_slice()]) {
        let mut client = world.connect();
        client.send(&ToKeeper::Check { owner: grant.owner }).await;
        assert!(matches!(client.receive().await, FromKeeper::Checked(_)));
        client.send_bytes(bytes).await;
        is_refused(&mut client).await;
    }
    holder.hears_nothing(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_line_is_closed_after_a_while() {
    let world = World::new();
    let mut client = world.connect();
    is_refused(&mut client).await;
    // A checking one may stay: it waits for the next question, not for its first.
    let mut client = world.connect();
    client.send(&ToKeeper::Check { owner: OwnerId::from_u128(1) }).await;
    client.receive().await;
    client.hears_nothing(600 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_asks_and_never_reads_is_closed_at_a_bound() {
    let world = World::new();
    let mut reads = world.begin().await;
    let grant = reads.take(1, "b").await;
    let mut client = world.begin().await;
    client.take(1, "a").await;
    let line =
        crate::session::encode(&ToKeeper::Release { id: 9, reason: ReleaseReason::Finished, wait: false }).unwrap();
    let mut sent = 0;
    while !client.served.is_finished() {
        let writing = tokio::io::AsyncWriteExt::write_all(&mut client.writer, &line);
        if writing.await.is_err() {
            break;
        }
        sent += 1;
        assert!(sent < 200_000, "it is never closed");
    }
    client.vanish().await;
    sleep(SECOND).await;
    assert_eq!(world.keeper.inner.tasks.live(), 1);
    assert!(world.store.is_free("a"));
    // Nobody else is harmed.
    sleep(30 * SECOND).await;
    assert_eq!(world.store.owner("b"), Some(grant.owner));
}

#[tokio::test(start_paused = true)]
async fn more_leases_than_a_session_may_have_are_refused() {
    let world = World::new();
    world.store.decide(|_, request| match request {
        Request::Acquire { .. } => Fate::failed(FailureKind::Throttled),
        _ => Fate::USUAL,
    });
    let mut client = world.begin().await;
    for id in 0..=1024 {
        client.acquire(acquire(id, &format!("k-{id}"))).await;
    }
    let (_, message) = client.failed(1024).await;
    assert!(message.contains("1024"), "{message}");
    client.vanish().await;
    world.all_ended().await;
}
