//! How a contender waits: by tickets or by the clock alone, and in either case no longer than until the row may be taken over
//! or the wait ends.

use std::time::Duration;

use super::queue::{NextLook, Turn};
use super::{Contender, InFlight, Kind, Next};
use crate::clock::Now;
use crate::protocol::{Context, Failure, HeldRow, Mutant, Outcome, Request, Row, Verdict};

/// How long before `stop` the last look happens, so that the write after it still leaves in time.
const LAST_LOOK: Duration = Duration::from_millis(25);

impl Contender {
    /// What an attempt sent now writes to the row's hint.
    pub(super) fn served(&self) -> Option<u64> {
        self.queue.as_ref().and_then(|queue| queue.served())
    }

    pub(super) fn note_latency(&mut self, of: &InFlight, now: Now, outcome: &Outcome) {
        if let Some(queue) = self.queue.as_mut().filter(|_| !matches!(outcome, Outcome::Failed(_))) {
            queue.note_latency(now.mono.since(of.sent.mono), of.warm);
        }
    }

    pub(super) fn saw_held(&mut self, held: &HeldRow, now: Now) {
        if let Some(queue) = &mut self.queue {
            queue.saw_held(held, now.mono);
        }
    }

    /// The row is held and can't be taken over: a ticket first, where there are any, and then the next look.
    pub(super) fn wait(&mut self, cx: &mut Context<'_>) {
        let Some(queue) = &self.queue else { return self.schedule(cx, Next::Look) };
        // A ticket is for looks after it.
        let in_time = cx.now.mono + queue.latency() * 2 < self.budget.stop && !self.is_past_latest(cx.now);
        if queue.wants_ticket() && in_time {
            return self.send(cx, Kind::Ticket, Request::Ticket);
        }
        if !queue.has_ticket() {
            return self.schedule(cx, Next::Look);
        }
        match queue.next_look(cx.now.mono, cx.entropy.fraction()) {
            Some(NextLook { after, takes }) => self.sleep(cx, after, if takes { Next::Attempt } else { Next::Look }),
            None => self.schedule(cx, Next::Look),
        }
    }

    /// The row is free, or there is none: it is taken, or left for a moment to those whose turn is sooner.
    pub(super) fn go_for_free(&mut self, cx: &mut Context<'_>, row: &Row) {
        let stop = self.budget.stop;
        let Some(queue) = &mut self.queue else { return self.act(cx, Next::Attempt) };
        let Row::Free { version, hints } = row else {
            queue.saw_none(cx.now.mono);
            return self.act(cx, Next::Attempt);
        };
        match queue.saw_free(*version, *hints, cx.now.mono, cx.entropy.fraction()) {
            Turn::AfterOthers(after) if cx.now.mono + after + queue.last_look() < stop => {
                self.sleep(cx, after, Next::Look);
            }
            Turn::Mine | Turn::AfterOthers(_) => self.act(cx, Next::Attempt),
        }
    }

    /// What came of the request for a ticket. Whatever it was, the wait goes on: nothing depends on it.
    pub(super) fn handle_ticket(&mut self, cx: &mut Context<'_>, sent: Now, outcome: Outcome) {
        let Some(queue) = &mut self.queue else { return self.schedule(cx, Next::Look) };
        match outcome {
            Outcome::Numbered { row } => {
                match &row {
                    Row::Held(held) => queue.numbered(held.hints),
                    _ => queue.do_without(),
                }
                self.handle_row(cx, sent, row, true);
            }
            Outcome::Refused { row } => {
                // Only a row that nobody holds may refuse it; should another do so, it is not asked again.
                if matches!(row, Row::Held(_)) {
                    queue.do_without();
                }
                self.handle_row(cx, sent, row, true);
            }
            Outcome::Read { row } => {
                queue.do_without();
                self.handle_row(cx, sent, row, true);
            }
            Outcome::Written { .. } => {
                queue.do_without();
                self.schedule(cx, Next::Look);
            }
            Outcome::Failed(failure) => self.handle_no_ticket(cx, failure),
        }
    }

    fn handle_no_ticket(&mut self, cx: &mut Context<'_>, failure: Failure) {
        if self.is_over() {
            return self.give_up(cx, Verdict::Cancelled);
        }
        if let Some(queue) = &mut self.queue {
            if failure.kind.is_transient() { queue.ticket_lost() } else { queue.do_without() }
        }
        // The next look tells whether the store is well; what is wrong with tickets alone ends nothing.
        self.last_failure = Some(failure);
        self.schedule(cx, Next::Look);
    }

    /// Sets the next wake-up by the clock alone.
    pub(super) fn schedule(&mut self, cx: &mut Context<'_>, next: Next) {
        let delay = self.settings.polling.backoff().delay(self.looks, cx.entropy.fraction());
        self.looks = self.looks.saturating_add(1);
        self.sleep(cx, delay, next);
    }

    /// Sets the next wake-up: after `delay`, earlier where a takeover becomes possible, never after `stop`.
    fn sleep(&mut self, cx: &mut Context<'_>, delay: Duration, next: Next) {
        let now = cx.now.mono;
        let mut at = now + delay;
        // A takeover that is possible already was tried and failed: it waits like any other request.
        let takeover = self.until_takeover(cx).filter(|left| !left.is_zero());
        if let Some(left) = takeover.filter(|_| !self.settings.rules.broken(Mutant::SleepsPastTakeover)) {
            at = at.min(now + left.max(Duration::from_millis(1)));
        }
        // One more look shortly before the end beats sleeping through it.
        let (last, too_late, late) = match &self.queue {
            Some(queue) => {
                let last = self.budget.stop - queue.last_look();
                (last, last <= now, at > last)
            }
            None => {
                let last = self.budget.stop - LAST_LOOK;
                (last, last < now + LAST_LOOK, at >= self.budget.stop)
            }
        };
        if late {
            if too_late {
                let verdict = self.verdict_at_end(cx);
                self.give_up(cx, verdict);
                return;
            }
            at = last;
        }
        self.next = Some((at, next));
    }
}
