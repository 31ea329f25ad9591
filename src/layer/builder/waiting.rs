//! How long may be waited for a busy key, and how.

use std::time::Duration;

use super::LeaseLayerBuilder;
use crate::Polling;
use crate::layer::LayerKeys;

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    /// What work and cleanup need of the invocation's time; the rest may be waited away. `LEASEHOLD_RESERVE`
    ///
    /// Unset it is 80 % of what is left when the invocation begins, with one warning: you know better.
    pub const fn reserve(mut self, reserve: Duration) -> Self {
        self.draft.reserve = Some(reserve);
        self
    }

    /// When a busy key is looked at again: by [`Polling::tickets`] unless set. `LEASEHOLD_POLLING`, or
    /// `LEASEHOLD_POLL_FIRST` and `LEASEHOLD_POLL_MAX`
    pub const fn polling(mut self, polling: Polling) -> Self {
        self.draft.polling = Some(polling);
        self
    }

    /// Whether an abandoned lease may also be found out by DynamoDB's own clock; it is unless set. Without it a fresh
    /// environment watches an abandoned row for a whole lease before it takes over. `LEASEHOLD_SERVER_TIME`
    pub const fn server_time(mut self, serves: bool) -> Self {
        self.draft.server_time = Some(serves);
        self
    }
}

impl<T, K: LayerKeys, B> LeaseLayerBuilder<T, K, B> {
    /// How long is waited for a busy key at most; 2 s unless set, as waiting is billed. 0 tries once.
    /// `LEASEHOLD_MAX_WAIT`
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.draft.max_wait = Some(wait);
        self
    }
}
