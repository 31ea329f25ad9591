//! What all groups of a batch share while it is worked on: the ledger, and the time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lambda_runtime::Context;

use super::ledger::{Cause, Ledger};
use super::share;
use crate::budget::{Deadline, DeadlineTooClose};
use crate::clock::{Clock, Mono};
use crate::layer::core::Core;
use crate::session::OnCrash;
use crate::settings::Mode;

/// One batch being worked on.
#[derive(Debug)]
pub(super) struct Work {
    ledger: Mutex<Ledger>,
    to_the_end: Vec<usize>,
    clock: Arc<dyn Clock>,
    /// When everything has to be settled; none without a deadline.
    end: Option<Mono>,
    margin: Duration,
    reserve: Option<Duration>,
    at_a_time: usize,
    is_enforced: bool,
    /// Whether a record that ended while the lease was lost is not done.
    pub(super) takes_back_answers: bool,
    /// Whether nothing more may run under a lease after a record was ended in the middle.
    pub(super) stops_when_cut_off: bool,
}

/// A record's own time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    end: Mono,
    /// How much it got when it began.
    pub(super) share: Duration,
}

impl Work {
    pub(super) fn new(
        core: &Core,
        ledger: Ledger,
        to_the_end: Vec<usize>,
        margin: Option<Duration>,
        at_a_time: usize,
        context: &Context,
    ) -> Self {
        let now = core.clock.now();
        let left = Deadline::from_epoch_ms(context.deadline).remaining(now.wall);
        let margin = left.map_or(Duration::ZERO, |left| share::margin(margin, left));
        Self {
            ledger: Mutex::new(ledger),
            to_the_end,
            clock: core.clock.clone(),
            end: left.map(|left| now.mono + (left - margin)),
            margin,
            reserve: core.settings.reserve,
            at_a_time,
            is_enforced: core.mode() == Mode::Enforce,
            takes_back_answers: core.takes_back_answers(),
            stops_when_cut_off: core.mode() == Mode::Enforce && core.settings.on_crash == OnCrash::Expire,
        }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the ledger out, once the batch is settled.
    pub(super) fn take_ledger(&self) -> Ledger {
        std::mem::replace(&mut *self.ledger(), Ledger::new(Vec::new(), &[]))
    }

    pub(super) fn fail(&self, record: usize, cause: Cause) -> Vec<usize> {
        self.ledger().fail(record, cause)
    }

    /// After how long the answer is given whatever is not done by then; never without a deadline.
    pub(super) fn answer_within(&self) -> Option<Duration> {
        self.left().map(|left| left + self.margin / 2)
    }

    /// Whether there is time for any record at all.
    ///
    /// # Errors
    ///
    /// When there never was any: the reserve is longer than the invocation.
    pub(super) fn check_reserve(&self, core: &Core) -> Result<(), DeadlineTooClose> {
        match (self.left(), self.reserve) {
            (Some(remaining), Some(reserve)) if self.is_enforced && remaining <= reserve => {
                let most = core.most_left().saturating_sub(self.margin);
                Err(DeadlineTooClose::new(remaining, reserve).of_invocations_with(most))
            }
            _ => Ok(()),
        }
    }

    /// The time of a record that begins now, of a group that has so many to go; none without a deadline.
    ///
    /// # Errors
    ///
    /// When too little is left for its work.
    pub(super) fn slot(&self, record: usize, left_in_group: usize) -> Result<Option<Slot>, DeadlineTooClose> {
        let (Some(left), Some(end)) = (self.left(), self.end) else { return Ok(None) };
        let needed = self.reserve.filter(|_| self.is_enforced).unwrap_or_default();
        if left < needed || left.is_zero() {
            return Err(DeadlineTooClose::new(left, needed));
        }
        let in_a_row = left_in_group.max(self.to_the_end.get(record).copied().unwrap_or(1));
        let unsettled = self.ledger().unsettled();
        let share = share::share(left, self.reserve, unsettled, self.at_a_time, in_a_row);
        Ok(Some(Slot { end: (self.clock.now().mono + share).min(end), share }))
    }

    /// How much of a slot is left.
    pub(super) fn left_of(&self, slot: Slot) -> Duration {
        slot.end.since(self.clock.now().mono)
    }

    /// An invocation's context for one record: its deadline is the record's.
    pub(super) fn context(&self, context: &Context, slot: Option<Slot>) -> Context {
        let mut context = context.clone();
        if let Some(slot) = slot {
            context.deadline = (self.clock.now().wall + self.left_of(slot)).as_millis();
        }
        context
    }

    fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.since(self.clock.now().mono))
    }
}
