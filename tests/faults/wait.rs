//! Polling reads of a contender while somebody else holds the key: it goes on waiting, takes nothing from the holder, and
//! gets the row once it is free; or a typed error is told.

use std::time::Duration;

use leasehold::session::FailKind;
use leasehold_sandbox::faults::Step;

use crate::LONG;
use crate::session::Ask;
use crate::stage::Stage;
use crate::weather::{self, Weather};

/// It waits on; before the grant a renewal is answered or not.
#[derive(Clone, Copy, Debug)]
struct Waited {
    confirmed: bool,
}

const fn waited_on() -> Waited {
    Waited { confirmed: false }
}

const fn confirmed() -> Waited {
    Waited { confirmed: true }
}

async fn waited(weather: Weather, expected: Waited) {
    let stage = Stage::new().await;
    let mut holder = stage.direct().await;
    holder.ask(Ask::patient()).await;
    let held = holder.granted().await;

    let mut contender = stage.through(&weather).await;
    let injected = stage.begin(&weather, Step::Read);
    // A look that hangs may take a third of the lease.
    contender.ask(Ask::patient().lease(if weather.hangs() { 3_000 } else { 60_000 })).await;
    let looks = weather.least();
    if let Some(injected) = &injected {
        injected.reached_by(looks, LONG).await.unwrap();
    }
    // Two looks more: it waits on, and for the holder, whose lease is not over.
    stage.until_count(Step::Read, looks + 2).await;
    contender.assert_silent().await;
    let row = stage.row().await;
    assert_eq!((row.owner, row.version), (Some(held.owner.to_string()), held.token), "{weather:?}");
    assert!(holder.holds(held.owner));

    holder.release().await;
    let grant = contender.granted().await;
    let writes = 1 + u64::from(expected.confirmed);
    assert_eq!((grant.token, grant.attempts), (held.token + writes, 2), "{weather:?}");
    assert_eq!(stage.row().await.owner, Some(grant.owner.to_string()), "{weather:?}");
    assert_eq!(stage.count(Step::TakeOver), 0);
    assert_eq!(holder.keeper.counts().lost, 0);
}

cells! { waited;
    reply_lost: weather::reply_lost() => waited_on();
    request_lost: weather::request_lost() => waited_on();
    reply_hangs: weather::reply_hangs() => waited_on();
    reply_late: weather::reply_late(Duration::from_millis(1_500)) => waited_on();
    reset_before_the_read: weather::reset_before() => waited_on();
    reset_after_the_read: weather::reset_after() => waited_on();
    server_error: weather::server_error() => waited_on();
    unavailable: weather::unavailable() => waited_on();
    throttled_once: weather::throttled(1) => waited_on();
    throttled_five_times: weather::throttled(5) => waited_on();
    transaction_conflict_once: weather::conflict(1) => waited_on();
    transaction_conflict_five_times: weather::conflict(5) => waited_on();
    slow: weather::slow() => waited_on();
    date_unusable: weather::unusable_date(1) => waited_on();
    date_unusable_throughout: weather::unusable_dates() => confirmed();
    /// One answer says that the holder's lease was over long ago, those around it don't: it is not believed.
    date_wrong_once: weather::wrong_date() => confirmed();
    date_an_hour_behind: weather::wrong_dates(-3_600) => waited_on();
}

/// The wait ends with this, and the holder has lost nothing.
async fn ended(weather: Weather, expected: Option<FailKind>) {
    let stage = Stage::new().await;
    let mut holder = stage.direct().await;
    holder.ask(Ask::patient()).await;
    let held = holder.granted().await;

    let mut contender = stage.through(&weather).await;
    let injected = stage.begin(&weather, Step::Read).unwrap();
    contender.ask(Ask::patient().wait(2_000)).await;
    match expected {
        Some(kind) => assert_eq!(contender.failed().await, kind, "{weather:?}"),
        None => assert_eq!(contender.busy().await.request_id, "", "the holder is named"),
    }
    assert!(!injected.met().is_empty(), "{weather:?} was met");
    let row = stage.row().await;
    assert_eq!((row.owner, row.version), (Some(held.owner.to_string()), held.token), "{weather:?}");
    assert!(holder.holds(held.owner));
}

cells! { ended;
    token_expired: weather::token_expired() => Some(FailKind::Credentials);
    black_hole: weather::black_hole() => None;
}
