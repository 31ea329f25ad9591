//! How a lease's task waits for its turn among those of its keeper, and what it lets those behind it know.

use std::time::Duration;

use super::LeaseTask;
use crate::clock::Mono;
use crate::keeper::event_log;
use crate::keeper::machine::Machine;
use crate::keeper::terms::Terms;
use crate::keeper::trail::Step;
use crate::protocol::{Busy, Polling, Settings, Validity, Verdict};

/// How long those in line wait for who gives its key back, or gives up, to hear that it is done. An answer mostly comes
/// within a few milliseconds; where it is lost, the row may be free all the same, and the next one goes and looks.
pub(in crate::keeper) const HANDOVER_WITHIN: Duration = Duration::from_millis(500);
/// How long before the end of its time a contender begins at the latest that lets others go first. In what is left then,
/// one whose turn comes as the one ahead gave up would only find what that one found: a crowd that came at once and has the
/// same time is not to ask in vain one after the other.
const LAST_CHANCE: Duration = Duration::from_millis(25);

impl LeaseTask {
    /// Begins to contend where nobody of this keeper is ahead; else waits for its turn. Who tries once does not wait.
    pub(super) fn enter(&mut self) {
        let (now, budget) = (self.to.shared.now(), self.to.terms.budget);
        let is_too_late = budget.latest.is_some_and(|latest| now.mono >= latest);
        let Some(place) = self.place.as_ref().filter(|place| !place.is_first() && !is_too_late) else {
            return self.contend();
        };
        let tries_once = now.mono >= budget.stop;
        if tries_once && !place.is_behind_others(now) {
            return self.contend();
        }
        self.trail.note(now.mono, Step::InLine);
        self.refused = true;
        self.to.tally.counts.contended.add_one();
        if tries_once {
            self.pass();
        } else {
            event_log::waiting(&self.to.terms.lock, place.known().holder().as_deref());
        }
    }

    /// Whether its turn is still to come.
    pub(super) const fn waits_for_turn(&self) -> bool {
        matches!(&self.machine, Machine::InLine(in_line) if in_line.begins_at.is_none())
    }

    /// Nobody of this keeper is ahead any more.
    pub(super) fn handle_turn(&mut self) {
        let now = self.to.shared.now().mono;
        let Machine::InLine(in_line) = &mut self.machine else { return };
        let place = self.place.as_ref();
        let was_in_vain = now + LAST_CHANCE >= in_line.stop && place.is_some_and(|place| place.was_in_vain());
        if was_in_vain || now >= in_line.stop {
            return self.pass();
        }
        let Settings { polling, format, .. } = self.to.terms.settings;
        let by_tickets = polling == Polling::Tickets && format.abilities().hints;
        match place.and_then(|place| place.take_break(now, by_tickets)) {
            Some(pause) => in_line.begins_at = Some((now + pause).min(in_line.stop - LAST_CHANCE)),
            None => self.contend(),
        }
    }

    /// A moment has come at which it is to begin or to give up, or to let the next one go ahead.
    pub(super) fn note_time_in_line(&mut self) {
        let now = self.to.shared.now().mono;
        if self.leaves_at.is_some_and(|at| now >= at) {
            self.place = None;
        }
        let Machine::InLine(in_line) = &self.machine else { return };
        if in_line.begins_at.is_some_and(|at| now >= at) {
            self.contend();
        } else if now >= in_line.stop {
            self.pass();
        }
    }

    fn contend(&mut self) {
        let shared = &self.to.shared;
        let Machine::InLine(in_line) = &mut self.machine else { return };
        let Some(mut contender) = in_line.contender.take() else { return };
        self.queued = shared.now().mono.since(self.asked);
        if let Some(place) = &self.place {
            place.asks(&self.to.terms.lock, self.to.terms.settings.lease);
        }
        shared.with_context(|cx| contender.start(cx));
        self.machine = Machine::Contending(contender);
    }

    /// Its time is over and it never had its turn: it is told what stood in the way of who is ahead.
    fn pass(&mut self) {
        let now = self.to.shared.now().mono;
        let known = self.place.as_ref().map(|place| place.known()).unwrap_or_default();
        if let Machine::InLine(in_line) = &mut self.machine {
            in_line.end(known.verdict(now, now.since(self.asked)));
        }
    }

    /// It is on its way out: whoever waits behind it waits a moment more.
    pub(super) fn leave_line_soon(&mut self) {
        if let Some(place) = &self.place {
            place.over();
            let by: Mono = self.to.shared.now().mono + HANDOVER_WITHIN;
            self.leaves_at.get_or_insert(by);
        }
    }

    /// What an answer has shown stands in the way of those behind it as well.
    pub(super) fn tell_those_behind(&self) {
        if let (Machine::Contending(contender), Some(place)) = (&self.machine, &self.place) {
            let (verdict, now) = self.to.shared.with_context(|cx| (contender.verdict_at_end(cx), cx.now));
            let Terms { lock, settings, .. } = &self.to.terms;
            match verdict {
                // As where the row was seen free, and taken by somebody who was quicker.
                Verdict::Busy(Busy { holder: None, retry_after: Duration::ZERO, .. }) => {
                    place.wants(lock, settings.lease)
                }
                verdict => place.tell(verdict, now.mono),
            }
        }
    }

    /// What ends an acquisition at once is no end of its time, and stands in the way of those behind it all the same.
    pub(super) fn tell_those_behind_of_failure(&self, verdict: &Verdict) {
        let is_failure = matches!(verdict, Verdict::Failed(_) | Verdict::Unusable(_));
        if let (true, Machine::Contending(_), Some(place)) = (is_failure, &self.machine, &self.place) {
            place.tell(verdict.clone(), self.to.shared.now().mono);
        }
    }

    /// It holds the row, for so long.
    pub(super) fn tell_hold(&self, validity: Validity) {
        if let (Some(row), Some(place)) = (&self.row, &self.place) {
            place.hold(&self.to.terms.lock, row.acquired_at, validity, self.to.shared.now());
        }
    }
}
