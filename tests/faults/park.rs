//! Keeping a key held after the work is done, with a contender at the door: it stays held for its minimum under an owner
//! that is nobody's, whatever becomes of the write; or a typed error is told and the lease ends by itself.

use std::time::Duration;

use leasehold::session::FailKind;
use leasehold_sandbox::faults::{Fault, Step};

use tokio::time::{sleep, timeout};

use crate::LONG;
use crate::session::Ask;
use crate::stage::Stage;
use crate::weather::{self, Weather};

/// Longer than any of these tests takes.
const MINIMUM: Duration = Duration::from_secs(3_600);

/// Parked, by so many requests.
async fn parked(weather: Weather, requests: usize) {
    let stage = Stage::new().await;
    let mut holder = stage.through(&weather).await;
    holder.ask(Ask::patient().lease(9_000)).await;
    let held = holder.granted().await;
    let injected = stage.begin(&weather, Step::Park);
    holder.keep(MINIMUM).await;
    holder.released().await;
    if let Some(injected) = injected {
        assert!(injected.met().len() >= weather.least(), "{weather:?} was met");
    }
    assert_eq!((stage.count(Step::Park), stage.count(Step::Release)), (requests, 0), "{weather:?}");
    let counts = holder.keeper.counts();
    assert_eq!((counts.parked, counts.release_failures, counts.lost), (1, 0, 0));
    assert!(!holder.holds(held.owner));

    let row = stage.row().await;
    assert!(row.owner.is_some_and(|owner| owner != held.owner.to_string()) && !row.ttl, "{weather:?}");
    let mut second = stage.direct().await;
    second.ask(Ask::patient().wait(0)).await;
    assert!(second.busy().await.parked, "{weather:?}");
}

cells! { parked;
    reply_lost: weather::reply_lost() => 2;
    request_lost: weather::request_lost() => 2;
    reply_hangs: weather::reply_hangs() => 2;
    reset_before_the_write: weather::reset_before() => 2;
    reset_after_the_write: weather::reset_after() => 2;
    server_error: weather::server_error() => 2;
    server_error_although_written: weather::server_error_written() => 2;
    throttled_five_times: weather::throttled(5) => 6;
    transaction_conflict_once: weather::conflict(1) => 2;
    token_expired: weather::token_expired() => 2;
    slow: weather::slow() => 1;
    date_unusable_throughout: weather::unusable_dates() => 1;
    date_wrong_once: weather::wrong_date() => 1;
}

/// It is told that nothing was kept; the contender takes over when the lease is over.
async fn left_to_end(weather: Weather, kind: FailKind) {
    let stage = Stage::new().await;
    let mut holder = stage.through(&weather).await;
    holder.ask(Ask::patient().lease(1_000)).await;
    let held = holder.granted().await;
    let mut contender = stage.direct().await;
    contender.ask(Ask::patient()).await;
    let injected = stage.begin(&weather, Step::Park).unwrap();
    holder.keep(MINIMUM).await;
    injected.reached(LONG).await.unwrap();
    let next = contender.granted().await;
    assert_eq!(contender.keeper.counts().takeovers, 1);
    assert!(next.token > held.token);
    assert_eq!(holder.failed().await, kind, "{weather:?}");
    assert_eq!(stage.row().await.owner, Some(next.owner.to_string()), "{weather:?}");
}

cells! { left_to_end;
    token_expired_for_good: weather::token_expired_for_good() => FailKind::Credentials;
    black_hole: weather::black_hole() => FailKind::Timeout;
}

/// A renewal is carried out unseen; the parking meets its version, and is sent again with that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_own_renewal_that_landed_unseen_costs_one_more_request() {
    let stage = Stage::new().await;
    let mut holder = stage.through(&Weather::Slow).await;
    holder.ask(Ask::patient().lease(9_000)).await;
    let held = holder.granted().await;
    let renewal = stage.proxy.inject(Step::Renew, 1, Fault::HoldReply);
    renewal.reached(LONG).await.unwrap();
    let landed = async {
        while stage.row().await.version == held.token {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, landed).await.unwrap();
    holder.keep(MINIMUM).await;
    holder.released().await;
    assert_eq!(stage.count(Step::Park), 2);
    let row = stage.row().await;
    assert_eq!(row.version, held.token + 2);
    assert!(row.owner.is_some_and(|owner| owner != held.owner.to_string()));
    assert_eq!(holder.keeper.counts().parked, 1);
}

/// The minimum is over soon: who waits for the key gets it then, by taking it over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_gets_the_key_when_the_minimum_is_over() {
    let stage = Stage::new().await;
    let mut holder = stage.direct().await;
    holder.ask(Ask::patient()).await;
    let held = holder.granted().await;
    holder.keep(Duration::from_secs(1)).await;
    holder.released().await;
    let mut contender = stage.direct().await;
    contender.ask(Ask::patient()).await;
    let next = contender.granted().await;
    assert!(next.token > held.token);
    assert_eq!(stage.row().await.owner, Some(next.owner.to_string()));
}
