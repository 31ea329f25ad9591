//! How many writes a long hold takes: the real keeper and its session, over a store in memory and a clock that jumps.

use std::{sync::Arc, thread, time::Duration};

use leasehold::{
    clock::{Clock, Mono, Now, Wall},
    keeper::{Keeper, KeeperOptions, PlainHome},
};
use tokio::{runtime, time::Instant};

use super::{
    Row, Section,
    line_client::{Asked, LineClient},
    memory::{Counted, Memory},
    report::Unit,
};
use crate::Error;

const LEASE: Duration = Duration::from_secs(30);
/// Some day.
const START_MS: u64 = 1_800_000_000_000;

/// Both clocks as Tokio's paused one has them.
#[derive(Debug)]
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Now {
        let since = self.0.elapsed();
        Now { mono: Mono::from_origin(Duration::from_secs(1) + since), wall: Wall::from_millis(START_MS) + since }
    }
}

/// The rows of both holds, with a deadline and without.
pub(super) fn measure() -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for seconds in [60, 600] {
        let hold = Duration::from_secs(seconds);
        let thirds = (hold.as_secs_f64() / (LEASE.as_secs_f64() / 3.0)).floor();
        for (known, id) in [(false, "no_deadline"), (true, "deadline")] {
            let counted = held(hold, known)?;
            let what = if known { "whose deadline is its end" } else { "without a known deadline" };
            let what = format!("renewals in a hold of {seconds} s {what}");
            let note = format!("besides {} acquisition and {} release", counted.acquisitions, counted.releases);
            let row =
                Row::new(Section::Renewals, format!("{seconds}s.{id}"), what, counted.renewals as f64, Unit::Requests);
            rows.push(row.at_most(thirds).deterministic().note(note));
        }
    }
    Ok(rows)
}

/// What a store is asked in a hold of this length.
fn held(hold: Duration, known_deadline: bool) -> Result<Counted, Error> {
    // Of its own, for its clock is paused.
    let held = thread::spawn(move || -> Result<Counted, Error> {
        let executor = runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        executor.map_err(Error::io("start an executor"))?.block_on(async {
            let clock: Arc<dyn Clock> = Arc::new(VirtualClock(Instant::now()));
            let store = Memory::new(Arc::clone(&clock));
            let keeper = Keeper::new(store.clone(), clock, Arc::new(PlainHome), KeeperOptions::default());
            let deadline = known_deadline.then(|| START_MS + u64::try_from(hold.as_millis()).unwrap_or(u64::MAX));
            let mut client = LineClient::of(&keeper, deadline).await?;
            let asked = Asked { key: "bench:held".to_owned(), lease: LEASE, wait: Duration::ZERO, polling: None };
            client.granted(1, &asked).await?;
            tokio::time::sleep(hold).await;
            client.release(1).await?;
            Ok(store.counted())
        })
    });
    held.join().map_err(|_| Error::io("measure a hold")(std::io::Error::other("its thread panicked")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_renewed_each_third_of_the_lease_and_not_beyond_its_deadline() {
        let of = |seconds, known| held(Duration::from_secs(seconds), known).unwrap();
        let minute = of(60, false);
        assert_eq!((minute.acquisitions, minute.releases), (1, 1));
        assert!((5..=6).contains(&minute.renewals), "{minute:?}");
        assert!(of(60, true).renewals < minute.renewals);
        assert!((55..=60).contains(&of(600, false).renewals));
    }
}
