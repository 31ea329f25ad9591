//! When a busy key is looked at again.

use std::time::Duration;

use super::choice::Choice;
use super::reading::{CodeWins as _, Reading};
use crate::session::PollingMs;

/// No function runs longer, so polling any slower would be no polling.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// When a busy key is looked at again, by those who wait for it.
///
/// Each way finds out all the same when the holder's lease is over, and each may be used beside the other on one key.
///
/// ```
/// use std::time::Duration;
///
/// use lambda_runtime::LambdaEvent;
/// use leasehold::{LeaseLayer, Polling};
/// use serde_json::Value;
///
/// let every_two_seconds = Polling::backoff(Duration::from_millis(100), Duration::from_secs(2));
/// let layer = LeaseLayer::<Value>::builder("orders:{id}").polling(every_two_seconds);
/// # let _ = (layer, |_: LambdaEvent<Value>| ());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polling(Option<(Duration, Duration)>);

impl Polling {
    /// By tickets, which is the default: those who wait number themselves on the row, and each looks when its turn may have
    /// come. The key passes on within a few milliseconds, roughly in the order in which they came, and a crowd does not
    /// slow it down. A wait costs one write more than by the backoff, and more looks: who is next looks every 100 ms behind
    /// long work and oftener behind short work, those further back less often. Where a wait may take long and nobody
    /// minds half a second more of it, the backoff is cheaper. `LEASEHOLD_POLLING=tickets`
    ///
    /// Nobody is kept from a free key by a ticket. In a table of the format `pydynox/1`, whose rows have no place for
    /// tickets, it is the backoff from 50 ms to 500 ms.
    #[must_use]
    pub const fn tickets() -> Self {
        Self(None)
    }

    /// By the clock alone: after a delay that doubles from the first to the longest, with jitter; 1 ms to 15 min.
    /// `LEASEHOLD_POLLING=backoff` with `LEASEHOLD_POLL_FIRST`, 50 ms unless set, and `LEASEHOLD_POLL_MAX`, 500 ms unless
    /// set
    ///
    /// It writes nothing while it waits: the cheaper way where a key is held for long, is seldom waited for by more than
    /// one, and may be found free a little late.
    #[must_use]
    pub const fn backoff(first: Duration, longest: Duration) -> Self {
        Self(Some((first, longest)))
    }

    /// As the session spells it.
    pub(crate) fn in_millis(self) -> Option<PollingMs> {
        self.0.map(|(first, longest)| PollingMs { first: millis(first), max: millis(longest) })
    }
}

/// What the environment may say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tickets,
    Backoff,
}

impl Choice for Way {
    const SPELLINGS: &'static [&'static str] = &["tickets", "backoff"];
    const VALUES: &'static [Self] = &[Self::Tickets, Self::Backoff];
}

impl Reading<'_> {
    /// How keys are polled: who sets a delay of the backoff wants the backoff.
    pub(super) fn polling(&mut self, code: Option<Polling>) -> Polling {
        let way: Option<Way> = self.choice("POLLING");
        let (first, longest) = (self.duration("POLL_FIRST"), self.duration("POLL_MAX"));
        let delays = first.is_some() || longest.is_some();
        if way == Some(Way::Tickets) && delays {
            self.problems.push(
                "LEASEHOLD_POLLING is `tickets`, and LEASEHOLD_POLL_FIRST and LEASEHOLD_POLL_MAX are for `backoff`: take \
                 either out"
                    .to_owned(),
            );
        }
        let backs_off = way == Some(Way::Backoff) || (way.is_none() && delays);
        let of_environment = backs_off.then(|| {
            let default = PollingMs::default();
            let first = first.unwrap_or(Duration::from_millis(default.first));
            // Who sets only the first delay above the default's bound means a slower polling, not a contradiction.
            Polling::backoff(first, longest.unwrap_or(Duration::from_millis(default.max).max(first)))
        });
        let polling = of_environment.unless_set(code).unwrap_or_default();
        if let Some(PollingMs { first, max }) = polling.in_millis() {
            if first == 0 {
                self.problems.push("the first polling delay is 0: set 1ms or more".to_owned());
            }
            if max < first || max > millis(LONGEST) {
                self.problems.push(format!(
                    "the longest polling delay is {max}ms and the first {first}ms: set the longest from that to {LONGEST:?}"
                ));
            }
        }
        polling
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
