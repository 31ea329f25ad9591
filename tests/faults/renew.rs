//! Renewing a held lease, with a contender waiting for it all the time: it stays held and nobody else gets it; or it is
//! lost, with the reason, before anybody else has it.

use std::time::Duration;

use leasehold_sandbox::faults::Step;

use crate::LONG;
use crate::session::{Ask, Session};
use crate::stage::{Stage, until};
use crate::weather::{self, Weather};

/// It stays held.
#[derive(Clone, Copy, Debug)]
struct Renewed {
    /// The lease, in milliseconds: long enough for as many failures as the fault makes, each a twelfth of it.
    lease: u64,
    /// Renewals that landed without an answer that says so.
    unseen: u64,
}

const fn renewed() -> Renewed {
    Renewed { lease: 3_000, unseen: 0 }
}

const fn adopted() -> Renewed {
    Renewed { lease: 3_000, unseen: 1 }
}

/// Five failures in a row take three quarters of what a lease is believed; the rest is for a slow machine's round trips.
const fn five_in_a_row() -> Renewed {
    Renewed { lease: 12_000, unseen: 0 }
}

/// A contender that waits. It goes past the proxy, unless all of DynamoDB has another `Date`.
async fn contender(stage: &Stage, weather: &Weather) -> Session {
    let mut contender =
        if weather.is_from_the_beginning() { stage.through(weather).await } else { stage.direct().await };
    contender.ask(Ask::patient()).await;
    contender
}

async fn renewed_on(weather: Weather, expected: Renewed) {
    let stage = Stage::new().await;
    let mut holder = stage.through(&weather).await;
    holder.ask(Ask::patient().lease(expected.lease)).await;
    let held = holder.granted().await;
    let at_grant = holder.keeper.counts().renewals;
    let mut contender = contender(&stage, &weather).await;
    let injected = stage.begin(&weather, Step::Renew);

    if let Some(injected) = &injected {
        injected.reached_by(weather.least(), LONG).await.unwrap();
    }
    // Three renewals in a row carry it to where it would be over without them.
    let keeper = holder.keeper.clone();
    let renewals = || keeper.counts().renewals;
    let before = renewals();
    until(|| renewals() >= before + 3 || holder.keeper.counts().lost > 0).await;
    assert!(holder.holds(held.owner), "{weather:?}");
    holder.assert_silent().await;
    contender.assert_silent().await;
    assert_eq!(stage.row().await.owner, Some(held.owner.to_string()), "{weather:?}");

    holder.release().await;
    let next = contender.granted().await;
    // Each renewal counted the version up by one, and the next grant did; a renewal may be under way at the release.
    let counted = next.token - held.token - 1;
    let landed = renewals() - at_grant + expected.unseen;
    assert!((landed..=landed + 2).contains(&counted), "{weather:?}: {counted}, not {landed}");
    assert_eq!(holder.keeper.counts().lost, 0);
}

cells! { renewed_on;
    reply_lost: weather::reply_lost() => adopted();
    request_lost: weather::request_lost() => renewed();
    reply_hangs: weather::reply_hangs() => adopted();
    reply_late: weather::reply_late(Duration::from_millis(1_500)) => adopted();
    reset_before_the_write: weather::reset_before() => renewed();
    reset_after_the_write: weather::reset_after() => adopted();
    server_error: weather::server_error() => renewed();
    server_error_although_written: weather::server_error_written() => adopted();
    unavailable: weather::unavailable() => renewed();
    throttled_once: weather::throttled(1) => renewed();
    throttled_five_times: weather::throttled(5) => five_in_a_row();
    transaction_conflict_once: weather::conflict(1) => renewed();
    transaction_conflict_five_times: weather::conflict(5) => five_in_a_row();
    token_expired: weather::token_expired() => renewed();
    slow: weather::slow() => renewed();
    date_unusable: weather::unusable_date(1) => renewed();
    date_unusable_throughout: weather::unusable_dates() => renewed();
    /// One answer says that it is an hour earlier: the next renewal must not write an `expires_at` that is over.
    date_wrong_once: weather::wrong_date() => renewed();
    date_an_hour_ahead: weather::wrong_dates(3_600) => renewed();
    date_an_hour_behind: weather::wrong_dates(-3_600) => renewed();
}

/// It can't be renewed any more: who holds it is told so, and has not believed in it for some time when another has it.
async fn lost(weather: Weather, _: ()) {
    let stage = Stage::new().await;
    let mut holder = stage.through(&weather).await;
    holder.ask(Ask::patient().lease(1_500)).await;
    let held = holder.granted().await;
    let mut contender = contender(&stage, &weather).await;
    let injected = stage.begin(&weather, Step::Renew).unwrap();
    injected.reached(LONG).await.unwrap();

    let next = contender.granted().await;
    assert!(!holder.holds(held.owner), "by its own clocks it is over at 90 % of the lease, for others at all of it");
    let reason = holder.lost().await;
    assert!(
        reason.starts_with("no renewal was answered before the lease ended, the last one: "),
        "{weather:?}: {reason}"
    );
    assert!(next.token > held.token);
    assert_eq!(stage.row().await.owner, Some(next.owner.to_string()), "{weather:?}");
    assert_eq!(holder.keeper.counts().lost, 1);
    assert_eq!(contender.keeper.counts().takeovers, 1);
}

cells! { lost;
    token_expired_for_good: weather::token_expired_for_good() => ();
    black_hole: weather::black_hole() => ();
}
