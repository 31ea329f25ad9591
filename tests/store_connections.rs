//! Time limits, replies that are there when the timer fires, and connections that are warmed and dropped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use aws_credential_types::provider::future::ProvideCredentials as ProvideFuture;
use aws_sdk_dynamodb::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};
use leasehold::clock::Wall;
use leasehold::protocol::{Answer, FailureKind, Outcome, Request, Version};
use leasehold::session::Table;
use leasehold::store::{DynamoDb, Store};
use support::fault_server::{Fault, FaultServer};
use support::{lock, owner, sdk_config};

const LONG: Duration = Duration::from_secs(10);

fn renew() -> Request {
    Request::Renew { owner: owner(1), version: Version::Counter(7), new_version: Version::Counter(8), expires_at: None }
}

fn renewed() -> Fault {
    Fault::answer(200, r#"{"Attributes":{"version":{"N":"8"}}}"#)
}

fn kind_of(answer: &Answer) -> FailureKind {
    match &answer.outcome {
        Outcome::Failed(failure) => failure.kind,
        other => panic!("{other:?}"),
    }
}

/// What the server's threads count comes a moment after what the client sees.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_request_without_an_answer_is_given_up_and_its_connection_closed() {
    let server = FaultServer::always(Fault::Hang);
    let store = DynamoDb::with_config(sdk_config(server.url()));
    let start = Instant::now();
    let answer = store.send(&lock("k"), renew(), Duration::from_millis(200)).await;
    let took = start.elapsed();
    assert_eq!(kind_of(&answer), FailureKind::Timeout);
    assert_eq!(answer.date, None);
    assert!(took >= Duration::from_millis(200) && took < Duration::from_secs(5), "{took:?}");
    eventually("the connection is closed", || server.closed() == 1).await;
    assert_eq!((server.seen().len(), store.usage().failed), (1, 1));
}

/// A freeze stops this process and not the server: when it is over, the timer has fired and the reply is there.
#[tokio::test]
async fn a_reply_that_is_there_when_the_timer_fires_is_used() {
    let server = FaultServer::start(|number| match number {
        0 => renewed(),
        _ => renewed().after(Duration::from_millis(50)),
    });
    let store = DynamoDb::with_config(sdk_config(server.url()));
    store.send(&lock("k"), renew(), LONG).await;
    for _ in 0..10 {
        let key = lock("k");
        let request = store.send(&key, renew(), Duration::from_millis(100));
        let freeze = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            std::thread::sleep(Duration::from_millis(200));
        };
        let (answer, ()) = tokio::join!(request, freeze);
        assert_eq!(answer.outcome, Outcome::written(Version::Counter(8)));
    }
}

#[tokio::test]
async fn the_connection_is_used_again_until_it_is_dropped() {
    let server = FaultServer::always(renewed());
    let store = DynamoDb::with_config(sdk_config(server.url()));
    for _ in 0..3 {
        store.send(&lock("k"), renew(), LONG).await;
    }
    assert_eq!((server.accepted(), server.closed()), (1, 0));

    store.drop_connections();
    eventually("the old connection is closed", || server.closed() == 1).await;
    for _ in 0..3 {
        let answer = store.send(&lock("k"), renew(), LONG).await;
        assert_eq!(answer.outcome, Outcome::written(Version::Counter(8)));
    }
    assert_eq!((server.accepted(), server.closed()), (2, 1));
}

#[tokio::test]
async fn what_is_in_flight_when_connections_are_dropped_is_given_up_with_them() {
    let server = FaultServer::always(Fault::Hang);
    let store = Arc::new(DynamoDb::with_config(sdk_config(server.url())));
    let in_flight = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.send(&lock("k"), renew(), LONG).await }
    });
    eventually("the request came", || server.seen().len() == 1).await;
    store.drop_connections();
    let answer = in_flight.await.unwrap();
    assert_eq!(kind_of(&answer), FailureKind::Connection);
    eventually("the connection is closed", || server.closed() == 1).await;
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let server = FaultServer::always(Fault::Hang);
    let store = DynamoDb::with_config(sdk_config(server.url()));
    let key = lock("k");
    tokio::select! {
        answer = store.send(&key, renew(), LONG) => panic!("{answer:?}"),
        () = eventually("the request came", || server.seen().len() == 1) => {}
    }
    eventually("the connection is closed", || server.closed() == 1).await;
}

#[tokio::test]
async fn a_warm_connection_serves_the_first_request() {
    let denied = Fault::error(400, "AccessDeniedException", "not authorized to perform: dynamodb:GetItem");
    let server = FaultServer::start(move |number| if number == 0 { denied.clone() } else { renewed() });
    let store = DynamoDb::with_config(sdk_config(server.url()));
    store.warm_up().await;
    store.send(&lock("k"), renew(), LONG).await;
    assert_eq!(server.accepted(), 1);
    let operations: Vec<_> = server.seen().into_iter().map(|seen| seen.operation).collect();
    assert_eq!(operations, ["GetItem", "UpdateItem"]);
    assert_eq!(store.usage().reads, 0, "only the protocol's requests are counted");
}

#[tokio::test]
async fn warming_reads_from_the_table_it_was_given() {
    let server = FaultServer::always(Fault::answer(200, "{}"));
    let table = Table { key_attribute: "PK".into(), ..Table::new("my-locks") };
    DynamoDb::with_config(sdk_config(server.url())).warming(table).warm_up().await;
    let seen = server.seen();
    assert_eq!(seen[0].body["TableName"], "my-locks");
    assert_eq!(seen[0].body["Key"]["PK"]["S"], "leasehold-warm-up");
}

#[tokio::test]
async fn warming_does_not_wait_for_long() {
    let server = FaultServer::always(Fault::Hang);
    let start = Instant::now();
    DynamoDb::with_config(sdk_config(server.url())).warm_up().await;
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn the_answer_to_a_request_that_was_given_up_reaches_nobody() {
    let server = FaultServer::start(|number| match number {
        0 => Fault::answer(200, r#"{"Attributes":{"version":{"N":"8"}}}"#).after(Duration::from_millis(300)),
        _ => Fault::answer(200, r#"{"Attributes":{"version":{"N":"1700000000001"}}}"#),
    });
    let store = DynamoDb::with_config(sdk_config(server.url()));
    let answer = store.send(&lock("k"), renew(), Duration::from_millis(100)).await;
    assert_eq!(kind_of(&answer), FailureKind::Timeout);
    let (at, lease) = (Wall::from_millis(1_700_000_000_000), Duration::from_secs(30));
    let acquire = Request::Acquire {
        owner: owner(2),
        version: None,
        at,
        lease,
        expires_at: None,
        unknown: vec![owner(1)],
        served: None,
    };
    let answer = store.send(&lock("k"), acquire, LONG).await;
    assert_eq!(answer.outcome, Outcome::written(Version::Counter(1_700_000_000_001)));
}

/// Counts how often it is asked for credentials.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<AtomicU32>);

impl ProvideCredentials for Counting {
    fn provide_credentials<'a>(&'a self) -> ProvideFuture<'a>
    where
        Self: 'a,
    {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        ProvideFuture::ready(Ok(Credentials::new(format!("AKID{asked}"), "not a secret", None, None, "tests")))
    }
}

impl Counting {
    fn asked(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn store(&self, server: &FaultServer) -> Arc<DynamoDb> {
        let config = sdk_config(server.url()).into_builder();
        let config = config.credentials_provider(SharedCredentialsProvider::new(self.clone())).build();
        Arc::new(DynamoDb::with_config(config))
    }
}

/// Many leases renew by the same credentials, which expire for all of them at once.
#[tokio::test]
async fn refused_credentials_are_asked_for_anew_by_the_same_connections_and_once_for_all() {
    const AT_ONCE: usize = 10;
    let expired = Fault::error(400, "ExpiredTokenException", "The security token included in the request is expired");
    // All of the first ones are under way before one of them is answered.
    let server = FaultServer::always(expired.once(AT_ONCE));
    let began = Instant::now();
    let credentials = Counting::default();
    let store = credentials.store(&server);
    let renewing: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.send(&lock("k"), renew(), LONG).await })
        })
        .collect();
    for renewing in renewing {
        assert_eq!(kind_of(&renewing.await.unwrap()), FailureKind::Credentials);
    }
    let accepted = server.accepted();
    assert_eq!(credentials.asked(), 1, "the next request asks anew");
    for _ in 0..20 {
        assert_eq!(kind_of(&store.send(&lock("k"), renew(), LONG).await), FailureKind::Credentials);
    }
    let most = 2 + u32::try_from(began.elapsed().as_millis() / 250).unwrap();
    assert!((2..=most).contains(&credentials.asked()), "{} of {most}", credentials.asked());
    assert_eq!(server.accepted(), accepted, "a connection has nothing to do with credentials");
}

#[tokio::test]
async fn credentials_that_are_refused_while_the_connection_is_warmed_are_asked_for_anew() {
    let expired = Fault::error(400, "ExpiredTokenException", "The security token included in the request is expired");
    let server = FaultServer::start(move |number| if number == 0 { expired.clone() } else { renewed() });
    let credentials = Counting::default();
    let store = credentials.store(&server);
    store.warm_up().await;
    let answer = store.send(&lock("k"), renew(), LONG).await;
    assert_eq!(answer.outcome, Outcome::written(Version::Counter(8)));
    assert_eq!((credentials.asked(), server.accepted()), (2, 1));
}

/// As a freeze gives up all that is under way: a request that waits on the connections of refused credentials as well.
#[tokio::test]
async fn what_is_in_flight_since_before_credentials_were_refused_is_given_up_with_the_connections() {
    let expired = Fault::error(400, "ExpiredTokenException", "The security token included in the request is expired");
    let server = FaultServer::start(move |number| if number == 0 { Fault::Hang } else { expired.clone() });
    let store = Counting::default().store(&server);
    let in_flight = tokio::spawn({
        let store = store.clone();
        async move { store.send(&lock("k"), renew(), LONG).await }
    });
    eventually("the request came", || server.seen().len() == 1).await;
    assert_eq!(kind_of(&store.send(&lock("k"), renew(), LONG).await), FailureKind::Credentials);
    store.drop_connections();
    assert_eq!(kind_of(&in_flight.await.unwrap()), FailureKind::Connection);
}
