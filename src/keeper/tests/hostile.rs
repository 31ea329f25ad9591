//! Peers that do not keep to the session.

use super::support::{Client, SECOND, Told, World, acquire};
use crate::protocol::OwnerId;
use crate::session::{ErrorKind, FromKeeper, MAX_LINE, ReleaseReason, ToKeeper, VersionRange, encode};

const fn finished(id: u64) -> ToKeeper {
    ToKeeper::Release { id, reason: ReleaseReason::Finished, wait: false, hold_at_least_ms: None }
}

/// An `error` line, and the end.
async fn is_refused(client: &mut Client) -> (ErrorKind, String) {
    let Some(FromKeeper::Error { kind, message }) = client.next().await else { panic!("not refused") };
    assert_eq!(client.next().await, None);
    (kind, message)
}

const HOSTILE: [(ErrorKind, &[u8]); 28] = [
    (ErrorKind::Line, b"\n"),
    (ErrorKind::Line, b"hello\n"),
    (ErrorKind::Line, b"\xff\xfe\xfd\n"),
    (ErrorKind::Line, b"{\"type\":\"check\",\"owner\":\"\xc3\x28\"}\n"),
    (ErrorKind::Line, b"\0\0\0\0\n"),
    (ErrorKind::Line, b"{\"type\":\"end\"}\0\n"),
    (ErrorKind::Line, b"{\"type\":\"en\0d\"}\n"),
    (ErrorKind::Line, b"{\"type\":\"end\"}{\"type\":\"end\"}\n"),
    (ErrorKind::Line, b"{\"type\":\"release\",\"id\":1e999,\"reason\":\"finished\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"dance\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"END\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"release\",\"id\":-1,\"reason\":\"finished\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"release\",\"id\":1.0,\"reason\":\"finished\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"release\",\"id\":99999999999999999999999999,\"reason\":\"finished\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"release\",\"id\":1,\"reason\":[[[[[[[[]]]]]]]]}\n"),
    (ErrorKind::Message, b"{\"type\":\"release\",\"id\":1,\"id\":2,\"reason\":\"finished\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"release\",\"type\":\"release\",\"id\":1,\"reason\":\"finished\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"acquire\",\"id\":\"one\"}\n"),
    (ErrorKind::Message, b"{\"type\":\"inspect\",\"id\":1,\"key\":\"k\"}\n"),
    (
        ErrorKind::Message,
        b"{\"type\":\"inspect\",\"id\":1,\"key\":7,\"table\":{\"name\":\"l\",\"key_attribute\":\"k\"}}\n",
    ),
    (ErrorKind::Message, b"{\"type\":\"count\",\"id\":{}}\n"),
    (ErrorKind::Line, b"{\"type\":\"save_state\",\"id\":1,\"call\":1,\"value\":{]}\n"),
    (ErrorKind::Line, b"{\"type\":\"save_state\",\"id\":1,\"call\":1,\"value\":nul}\n"),
    (ErrorKind::Message, b"{\"type\":\"save_state\",\"id\":1,\"value\":7}\n"),
    (ErrorKind::Message, b"{\"type\":\"save_state\",\"id\":1,\"call\":1,\"value\":1,\"value\":2}\n"),
    (ErrorKind::Message, b"{\"type\":\"load_state\",\"id\":1,\"call\":-1}\n"),
    (ErrorKind::Message, b"[1,2,3]\n"),
    (ErrorKind::Message, b"null\n"),
];

/// What is too much of something.
fn excessive() -> Vec<(ErrorKind, Vec<u8>)> {
    let nested = [&b"{\"type\":\"end\",\"x\":"[..], &b"[".repeat(20_000), &b"]".repeat(20_000), b"}\n"].concat();
    vec![
        (ErrorKind::Line, vec![b'x'; MAX_LINE + 1]),
        (ErrorKind::Line, padded(MAX_LINE + 1)),
        (ErrorKind::Line, nested),
    ]
}

/// A `begin` of this length, by a field that nobody knows.
fn padded(length: usize) -> Vec<u8> {
    let (start, end) = ("{\"type\":\"begin\",\"versions\":{\"min\":1,\"max\":1},\"request_id\":\"r\",\"x\":\"", "\"}");
    let padding = "x".repeat(length - start.len() - end.len());
    format!("{start}{padding}{end}\n").into_bytes()
}

fn all() -> impl Iterator<Item = (ErrorKind, Vec<u8>)> {
    HOSTILE.into_iter().map(|(kind, bytes)| (kind, bytes.to_vec())).chain(excessive())
}

#[tokio::test(start_paused = true)]
async fn a_first_line_that_cannot_be_served_is_refused() {
    let world = World::new();
    let (acquire, release) = (ToKeeper::Acquire(Box::new(acquire(1, "k"))), finished(1));
    let count = ToKeeper::Count { id: 1 };
    let out_of_place = [acquire, release, count, ToKeeper::End].map(|line| (ErrorKind::Order, encode(&line).unwrap()));
    for (expected, bytes) in all().chain(out_of_place) {
        let mut client = world.connect();
        client.send_bytes(&bytes).await;
        let (kind, message) = is_refused(&mut client).await;
        assert_eq!(kind, expected, "{}: {message}", bytes.escape_ascii());
    }
    assert_eq!(world.keeper.counts().requests, 0);
    assert_eq!(world.home.told(), []);
}

#[tokio::test(start_paused = true)]
async fn a_session_breaks_off_at_such_a_line_and_its_leases_do_not_vanish_silently() {
    let check = encode(&ToKeeper::Check { owner: OwnerId::from_u128(1) }).unwrap();
    let out_of_place = [padded(200), check].map(|bytes| (ErrorKind::Order, bytes));
    for (expected, bytes) in all().chain(out_of_place) {
        let world = World::new();
        let mut client = world.begin().await;
        client.take(1, "a").await;
        client.send_bytes(&bytes).await;
        assert!(matches!(client.receive().await, FromKeeper::Lost { id: 1, .. }));
        assert_eq!(is_refused(&mut client).await.0, expected, "{}", bytes.escape_ascii());
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
            let (kind, message) = is_refused(&mut client).await;
            assert_eq!(kind, ErrorKind::Versions);
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
    assert_eq!(is_refused(&mut client).await.0, ErrorKind::Order);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_checks_takes_nothing_else() {
    let world = World::new();
    let mut holder = world.begin().await;
    let grant = holder.take(1, "a").await;
    for (expected, bytes) in all().chain([(ErrorKind::Order, encode(&ToKeeper::End).unwrap())]) {
        let mut client = world.connect();
        client.send(&ToKeeper::Check { owner: grant.owner }).await;
        assert!(matches!(client.receive().await, FromKeeper::Checked(_)));
        client.send_bytes(&bytes).await;
        assert_eq!(is_refused(&mut client).await.0, expected, "{}", bytes.escape_ascii());
    }
    holder.hears_nothing(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_line_is_closed_after_a_while() {
    let world = World::new();
    for half_a_line in [&b""[..], b"{\"type\":\"hel"] {
        let mut client = world.connect();
        client.send_bytes(half_a_line).await;
        client.hears_nothing(9 * SECOND).await;
        assert_eq!(is_refused(&mut client).await.0, ErrorKind::Silence);
    }
    // A checking one may stay: it waits for the next question, not for its first.
    let mut client = world.connect();
    client.send(&ToKeeper::Check { owner: OwnerId::from_u128(1) }).await;
    client.receive().await;
    client.hears_nothing(600 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_of_64_kib_is_served() {
    let world = World::new();
    let mut client = world.connect();
    let line = padded(MAX_LINE);
    assert_eq!(line.len(), MAX_LINE + 1, "and its end");
    client.send_bytes(&line).await;
    assert_eq!(client.receive().await, FromKeeper::Began { version: 1 });
    client.take(1, "a").await;
}

#[tokio::test(start_paused = true)]
async fn half_a_line_holds_up_nothing_and_an_end_within_it_is_a_crash() {
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "a").await;
    let release = encode(&finished(1)).unwrap();
    client.send_bytes(&release[..release.len() / 2]).await;
    client.hears_nothing(60 * SECOND).await;
    assert!(world.store.renewals("a") >= 5, "{} renewals", world.store.renewals("a"));
    client.vanish().await;
    world.all_ended().await;
    assert!(world.store.is_free("a"));
    assert_eq!(world.keeper.counts().crash_releases, 1);
}

#[tokio::test(start_paused = true)]
async fn bytes_may_come_one_at_a_time() {
    let world = World::new();
    let mut client = world.connect();
    let lines =
        [padded(300), encode(&ToKeeper::Acquire(Box::new(acquire(1, "é")))).unwrap(), encode(&finished(1)).unwrap()];
    for byte in lines.concat() {
        client.send_bytes(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.receive().await, FromKeeper::Began { version: 1 });
    loop {
        match client.receive().await {
            FromKeeper::Granted { id: 1, .. } => {}
            FromKeeper::Released { id: 1 } => break,
            line => panic!("{line:?}"),
        }
    }
    world.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_release_of_what_was_never_asked_for_is_answered_and_what_comes_after_the_end_is_ignored() {
    let world = World::new();
    let mut client = world.begin().await;
    for id in [0, 7, u64::MAX] {
        client.send(&finished(id)).await;
        assert_eq!(client.receive().await, FromKeeper::Released { id });
    }
    client.take(1, "a").await;
    client.release(1, ReleaseReason::Finished, true).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 });
    client.send(&finished(1)).await;
    assert_eq!(client.receive().await, FromKeeper::Released { id: 1 }, "twice does no harm");
    // The end, and in one go with it what has no place behind an end.
    let behind = [ToKeeper::End, ToKeeper::End, ToKeeper::Acquire(Box::new(acquire(2, "b")))];
    let behind = behind.map(|line| encode(&line).unwrap()).concat();
    client.send_bytes(&behind).await;
    while client.next().await.is_some() {}
    world.all_ended().await;
    assert_eq!(world.store.requests("b", |_| true).len(), 0);
}
