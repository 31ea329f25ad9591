//! How a lease is held: for how long, what ends it, and what becomes of it then.

use std::time::Duration;

use super::LeaseLayerBuilder;
use crate::session::OnCrash;
use crate::settings::{OnLoss, ReleaseWhen};

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    /// How long a lease lasts when nobody renews it; 30 s unless set, 500 ms to 24 h. `LEASEHOLD_LEASE_DURATION`
    ///
    /// It bounds how long a key stays locked when a whole environment is lost. It need not cover the work: the lease is
    /// renewed every third of it.
    pub const fn lease_duration(mut self, duration: Duration) -> Self {
        self.draft.lease_duration = Some(duration);
        self
    }

    /// Whether the row is freed behind the response, which is the default, or before it. `LEASEHOLD_RELEASE`, `after` or
    /// `before`
    pub const fn release(mut self, when: ReleaseWhen) -> Self {
        self.draft.release = Some(when);
        self
    }

    /// What happens to the lease when the handler crashes, is killed, panics or is dropped: it is freed at once, or left
    /// to end by itself where side effects may still be under way. `LEASEHOLD_ON_CRASH`, `release` or `expire`
    pub const fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.draft.on_crash = Some(on_crash);
        self
    }

    /// What happens to the handler when the lease is lost: it is cancelled and answered with `LeaseLost`, or only told.
    /// `LEASEHOLD_ON_LOSS`, `cancel` or `signal`
    pub const fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.draft.on_loss = Some(on_loss);
        self
    }

    /// Whether a response that was ready in the moment in which the loss was seen is given all the same. Unless set it is
    /// not: the caller gets `LeaseLost`, as the last of the work may have overlapped with another's.
    /// `LEASEHOLD_KEEP_FINISHED_RESPONSE`, `true` or `false`
    pub const fn keep_finished_response(mut self, keep: bool) -> Self {
        self.draft.keep_finished_response = Some(keep);
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

    /// Ends a handler that is still at work this long before the invocation's deadline, with `OutOfTime`: a slow handler
    /// is a typed error then, and not a killed environment. `LEASEHOLD_END_BEFORE_DEADLINE`
    ///
    /// Only a handler that yields can be ended. On Managed Instances, where Lambda does not kill it, every handler is
    /// ended at its deadline at the latest.
    pub const fn end_before_deadline(mut self, margin: Duration) -> Self {
        self.draft.end_before_deadline = Some(margin);
        self
    }
}
