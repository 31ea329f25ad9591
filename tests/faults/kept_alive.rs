//! A connection that had served before and breaks: each request is sent at most once, whatever the client below does.

use std::time::Duration;

use leasehold::clock::Wall;
use leasehold::protocol::{FailureKind, Outcome, Request, Version};
use leasehold::store::{DynamoDb, Store};
use leasehold_sandbox::faults::{End, Fault, Step};

use crate::KEY;
use crate::session::Ask;
use crate::stage::{Stage, until};
use crate::support::{lock, owner, sdk_config};
use crate::weather;

const SOON: Duration = Duration::from_secs(30);

fn acquire(number: u128) -> Request {
    let (at, lease) = (Wall::from_millis(1_750_000_000_000), Duration::from_secs(60));
    Request::Acquire { owner: owner(number), version: None, at, lease, expires_at: None, unknown: vec![], served: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_meets_a_reset_is_not_sent_again() {
    let stage = Stage::new().await;
    let store = DynamoDb::with_config(sdk_config(stage.proxy.url()));
    let requests = [
        (Step::Acquire, acquire(1)),
        (
            Step::Renew,
            Request::Renew {
                owner: owner(1),
                version: Version::Counter(1),
                new_version: Version::Counter(2),
                expires_at: None,
            },
        ),
        (Step::Release, Request::Release { owners: vec![owner(1)], ttl: None, hold: None }),
        (Step::Read, Request::Read),
    ];
    for (step, request) in requests {
        for fault in [Fault::LoseRequest(End::Reset), Fault::LoseReply(End::Reset), Fault::LoseRequest(End::Close)] {
            store.send(&lock("another key"), Request::Read, SOON).await;
            let before = stage.count(step);
            let met = stage.proxy.inject(step, 1, fault.clone());
            let answer = store.send(&lock(KEY), request.clone(), SOON).await;
            let Outcome::Failed(failure) = answer.outcome else { panic!("{step:?} {fault:?}: {answer:?}") };
            assert_eq!(failure.kind, FailureKind::Connection, "{step:?} {fault:?}: {failure}");
            assert_eq!((met.met().len(), stage.count(step) - before), (1, 1), "{step:?} {fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_on_a_connection_that_was_reset_while_idle_is_sent_once_at_most() {
    let stage = Stage::new().await;
    let store = DynamoDb::with_config(sdk_config(stage.proxy.url()));
    for number in 1..=50 {
        store.send(&lock("another key"), Request::Read, SOON).await;
        stage.proxy.reset_connections();
        // Whether the client has noticed yet is left to chance: both must be right.
        let answer = store.send(&lock(KEY), acquire(number), SOON).await;
        let me = owner(number).to_string();
        let sent = stage.proxy.seen().iter().filter(|passing| passing.owner.as_deref() == Some(&me)).count();
        match answer.outcome {
            Outcome::Written { .. } | Outcome::Refused { .. } => assert_eq!(sent, 1),
            Outcome::Failed(failure) => {
                assert_eq!(failure.kind, FailureKind::Connection, "{failure}");
                assert!(sent <= 1, "{sent}");
            }
            Outcome::Read { .. } | Outcome::Numbered { .. } => panic!("{answer:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_lives_on_when_every_idle_connection_is_reset() {
    let stage = Stage::new().await;
    let before = stage.put_free().await;
    let mut session = stage.through(&weather::black_hole()[0]).await;
    stage.proxy.reset_connections();
    session.ask(Ask::patient().lease(3_000)).await;
    let grant = session.granted().await;
    assert_eq!(grant.token, before + 1, "acquired once");
    for renewals in 1..=3 {
        stage.proxy.reset_connections();
        until(|| session.keeper.counts().renewals >= renewals).await;
        assert!(session.holds(grant.owner));
    }
    stage.proxy.reset_connections();
    session.release().await;
    assert_eq!(stage.row().await.owner, None);
}
