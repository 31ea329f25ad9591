//! What a keeper counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares the counters once: the atomics that tasks add to, and the snapshot that users read.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a keeper has counted since it was made.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct KeeperCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters themselves.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)*
        }

        impl Counters {
            /// All of them as they stand now, each read by itself.
            pub(super) fn snapshot(&self) -> KeeperCounts {
                KeeperCounts { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters! {
    /// Leases granted.
    granted,
    /// Leases granted that were taken over from a holder whose lease was over.
    takeovers,
    /// Acquisitions answered `busy`.
    busy,
    /// Acquisitions that failed for a reason other than another holder.
    failed,
    /// Leases lost.
    lost,
    /// Renewals answered with success.
    renewals,
    /// Renewals that failed or were not answered in time.
    renewals_failed,
    /// Rows freed.
    released,
    /// Rows parked: their work is done, and the key stays held until a minimum is over.
    parked,
    /// Rows that could not be freed.
    release_failures,
    /// Leases given back because their handler did not finish; those whose rows were freed for it count as `released` too.
    crash_releases,
    /// Leases that their settings left to expire because their handler did not finish.
    abandoned,
    /// Attempts to take a row that were sent. Each of them, once it is answered or given up, is also one of `granted`,
    /// `grants_undone`, `attempts_refused` and `attempts_unknown`.
    attempts,
    /// Attempts that were refused, by the row or by the store.
    attempts_refused,
    /// Attempts of which it is not known whether they were applied.
    attempts_unknown,
    /// Attempts that were applied, and whose lease was given back or lost before anybody was told of it.
    grants_undone,
    /// Leases granted and given back in good order. Each lease granted ends as one of these, of `lost`, of
    /// `crash_releases` and of `abandoned`, or is still held.
    given_back,
    /// States saved, with a release or without.
    states_saved,
    /// States that were to be left with a release and were not.
    states_not_left,
    /// Requests sent to the store.
    requests,
    /// Requests that the store could not serve.
    errors,
}

/// One count.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub(super) fn add_one(&self) {
        // Nothing else is ordered by it.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
