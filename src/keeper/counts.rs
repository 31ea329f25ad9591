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

        impl KeeperCounts {
            /// Both together.
            pub(super) fn plus(&self, other: &Self) -> Self {
                Self { $($name: self.$name + other.$name,)* }
            }

            /// What was counted since.
            pub(super) fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
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
    /// Acquisitions that found their key held by somebody else, or others of this keeper ahead of them.
    contended,
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
    /// Leases that ran out after their invocation's deadline, when nobody renews them any more: no loss, for nobody works
    /// under them.
    expired,
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
    /// `crash_releases`, of `abandoned` and of `expired`, or is still held.
    given_back,
    /// States saved, with a release or without.
    states_saved,
    /// States that were to be left with a release and were not.
    states_not_left,
    /// States that were to be left with a release, and of which it is not known whether they were.
    states_left_unknown,
    /// Requests sent to the store.
    requests,
    /// Requests that the store could not serve, throttled ones among them.
    errors,
    /// Requests that the store throttled.
    throttles,
    /// Write capacity consumed, in millionths of a unit, as far as DynamoDB told: it tells nothing for a refused write.
    write_unit_millionths,
    /// Read capacity consumed, in millionths of a unit.
    read_unit_millionths,
}

impl KeeperCounts {
    /// Attempts that were sent and of which nothing is known yet.
    pub(super) const fn attempts_pending(&self) -> u64 {
        let ended = self.granted + self.grants_undone + self.attempts_refused + self.attempts_unknown;
        self.attempts.saturating_sub(ended)
    }

    /// Whether there is something that somebody watching would want to know soon.
    pub(super) const fn is_news(&self) -> bool {
        let of_acquisitions = self.contended + self.takeovers + self.busy + self.failed + self.grants_undone;
        let of_leases = self.lost + self.crash_releases + self.abandoned + self.expired;
        let of_requests = self.errors + self.renewals_failed + self.release_failures;
        let of_states = self.states_not_left + self.states_left_unknown;
        of_acquisitions + of_leases + of_requests + of_states > 0
    }
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

    /// So many more.
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
