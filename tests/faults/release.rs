//! Releasing a lease, with a contender waiting for it: the row is freed, the contender gets it, and nothing that comes
//! late takes it from the contender; or a typed error is told and the row frees itself after its lease.

use std::time::Duration;

use leasehold::session::FailKind;
use leasehold_sandbox::faults::Step;

use crate::LONG;
use crate::session::{Ask, Grant, Session};
use crate::stage::Stage;
use crate::weather::{self, Weather};

/// Freed, by so many requests.
type Requests = usize;

async fn freed(weather: Weather, requests: Requests) {
    let stage = Stage::new().await;
    // A release that hangs may take a third of the lease.
    let (mut holder, held, mut contender) = held_and_wanted(&stage, &weather, 9_000).await;
    let injected = stage.begin(&weather, Step::Release);
    let before = stage.row().await;
    holder.release().await;
    if let Some(injected) = injected {
        assert!(injected.met().len() >= weather.least(), "{weather:?} was met");
    }
    assert_eq!(stage.count(Step::Release), requests, "{weather:?}");
    assert!(!holder.holds(held.owner));

    let next = contender.granted().await;
    assert!(next.token > before.version, "{weather:?}");
    assert_eq!(contender.keeper.counts().takeovers, 0, "it was free, not abandoned");
    // Everything about the release is over; whatever of it came late, the row is the contender's.
    assert_eq!(stage.row().await.owner, Some(next.owner.to_string()), "{weather:?}");
    assert_eq!((holder.keeper.counts().lost, holder.keeper.counts().release_failures), (0, 0));
}

async fn held_and_wanted(stage: &Stage, weather: &Weather, lease: u64) -> (Session, Grant, Session) {
    let mut holder = stage.through(weather).await;
    holder.ask(Ask::patient().lease(lease)).await;
    let held = holder.granted().await;
    let mut contender = stage.direct().await;
    contender.ask(Ask::patient()).await;
    (holder, held, contender)
}

cells! { freed;
    reply_lost: weather::reply_lost() => 2;
    request_lost: weather::request_lost() => 2;
    reply_hangs: weather::reply_hangs() => 2;
    reply_late: weather::reply_late(Duration::from_millis(4_000)) => 2;
    reset_before_the_write: weather::reset_before() => 2;
    reset_after_the_write: weather::reset_after() => 2;
    server_error: weather::server_error() => 2;
    server_error_although_written: weather::server_error_written() => 2;
    unavailable: weather::unavailable() => 2;
    throttled_once: weather::throttled(1) => 2;
    throttled_five_times: weather::throttled(5) => 6;
    transaction_conflict_once: weather::conflict(1) => 2;
    transaction_conflict_five_times: weather::conflict(5) => 6;
    token_expired: weather::token_expired() => 2;
    slow: weather::slow() => 1;
    date_unusable_throughout: weather::unusable_dates() => 1;
    date_wrong_once: weather::wrong_date() => 1;
}

/// It is told that the row is not free; the contender takes over when the lease is over.
async fn left_to_end(weather: Weather, kind: FailKind) {
    let stage = Stage::new().await;
    let (mut holder, held, mut contender) = held_and_wanted(&stage, &weather, 1_000).await;
    let injected = stage.begin(&weather, Step::Release).unwrap();
    holder.give_back().await;
    injected.reached(LONG).await.unwrap();
    let next = contender.granted().await;
    assert_eq!(contender.keeper.counts().takeovers, 1);
    assert!(next.token > held.token);
    assert_eq!(holder.failed().await, kind, "{weather:?}");
    assert_eq!(holder.keeper.counts().release_failures, 1);
    assert_eq!(stage.row().await.owner, Some(next.owner.to_string()), "{weather:?}");
}

cells! { left_to_end;
    token_expired_for_good: weather::token_expired_for_good() => FailKind::Credentials;
    black_hole: weather::black_hole() => FailKind::Timeout;
}
