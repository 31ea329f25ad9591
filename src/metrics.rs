//! What layers count, for the whole process: each count has a log event that tells the single case.

use std::sync::atomic::{AtomicU64, Ordering};

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// The counts, as layers add to them.
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        pub(crate) static COUNTERS: Counters = Counters { $($name: Counter(AtomicU64::new(0)),)+ };

        /// What the layers of this process have counted since it started.
        ///
        /// ```
        /// let before = leasehold::metrics::counts();
        /// // … invocations …
        /// let now = leasehold::metrics::counts();
        /// assert_eq!(now.losses - before.losses, 0);
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct LayerCounts {
            $($(#[$doc])* pub $name: u64,)+
        }

        /// Reads the counts. Those of one moment need not fit together: they are read one by one.
        #[must_use]
        pub fn counts() -> LayerCounts {
            LayerCounts { $($name: COUNTERS.$name.0.load(Ordering::Relaxed),)+ }
        }
    };
}

counts! {
    /// Leases that handlers ran under.
    granted,
    /// Invocations that were refused, or answered by `on_busy`, as somebody else held the key.
    busy,
    /// Invocations that were refused a lease for another reason.
    refused,
    /// Leases that were lost while the handler ran.
    losses,
    /// Responses that were ready when a loss was seen, and given all the same.
    responses_kept_after_loss,
    /// Handlers that were ended a margin before the deadline.
    out_of_time,
    /// Releases that the keeper did not confirm in time; the answer was given all the same.
    late_releases,
    /// Releases that failed; the answer was given all the same.
    failed_releases,
    /// Invocations that ran unlocked as their events had no key: `missing_path` says so.
    unlocked_missing_path,
    /// Invocations that ran unlocked as DynamoDB could not be reached: `on_unavailable` says so.
    unlocked_unavailable,
    /// Questions of handlers whether they still hold the lease that could not be confirmed.
    unconfirmed,
    /// Records of batches that their handlers were done with.
    records_done,
    /// Records of batches that came to nothing and were reported, to come back.
    records_failed,
    /// Busy messages of queues that could not be made visible at the right moment.
    failed_visibility_changes,
    /// In mode `observe`: invocations that would have waited.
    would_have_waited,
    /// In mode `observe`: invocations that would have been refused.
    would_have_refused,
    /// In mode `observe`: invocations that would have run unlocked, by `missing_path` or `on_unavailable`.
    would_have_run_unlocked,
    /// In mode `observe`: leases lost, whose handlers would have been cancelled or told.
    would_have_lost,
}
