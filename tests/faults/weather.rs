//! The faults: what happens to the requests of one step, or to all of them from that step on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_sandbox::faults::{Answer, DateHeader, End, Fault, FaultProxy, Injected, Step};

use crate::KEY;

/// One variant of a fault.
#[derive(Clone, Debug)]
pub enum Weather {
    /// The first so many requests of the step meet it.
    Times(usize, Fault),
    /// Every request of the step meets it.
    Every(Fault),
    /// From the step's first request on no request of any kind is carried out or answered.
    BlackHole,
    /// From the step's first request on every reply takes as long as a busy network's: that one 400 ms.
    Slow,
    /// Every reply has this `Date`, from the beginning.
    Dates(DateHeader),
}

impl Weather {
    /// Begins, for the requests of this step.
    pub fn begin(self, proxy: &FaultProxy, step: Step) -> Injected {
        match self {
            Self::Times(times, fault) => proxy.inject_where(times, for_step(step, fault)),
            Self::Every(fault) => proxy.inject_where(usize::MAX, for_step(step, fault)),
            Self::BlackHole => {
                let silence = Fault::LoseRequest(End::Silence);
                proxy.inject_where(usize::MAX, from_step_on(step, move |_| silence.clone()))
            }
            Self::Slow => {
                let late = |number| Fault::DelayReply(latency(number));
                proxy.inject_where(usize::MAX, from_step_on(step, late))
            }
            Self::Dates(date) => proxy.inject_where(usize::MAX, move |_| Some(Fault::Date(date.clone()))),
        }
    }

    /// How many requests of the step meet it in any case.
    pub fn least(&self) -> usize {
        match self {
            Self::Times(times, _) => *times,
            _ => 1,
        }
    }

    /// Whether it has to be there before the first request.
    pub fn is_from_the_beginning(&self) -> bool {
        matches!(self, Self::Dates(_))
    }

    /// Whether a request is left without an answer, so that the wait must not be longer than the test can be.
    pub fn hangs(&self) -> bool {
        use Fault::{DelayReply, LoseReply, LoseRequest};
        matches!(
            self,
            Self::BlackHole | Self::Times(_, LoseReply(End::Silence) | LoseRequest(End::Silence) | DelayReply(_))
        )
    }
}

fn for_step(step: Step, fault: Fault) -> impl Fn(&leasehold_sandbox::faults::Passing) -> Option<Fault> + Send + Sync {
    move |passing| (passing.step == step && passing.key.as_deref() == Some(KEY)).then(|| fault.clone())
}

/// Meets nothing until the step's first request for the key comes, and then that one and all others, counted from 0.
fn from_step_on(
    step: Step,
    fault: impl Fn(u64) -> Fault + Send + Sync,
) -> impl Fn(&leasehold_sandbox::faults::Passing) -> Option<Fault> + Send + Sync {
    let begun = AtomicBool::new(false);
    let met = AtomicU64::new(0);
    move |passing| {
        if passing.step == step && passing.key.as_deref() == Some(KEY) {
            begun.store(true, Ordering::SeqCst);
        }
        begun.load(Ordering::SeqCst).then(|| fault(met.fetch_add(1, Ordering::SeqCst)))
    }
}

/// How long reply number `number` takes: half of them 5 ms or less, one in a hundred 80 ms or more, one in a thousand
/// 400 ms, and that one first. The others come in an order that repeats nothing soon.
fn latency(number: u64) -> Duration {
    let quantile = (number * 617 + 999) % 1_000;
    Duration::from_millis(match quantile {
        0..500 => 1 + quantile / 125,
        500..900 => 5 + (quantile - 500) / 40,
        900..990 => 15 + (quantile - 900) * 65 / 90,
        990..999 => 80 + (quantile - 990) * 30,
        _ => 400,
    })
}

/// The request is carried out; its reply is lost with the connection.
pub fn reply_lost() -> [Weather; 1] {
    [Weather::Times(1, Fault::LoseReply(End::Close))]
}

/// The request is lost with the connection.
pub fn request_lost() -> [Weather; 1] {
    [Weather::Times(1, Fault::LoseRequest(End::Close))]
}

/// The request is carried out; no reply comes, and the connection stays.
pub fn reply_hangs() -> [Weather; 1] {
    [Weather::Times(1, Fault::LoseReply(End::Silence))]
}

/// The request is carried out; its reply comes when it was given up.
pub fn reply_late(by: Duration) -> [Weather; 1] {
    [Weather::Times(1, Fault::DelayReply(by))]
}

/// A reset in place of the reply, on a connection that had served before; the request is carried out.
pub fn reset_after() -> [Weather; 1] {
    [Weather::Times(1, Fault::LoseReply(End::Reset))]
}

/// A reset in place of the reply, on a connection that had served before; the request is not carried out.
pub fn reset_before() -> [Weather; 1] {
    [Weather::Times(1, Fault::LoseRequest(End::Reset))]
}

/// 500, not carried out.
pub fn server_error() -> [Weather; 1] {
    [Weather::Times(1, Fault::Answer(Answer::server_error(500)))]
}

/// 500, carried out all the same.
pub fn server_error_written() -> [Weather; 1] {
    [Weather::Times(1, Fault::AnswerAfterWrite(Answer::server_error(500)))]
}

/// 503, not carried out.
pub fn unavailable() -> [Weather; 1] {
    let answer = Answer::error(503, "ServiceUnavailable", "The service is unavailable");
    [Weather::Times(1, Fault::Answer(answer))]
}

/// A throttle by each of its names, so many times.
pub fn throttled(times: usize) -> [Weather; 4] {
    Answer::THROTTLES.map(|name| Weather::Times(times, Fault::Answer(Answer::throttled(name))))
}

/// A transaction works on the row, so many times.
pub fn conflict(times: usize) -> [Weather; 1] {
    [Weather::Times(times, Fault::Answer(Answer::transaction_conflict()))]
}

/// The credentials have run out, once.
pub fn token_expired() -> [Weather; 1] {
    [Weather::Times(1, Fault::Answer(Answer::expired_token()))]
}

/// The credentials have run out, for good.
pub fn token_expired_for_good() -> [Weather; 1] {
    [Weather::Every(Fault::Answer(Answer::expired_token()))]
}

/// Nothing answers any more.
pub fn black_hole() -> [Weather; 1] {
    [Weather::BlackHole]
}

/// 99.9 % of the replies within 400 ms, one of these with 400 ms.
pub fn slow() -> [Weather; 1] {
    [Weather::Slow]
}

/// A `Date` that can't be used on every reply: none, not a date, from a cache.
pub fn unusable_dates() -> [Weather; 3] {
    [DateHeader::Missing, DateHeader::Text("the day before yesterday".to_owned()), DateHeader::Aged(30)]
        .map(Weather::Dates)
}

/// An unusable `Date` on so many replies of the step.
pub fn unusable_date(times: usize) -> [Weather; 3] {
    unusable_dates().map(|weather| match weather {
        Weather::Dates(date) => Weather::Times(times, Fault::Date(date)),
        other => other,
    })
}

/// Every `Date` is wrong by this many seconds.
pub fn wrong_dates(seconds: i64) -> [Weather; 1] {
    [Weather::Dates(DateHeader::Shifted(seconds))]
}

/// One `Date` is wrong, by an hour in either direction.
pub fn wrong_date() -> [Weather; 2] {
    [3_600, -3_600].map(|seconds| Weather::Times(1, Fault::Date(DateHeader::Shifted(seconds))))
}

/// A throttle, every time.
pub fn every_throttle() -> Weather {
    Weather::Every(Fault::Answer(Answer::throttled("ThrottlingException")))
}
