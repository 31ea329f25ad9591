//! How a lease is held: for how long, and what becomes of it when its holder hangs, crashes or is done early.

use std::time::Duration;

use super::LeaseLayerBuilder;
use crate::session::OnCrash;

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    /// How long a lease lasts when nobody renews it; 30 s unless set, 500 ms to 24 h. `LEASEHOLD_LEASE_DURATION`
    ///
    /// It bounds how long a key stays locked when a whole environment is lost. It need not cover the work: the lease is
    /// renewed every third of it.
    pub const fn lease_duration(mut self, duration: Duration) -> Self {
        self.draft.lease_duration = Some(duration);
        self
    }

    /// What happens to the lease when the handler crashes, is killed, panics or is dropped: it is freed at once, or left
    /// to end by itself where side effects may still be under way. `LEASEHOLD_ON_CRASH`, `release` or `expire`
    pub const fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.draft.on_crash = Some(on_crash);
        self
    }

    /// For how long a lease is renewed where no deadline ends the work: locally, and on Managed Instances; 15 minutes
    /// unless set. `LEASEHOLD_MAX_HOLD`
    pub const fn max_hold(mut self, limit: Duration) -> Self {
        self.draft.max_hold = Some(limit);
        self
    }

    /// For how long a lease is renewed without a word of [`Lease::progress`](crate::Lease::progress); without end unless
    /// set. `LEASEHOLD_MAX_SILENCE`
    ///
    /// The keeper renews whatever the handler does, so a handler that hangs would keep its key until it is killed. With
    /// this it has to say that it gets on: when it has been silent for so long its lease is renewed no more and runs out,
    /// at most a [`lease_duration`](Self::lease_duration) later, and is lost then. A word in the meantime lets the
    /// renewals go on. The row is not freed earlier than that: who is silent may still be at work.
    ///
    /// Set a `lease_duration` that is short as well: a lease that covers all of the invocation's time is not renewed at
    /// all.
    pub const fn max_silence(mut self, limit: Duration) -> Self {
        self.draft.max_silence = Some(limit);
        self
    }

    /// Keeps the key held until so long after it was acquired, if the handler succeeds before that. `LEASEHOLD_HOLD_AT_LEAST`
    ///
    /// For a job that takes less time than its duplicate may be late: the duplicate finds the key busy, though nobody is at
    /// work on it any more. It may be longer than `lease_duration`, and is 21 h 36 min at most. The clocks of whoever comes
    /// next may be off by 5 %, as with every lease, so that the key stays held up to a fifth longer than that.
    ///
    /// Only a handler that answered `Ok` keeps its key so: one that failed, was ended or crashed may be tried again at
    /// once. See the [guide](crate::guide::scheduled).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use leasehold::LeaseLayer;
    /// use leasehold::layer::AnswerFor;
    /// use serde_json::Value;
    ///
    /// let nightly = LeaseLayer::<Value>::builder("nightly:{job}")
    ///     .hold_at_least(Duration::from_secs(10 * 60))
    ///     .max_wait(Duration::ZERO) // who finds it busy is a duplicate
    ///     .answer_for(AnswerFor::schedule());
    /// ```
    pub const fn hold_at_least(mut self, minimum: Duration) -> Self {
        self.draft.hold_at_least = Some(minimum);
        self
    }
}
