//! Taking over a row whose holder is long gone: it is taken over exactly once, or a typed error is told and the row stays
//! as it was.

use std::time::Duration;

use leasehold::session::FailKind;
use leasehold_sandbox::faults::Step;

use crate::session::Ask;
use crate::stage::{Stage, abandoned_by};
use crate::weather::{self, Weather};

/// The row is taken over.
#[derive(Clone, Copy, Debug)]
struct TakenOver {
    /// Writes that were sent to take it: the first finds out that it is held.
    attempts: usize,
    /// Those that landed: the last one replaced those before it.
    landed: u64,
    /// Whether a renewal had to be answered before the grant.
    confirmed: bool,
    /// Whether it had to be watched for its lease, for want of a `Date` that says that it is over.
    watched: bool,
}

const fn at_once() -> TakenOver {
    TakenOver { attempts: 2, landed: 1, confirmed: false, watched: false }
}

/// So many takeovers failed without landing.
const fn after(failed: usize) -> TakenOver {
    TakenOver { attempts: 2 + failed, landed: 1, confirmed: false, watched: false }
}

/// A takeover landed unseen: the second is refused by it, and an acquisition replaces it.
const fn replaced() -> TakenOver {
    TakenOver { attempts: 4, landed: 2, confirmed: false, watched: false }
}

const fn watched(confirmed: bool) -> TakenOver {
    TakenOver { attempts: 2, landed: 1, confirmed, watched: true }
}

async fn taken_over(weather: Weather, expected: TakenOver) {
    let stage = Stage::new().await;
    let before = stage.put_abandoned().await;
    let mut session = stage.through(&weather).await;
    let injected = stage.begin(&weather, Step::TakeOver);
    // Of three seconds one hanging attempt may have half.
    let wait = if weather.hangs() { 3_000 } else { 60_000 };
    session.ask(Ask::patient().wait(wait)).await;
    let grant = session.granted().await;

    if let Some(injected) = injected {
        assert!(injected.met().len() >= weather.least(), "{weather:?} was met");
    }
    let row = stage.row().await;
    assert_eq!(row.owner, Some(grant.owner.to_string()), "{weather:?}");
    let writes = expected.landed + u64::from(expected.confirmed);
    assert_eq!((row.version, grant.token), (before + writes, before + writes), "{weather:?}");
    let attempts = stage.count(Step::Acquire) + stage.count(Step::TakeOver);
    assert_eq!((grant.attempts, attempts), (expected.attempts, expected.attempts), "{weather:?}");
    assert_eq!(stage.count(Step::Renew), usize::from(expected.confirmed), "{weather:?}");
    assert_eq!(stage.count(Step::Read) > 0, expected.watched, "{weather:?}");
    assert!(session.holds(grant.owner));
}

cells! { taken_over;
    reply_lost: weather::reply_lost() => replaced();
    request_lost: weather::request_lost() => after(1);
    reply_hangs: weather::reply_hangs() => replaced();
    reply_late: weather::reply_late(Duration::from_millis(2_000)) => replaced();
    reset_before_the_write: weather::reset_before() => after(1);
    reset_after_the_write: weather::reset_after() => replaced();
    server_error: weather::server_error() => after(1);
    server_error_although_written: weather::server_error_written() => replaced();
    unavailable: weather::unavailable() => after(1);
    throttled_once: weather::throttled(1) => after(1);
    throttled_five_times: weather::throttled(5) => after(5);
    transaction_conflict_once: weather::conflict(1) => after(1);
    transaction_conflict_five_times: weather::conflict(5) => after(5);
    slow: weather::slow() => at_once();
    date_unusable_throughout: weather::unusable_dates() => watched(true);
    date_an_hour_ahead: weather::wrong_dates(3_600) => at_once();
    date_an_hour_behind: weather::wrong_dates(-3_600) => watched(false);
}

/// A typed error, which is not that somebody held it; the row is as it was.
async fn refused(weather: Weather, expected: (FailKind, usize)) {
    let (kind, takeovers) = expected;
    let stage = Stage::new().await;
    let before = stage.put_abandoned().await;
    let mut session = stage.through(&weather).await;
    stage.begin(&weather, Step::TakeOver);
    session.ask(Ask::patient().lease(3_000).wait(2_000).answer_within(4_000)).await;
    assert_eq!(session.failed().await, kind, "{weather:?}");
    assert!((1..=takeovers).contains(&stage.count(Step::TakeOver)), "{}", stage.count(Step::TakeOver));
    let row = stage.row().await;
    assert_eq!((row.owner, row.version), (Some(abandoned_by()), before), "{weather:?}");
}

cells! { refused;
    token_expired: weather::token_expired() => (FailKind::Credentials, 1);
    /// Tried again at the pace of polling, not as fast as it is refused: at most every 200 ms once the delay has grown.
    throttled_every_time: [weather::every_throttle()] => (FailKind::Throttled, 15);
    black_hole: weather::black_hole() => (FailKind::Timeout, 2);
}
