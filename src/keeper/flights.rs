//! What is in flight: writes that were sent and not answered, and writes that are owed but not sent yet.
//!
//! Whoever lets the environment freeze asks here first. A write that is decided on counts from that moment, not from
//! the moment at which some task gets round to sending it.

use std::sync::Arc;

use tokio::sync::watch;

/// How many of each there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Decided on, not handed to the store yet.
    pub(super) owed: usize,
    /// Handed to the store, not answered.
    pub(super) sent: usize,
}

impl Count {
    pub(super) const fn total(self) -> usize {
        self.owed + self.sent
    }
}

/// Counts flights; clones share one count.
#[derive(Clone, Debug)]
pub(super) struct Flights {
    count: Arc<watch::Sender<Count>>,
}

impl Flights {
    pub(super) fn new() -> Self {
        Self { count: Arc::new(watch::Sender::new(Count::default())) }
    }

    /// Notes that a write is owed.
    pub(super) fn owe(&self) -> Flight {
        self.count.send_modify(|count| count.owed += 1);
        Flight { count: self.count.clone(), sent: false }
    }

    pub(super) fn count(&self) -> Count {
        *self.count.borrow()
    }

    /// Waits until `is_so` holds for the count.
    pub(super) async fn wait_until(&self, is_so: impl FnMut(&Count) -> bool) {
        // It only fails once the sender is gone, and this is the sender.
        let _ = self.count.subscribe().wait_for(is_so).await;
    }
}

/// One write that is owed or sent, until it is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    count: Arc<watch::Sender<Count>>,
    sent: bool,
}

impl Flight {
    /// The store has it now.
    pub(super) fn take_off(&mut self) {
        if !std::mem::replace(&mut self.sent, true) {
            self.count.send_modify(|count| {
                count.owed -= 1;
                count.sent += 1;
            });
        }
    }

    /// It has to be sent once more, later.
    pub(super) fn turn_back(&mut self) {
        if std::mem::replace(&mut self.sent, false) {
            self.count.send_modify(|count| {
                count.sent -= 1;
                count.owed += 1;
            });
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let sent = self.sent;
        self.count.send_modify(|count| {
            let which = if sent { &mut count.sent } else { &mut count.owed };
            *which -= 1;
        });
    }
}
