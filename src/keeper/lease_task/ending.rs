//! How a lease's task ends: by an order, with the keeper, or by itself; what is counted and told then.

use super::{Assignment, LeaseTask};
use crate::keeper::desk::{GiveBack, Stage};
use crate::keeper::event_log;
use crate::keeper::trail::Step;
use crate::keeper::wording;
use crate::session::{FailKind, FromKeeper, OnCrash};

/// What a handler is told whose lease the keeper gives back because its environment ends.
const SHUTTING_DOWN: &str = "the keeper is shutting down";

impl LeaseTask {
    /// The session, or the keeper's end, wants the lease given back.
    pub(super) fn give_back(&mut self, order: GiveBack) {
        self.order = Some(order);
        self.trail.note(self.to.shared.now().mono, Step::GivenBack(order));
        self.debt = self.to.desk.take_debt();
        self.leave_line_soon();
        let Assignment { shared, terms, .. } = &self.to;
        if let Some(row) = &self.row {
            shared.standings.forget(row.owner);
        }
        let left = order.is_crash() && terms.on_crash == OnCrash::Expire;
        if let Some(row) = self.row.as_ref().filter(|row| left && row.granted_at.is_some()) {
            event_log::left_to_expire(&terms.lock, row.owner, row.version, order.as_str());
            self.machine.abandon();
            return;
        }
        self.requests.withdraw();
        // What was not granted has no work under it that `on_crash` could be about.
        shared.with_context(|cx| match order {
            GiveBack::Kept(minimum) => self.machine.handle_kept(cx, minimum),
            GiveBack::Finished => self.machine.handle_finished(cx),
            _ => self.machine.handle_unwanted(cx),
        });
    }

    /// The keeper shuts down: who waits or holds is told, then the lease goes the way of a crash.
    pub(super) fn close(&mut self) {
        match self.row.as_ref().filter(|row| row.granted_at.is_some()) {
            Some(row) if row.lost => {}
            Some(row) => self.tell_lost(row.owner, SHUTTING_DOWN),
            None => self.tell(Stage::Over, &wording::failed(self.to.id, FailKind::ShuttingDown, SHUTTING_DOWN)),
        }
        self.to.desk.give_back(GiveBack::Shutdown, false, || self.to.shared.wire.owe());
    }

    /// How the lease ended, counted once, whatever became of its row.
    pub(super) fn count_its_end(&mut self) {
        let Some(row) = self.row.take() else { return };
        if let Some(at) = row.granted_at.filter(|_| !row.lost) {
            self.to.tally.held(self.to.shared.now().mono.since(at));
        }
        let counters = &self.to.tally.counts;
        match self.order {
            _ if row.granted_at.is_none() => self.count_undone(),
            // Counted when it was lost.
            _ if row.lost => {}
            Some(order) if order.is_crash() && self.to.terms.on_crash == OnCrash::Expire => {
                counters.abandoned.add_one()
            }
            Some(order) if order.is_crash() => counters.crash_releases.add_one(),
            Some(_) => counters.given_back.add_one(),
            None => counters.lost.add_one(),
        }
    }

    /// A row that was taken, and that nobody was told of.
    pub(super) fn count_undone(&self) {
        self.to.tally.counts.grants_undone.add_one();
        self.to.counts.undone();
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
        self.debt = None;
        self.place = None;
        self.end_states("the lease is over");
        if let Some(row) = &self.row {
            self.to.shared.standings.forget(row.owner);
        }
        for owner in std::mem::take(&mut self.noted) {
            self.to.shared.home.settled(owner);
        }
        let id = self.to.id;
        let line = match &self.not_freed {
            Some(failure) => wording::failure(id, failure),
            None => FromKeeper::Released { id },
        };
        self.count_its_end();
        self.to.desk.end(|| self.to.outbox.tell(&line));
        self.to.outbox.nudge();
    }
}

impl Drop for LeaseTask {
    /// The task panicked, or the keeper is gone: nobody renews this lease any more, so nobody may go on believing in it.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(row) = self.row.as_ref().filter(|row| row.granted_at.is_some() && !row.lost) {
            self.tell_lost(row.owner, "the keeper's own task for it ended");
        }
        self.count_its_end();
        let id = self.to.id;
        let line = wording::failed(id, FailKind::ShuttingDown, "the keeper's own task for it ended");
        self.tell(Stage::Over, &line);
        self.to.desk.end(|| self.to.outbox.tell(&line));
        self.to.outbox.nudge();
    }
}
