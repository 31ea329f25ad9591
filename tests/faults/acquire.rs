//! Acquiring a free row: it is acquired exactly once, or a typed error is told and the row is left free.

use std::time::Duration;

use leasehold::session::FailKind;
use leasehold_sandbox::faults::{Answer, Fault, Step};

use crate::LONG;
use crate::session::Ask;
use crate::stage::Stage;
use crate::weather::{self, Weather};

/// The row is acquired, by so many attempts.
#[derive(Clone, Copy, Debug)]
struct Acquired {
    attempts: usize,
    /// Attempts that landed: the last one replaced those before it.
    landed: u64,
    /// Whether a renewal had to be answered before the grant, for want of a `Date` that says that the write's own
    /// `expires_at` is right.
    confirmed: bool,
}

const fn at_once() -> Acquired {
    Acquired { attempts: 1, landed: 1, confirmed: false }
}

const fn by(attempts: usize, landed: u64) -> Acquired {
    Acquired { attempts, landed, confirmed: false }
}

const fn confirmed() -> Acquired {
    Acquired { attempts: 1, landed: 1, confirmed: true }
}

async fn acquired(weather: Weather, expected: Acquired) {
    let stage = Stage::new().await;
    let before = stage.put_free().await;
    let mut session = stage.through(&weather).await;
    let injected = stage.begin(&weather, Step::Acquire);
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
    assert_eq!((grant.attempts, stage.count(Step::Acquire)), (expected.attempts, expected.attempts), "{weather:?}");
    assert_eq!(stage.count(Step::Renew), usize::from(expected.confirmed), "{weather:?}");
    assert!(session.holds(grant.owner));

    stage.proxy.clear();
    session.release().await;
    let row = stage.row().await;
    assert_eq!((row.owner, row.version, row.ttl), (None, before + writes, true), "{weather:?}");
}

cells! { acquired;
    reply_lost: weather::reply_lost() => by(2, 2);
    request_lost: weather::request_lost() => by(2, 1);
    reply_hangs: weather::reply_hangs() => by(2, 2);
    reply_late: weather::reply_late(Duration::from_millis(2_000)) => by(2, 2);
    reset_before_the_write: weather::reset_before() => by(2, 1);
    reset_after_the_write: weather::reset_after() => by(2, 2);
    server_error: weather::server_error() => by(2, 1);
    server_error_although_written: weather::server_error_written() => by(2, 2);
    unavailable: weather::unavailable() => by(2, 1);
    throttled_once: weather::throttled(1) => by(2, 1);
    throttled_five_times: weather::throttled(5) => by(6, 1);
    transaction_conflict_once: weather::conflict(1) => by(2, 1);
    transaction_conflict_five_times: weather::conflict(5) => by(6, 1);
    slow: weather::slow() => at_once();
    date_unusable: weather::unusable_date(1) => confirmed();
    date_unusable_throughout: weather::unusable_dates() => confirmed();
    date_an_hour_ahead: weather::wrong_dates(3_600) => confirmed();
    date_an_hour_behind: weather::wrong_dates(-3_600) => at_once();
}

/// A typed error, and the row is free.
async fn refused(weather: Weather, expected: (FailKind, usize)) {
    let (kind, attempts) = expected;
    let stage = Stage::new().await;
    let before = stage.put_free().await;
    let mut session = stage.through(&weather).await;
    let injected = stage.begin(&weather, Step::Acquire).unwrap();
    session.ask(Ask::patient().lease(3_000).wait(2_000).answer_within(4_000)).await;
    // The fault is still there, so nothing but the budget ends a wait for an answer that does not come.
    assert_eq!(session.failed().await, kind, "{weather:?}");
    assert!(!injected.met().is_empty());
    assert!((1..=attempts).contains(&stage.count(Step::Acquire)), "{weather:?}");
    let row = stage.row().await;
    assert_eq!(row.owner, None, "{weather:?}");
    assert!(row.version >= before);

    stage.proxy.clear();
    let mut next = crate::session::Session::begin(&session.keeper, "r-next").await;
    next.ask(Ask::patient()).await;
    assert_eq!(next.granted().await.token, row.version + 1, "the keeper goes on, and the row is nobody's");
}

cells! { refused;
    token_expired: weather::token_expired() => (FailKind::Credentials, 1);
    black_hole: weather::black_hole() => (FailKind::Timeout, 2);
    server_error_although_written_every_time: [Weather::Every(Fault::AnswerAfterWrite(Answer::server_error(500)))] => (FailKind::Server, 15);
}

/// What landed unseen is freed when the acquisition is given up, also where the first release for it is not answered.
async fn cleaned_up(release: Weather, _: ()) {
    let stage = Stage::new().await;
    stage.put_free().await;
    let written = Weather::Every(Fault::AnswerAfterWrite(Answer::server_error(500)));
    let mut session = stage.through(&written).await;
    stage.begin(&written, Step::Acquire);
    let met = stage.begin(&release, Step::Release).unwrap();
    session.ask(Ask::patient().wait(500)).await;
    assert_eq!(session.failed().await, FailKind::Server);
    met.reached(LONG).await.unwrap();
    let mut next = stage.direct().await;
    next.ask(Ask::patient().wait(20_000)).await;
    next.granted().await;
}

cells! { cleaned_up;
    release_at_giving_up_throttled: weather::throttled(1) => ();
    release_at_giving_up_lost: weather::request_lost() => ();
}
